"""The relay with plain sockets on loopback: both ways, several sources, cuts, counters, a clean end."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from headrace.testing import Address, Conditions, Relay
from tests.helpers import TIMEOUT_S

COUNT = 400


@contextlib.contextmanager
def udp_socket() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(TIMEOUT_S)
        yield opened


def address_of(opened: socket.socket) -> Address:
    host, port = opened.getsockname()
    return host, port


def await_condition(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "the relay did not take the datagrams in"
        time.sleep(0.001)


def receive_until(opened: socket.socket, last: bytes) -> list[bytes]:
    """Everything that arrives up to and including `last`, which is sent when the relay is perfect again."""
    arrived = []
    while True:
        datagram = opened.recv(2048)
        arrived.append(datagram)
        if datagram == last:
            return arrived


def test_datagrams_go_there_and_answers_come_back_from_the_relays_address() -> None:
    with udp_socket() as target, udp_socket() as source, Relay(address_of(target)) as relay:
        source.sendto(b"there", relay.address)
        datagram, peer = target.recvfrom(64)
        target.sendto(b"back", peer)
        assert datagram == b"there"
        assert source.recvfrom(64) == (b"back", relay.address)
        assert relay.endpoint == f"127.0.0.1:{relay.address[1]}"
        assert (relay.forward.delivered, relay.backward.delivered) == (1, 1)


def test_each_source_has_its_own_way_back() -> None:
    with udp_socket() as target, udp_socket() as one, udp_socket() as two, Relay(address_of(target)) as relay:
        for source in (one, two):
            source.sendto(b"hello", relay.address)
            _, peer = target.recvfrom(64)
            target.sendto(str(source.getsockname()[1]).encode(), peer)
        assert [int(source.recv(64)) for source in (one, two)] == [address_of(one)[1], address_of(two)[1]]


def arrivals(seed: int) -> tuple[list[bytes], int]:
    bad = Conditions(loss=0.2, duplicate=0.1, reorder=0.1)
    with (
        udp_socket() as target,
        udp_socket() as source,
        Relay(address_of(target), forward=bad, seed=seed) as relay,
    ):
        for number in range(COUNT):
            source.sendto(number.to_bytes(4, "big"), relay.address)
        await_condition(lambda: relay.forward.received == COUNT)
        relay.set_conditions(forward=Conditions(delay_s=0.05))
        source.sendto(b"end", relay.address)
        arrived = receive_until(target, b"end")[:-1]
        return arrived, relay.forward.dropped


def test_the_same_seed_loses_and_reorders_the_same_datagrams() -> None:
    first, dropped = arrivals(seed=42)
    second, _ = arrivals(seed=42)
    assert 0 < dropped < COUNT
    assert len(set(first)) == COUNT - dropped
    assert set(first) == set(second)


def test_a_cut_stops_everything_and_ends() -> None:
    with udp_socket() as target, udp_socket() as source, Relay(address_of(target)) as relay:
        source.sendto(b"before", relay.address)
        assert target.recv(64) == b"before"
        with relay.cut():
            source.sendto(b"during", relay.address)
            await_condition(lambda: relay.forward.cut == 1)
        source.sendto(b"after", relay.address)
        assert target.recv(64) == b"after"


def test_a_target_that_is_not_there_is_loss_and_nothing_worse() -> None:
    with udp_socket() as source, udp_socket() as target:
        port = address_of(target)
        target.close()
        with Relay(port) as relay:
            for _ in range(3):
                source.sendto(b"x", relay.address)
            await_condition(lambda: relay.forward.received == 3)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as late:
                late.settimeout(TIMEOUT_S)
                late.bind(port)
                source.sendto(b"now", relay.address)
                source.sendto(b"now", relay.address)
                assert late.recv(64) == b"now"


def test_a_failure_names_the_seed() -> None:
    with udp_socket() as target, pytest.raises(RuntimeError) as failure, Relay(address_of(target), seed=17):
        raise RuntimeError("the body failed")
    assert "HEADRACE_SEED=17" in failure.value.__notes__[0]


def test_closing_twice_is_allowed_and_frees_the_port() -> None:
    relay = Relay(("127.0.0.1", 9))
    address = relay.address
    relay.close()
    relay.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
        again.bind(address)
