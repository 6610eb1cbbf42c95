"""The relay with plain sockets on loopback: both ways, several sources, cuts, counters, a clean end."""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from collections.abc import Callable, Iterator
from unittest.mock import Mock

import pytest

import headrace
from headrace.testing import Address, Conditions, Relay
from headrace.testing.relay import _receive
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


def test_a_cut_in_a_cut_ends_alone() -> None:
    with udp_socket() as target, udp_socket() as source, Relay(address_of(target)) as relay:
        with relay.cut(backward=False):
            with relay.cut(forward=False):
                source.sendto(b"in both", relay.address)
                await_condition(lambda: relay.forward.cut == 1)
            source.sendto(b"in one", relay.address)
            await_condition(lambda: relay.forward.cut == 2)
        source.sendto(b"after", relay.address)
        assert target.recv(64) == b"after"


def raising_on_short(datagram: bytes) -> bool:
    return datagram[6] == 1


def test_what_affects_raises_comes_out_at_the_end_and_traffic_goes_on() -> None:
    with udp_socket() as target, udp_socket() as source:
        relay = Relay(address_of(target))
        relay.set_conditions(forward=Conditions(loss=1, affects=raising_on_short))
        for datagram in (b"short", b"\1" * 7, b"long enough"):
            source.sendto(datagram, relay.address)
        assert [target.recv(64), target.recv(64)] == [b"short", b"long enough"]
        assert (relay.forward.received, relay.forward.dropped, relay.forward.passed) == (3, 1, 2)
        with pytest.raises(IndexError) as fault:
            relay.close()
        assert fault.traceback[-1].name == "raising_on_short"
        relay.close()


def test_a_failure_of_the_body_has_its_seed_also_beside_one_of_affects() -> None:
    def fail() -> None:
        conditions = Conditions(affects=raising_on_short)
        with (
            udp_socket() as target,
            udp_socket() as source,
            Relay(address_of(target), forward=conditions, seed=18) as relay,
        ):
            source.sendto(b"short", relay.address)
            assert target.recv(64) == b"short"
            raise RuntimeError("the body failed")

    with pytest.raises(IndexError) as fault:
        fail()
    body = fault.value.__context__
    assert str(body) == "the body failed"
    assert "HEADRACE_SEED=18" in body.__notes__[0]


@pytest.mark.parametrize("host", ["10.1.2.3", "::1"])
def test_a_target_that_no_datagram_can_reach_is_refused(host: str) -> None:
    with pytest.raises(headrace.ConfigError, match=r"target=.*bind=\('127.0.0.1', 0\): .*give bind="):
        Relay((host, 40456))


def test_a_source_for_which_there_is_no_socket_is_counted_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with udp_socket() as target, udp_socket() as source, Relay(address_of(target)) as relay:

        def refuse(host: str, target: Address) -> socket.socket:
            raise OSError(errno.EMFILE, "too many open files")

        with monkeypatch.context() as patched:
            patched.setattr("headrace.testing.relay._connected_socket", refuse)
            source.sendto(b"lost", relay.address)
            await_condition(lambda: relay.failed_sends == 1)
        source.sendto(b"next", relay.address)
        assert target.recv(64) == b"next"


@pytest.mark.parametrize("error", [errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH])
def test_what_an_earlier_datagram_met_is_loss_and_nothing_worse(error: int) -> None:
    """The system tells of it at the next call of its socket."""

    opened = Mock(spec=socket.socket)
    here = (b"here", ("127.0.0.1", 9))
    opened.recvfrom.side_effect = [OSError(error, "of an earlier datagram"), here, BlockingIOError()]
    assert list(_receive(opened)) == [here]


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
