"""What settings and channels ask for, at the sockets that a driver has open."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import headrace
from tests.ports import free_port

pytestmark = pytest.mark.system

KIB = 1024
STREAM = 9
Address = tuple[str, int]


@contextmanager
def open_sockets() -> Iterator[list[socket.socket]]:
    """The sockets of this process, and so of the driver in it."""
    descriptors = list(Path("/proc/self/fd").iterdir())
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.socket(fileno=os.dup(int(descriptor.name))))
            for descriptor in descriptors
            if descriptor.is_socket()
        ]


def inodes() -> set[int]:
    """What tells sockets apart."""
    with open_sockets() as sockets:
        return {os.fstat(one.fileno()).st_ino for one in sockets}


def option(address: Address, of: Callable[[socket.socket], Address], level: int, name: int) -> int:
    """Of the one socket whose own address, or that of its peer, is this."""

    def has_address(one: socket.socket) -> bool:
        try:
            return of(one) == address
        except OSError:
            return False

    with open_sockets() as sockets:
        (found,) = filter(has_address, sockets)
        return found.getsockopt(level, name)


def buffers(address: Address, of: Callable[[socket.socket], Address]) -> tuple[int, int]:
    """Lengths of the buffers to send and to receive, of which the kernel takes twice as much as it is asked for."""
    sent, received = (
        option(address, of, socket.SOL_SOCKET, name) for name in (socket.SO_SNDBUF, socket.SO_RCVBUF)
    )
    return sent // 2, received // 2


@pytest.mark.parametrize("how", ["by channel", "by setting"])
def test_buffers_are_as_long_as_channel_or_setting_says(how: str) -> None:
    lengths = 96 * KIB, 160 * KIB
    address = "127.0.0.1", free_port()
    asked = f"|so-sndbuf={lengths[0]}|so-rcvbuf={lengths[1]}" if how == "by channel" else ""
    channel = f"aeron:udp?endpoint={address[0]}:{address[1]}|term-length=64k{asked}"
    is_set = how == "by setting"
    with (
        headrace.MediaDriver.embedded(
            threading_mode="SHARED",
            socket_send_buffer_length=lengths[0] if is_set else None,
            socket_receive_buffer_length=lengths[1] if is_set else None,
        ) as driver,
        driver.connect() as client,
        client.add_subscription(channel, STREAM),
    ):
        # A stream may get a socket of its own at the same address.
        assert buffers(address, socket.socket.getsockname) == lengths
        with client.add_publication(channel, STREAM):
            assert buffers(address, socket.socket.getpeername) == lengths


@pytest.mark.parametrize(
    ("setting", "key", "ttl"), [(None, "", 1), (5, "", 5), (None, "|ttl=7", 7), (5, "|ttl=0", 0)]
)
@pytest.mark.parametrize("of", ["publication", "destination", "subscription"])
def test_datagrams_to_groups_live_as_long_as_setting_and_channel_say(
    of: str, setting: int | None, key: str, ttl: int
) -> None:
    channel = f"aeron:udp?endpoint=239.255.43.1:{free_port()}|interface=127.0.0.1|term-length=64k{key}"
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED", socket_multicast_ttl=setting) as driver,
        driver.connect() as client,
        client.add_publication("aeron:udp?control-mode=manual|term-length=64k", STREAM) as publication,
    ):
        before = inodes()
        add = {
            "publication": lambda: client.add_exclusive_publication(channel, STREAM),
            "destination": lambda: publication.add_destination(channel),
            "subscription": lambda: client.add_subscription(channel, STREAM),
        }[of]
        # What is not held is closed.
        held = add()
        with open_sockets() as sockets:
            opened = [one for one in sockets if os.fstat(one.fileno()).st_ino not in before]
            found = {one.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) for one in opened}
        assert found == {ttl}
        del held
