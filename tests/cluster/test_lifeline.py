"""Followers hear from the kernel that their leader's process has ended."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from headrace.cluster.member.lifeline import Lifeline, _State
from tests.helpers import await_true


@pytest.fixture
def leader() -> Iterator[Lifeline]:
    lifeline = Lifeline("127.0.0.1:0")
    yield lifeline
    lifeline.close()


@pytest.fixture
def follower() -> Iterator[Lifeline]:
    lifeline = Lifeline("127.0.0.1:0")
    yield lifeline
    lifeline.close()


def address(lifeline: Lifeline) -> str:
    host, port = lifeline._listener.getsockname()
    return f"{host}:{port}"


def connect(follower: Lifeline, leader: Lifeline) -> None:
    follower.watch(address(leader))
    await_true(lambda: not (follower.poll() or leader.poll()) and leader._followers)


def test_the_end_of_a_leader_is_heard(leader: Lifeline, follower: Lifeline) -> None:
    connect(follower, leader)
    leader.close()
    await_true(follower.poll)
    assert not follower.poll(), "it is heard once"


def test_a_connection_that_is_lost_while_the_leader_lives_is_no_end(
    leader: Lifeline, follower: Lifeline
) -> None:
    connect(follower, leader)
    leader._followers.pop().close()
    await_true(lambda: follower.poll() or leader.poll() or leader._followers)
    assert leader._followers
    leader.close()
    await_true(follower.poll)


def test_an_end_that_overtakes_the_second_attempt_is_heard(leader: Lifeline, follower: Lifeline) -> None:
    """The kernel closes the connections of a process before it stops to listen, and may accept one between the two."""
    connect(follower, leader)
    leader._followers.pop().close()
    await_true(lambda: follower.poll() or follower._state is _State.CHECKING)
    leader.close()
    await_true(follower.poll)


def test_a_member_that_does_not_listen_is_left_to_its_heartbeats(follower: Lifeline) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host, port = free.getsockname()
    follower.watch(f"{host}:{port}")
    await_true(lambda: follower.poll() or follower._line is None)
    assert follower._line is None


def test_strangers_push_out_strangers(leader: Lifeline) -> None:
    with socket.socket() as first:
        first.connect(leader._listener.getsockname())
        others = [socket.create_connection(leader._listener.getsockname()) for _ in range(64)]
        await_true(lambda: leader.poll() or (len(leader._followers) == 64 and not leader._events.poll(0)))
        first.settimeout(10)
        assert first.recv(1) == b""
        for other in others:
            other.close()
