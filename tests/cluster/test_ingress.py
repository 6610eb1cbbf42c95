"""What clients send that a consensus module cannot take, in a simulated world."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.cluster.member.log_recording import LogRecording
from headrace.cluster.protocol.codes import AdminRequestType, EventCode
from headrace.cluster.protocol.session import AdminRequest, ChallengeResponse, SessionKeepAlive
from headrace.security import Accepted, Challenge
from headrace.testing import World
from tests.cluster.members import Member, Script

IPC_ALLOWED = {"ingress_ipc_allowed": True}
OWN_STREAMS = (10, 120, 100, 101, 103, 104, 105, 107)


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261129) as made:
        yield made


def test_a_client_is_told_of_a_message_that_is_too_long_for_the_log() -> None:
    """And when its session opens, how long one may be. The session goes on."""
    longest = 16 * 1024 - 32
    with World(20261124) as world:
        member = Member(world, world.add_node("leader"), log_channel="aeron:udp?term-length=128k")
        member.await_leader()
        ingress = "aeron:udp?endpoint=leader:9002|term-length=1m"
        script = Script(member, world.add_node("client"), ingress=ingress)
        assert script.connect().detail == f"max-message-length={longest}"
        before = member.module.commit_position
        script.message(bytes(longest + 1))
        told = script.answer()
        assert (told.code, told.cluster_session_id) == (EventCode.ERROR, script.session_id)
        assert told.detail == (
            f"a message of {longest + 1} bytes is too long for the log, which takes {longest} at most"
        )
        assert member.module.commit_position == before
        script.message(bytes(longest))
        member.until(lambda: member.module.commit_position > before + longest, "the message in the log")


def test_what_comes_on_another_stream_than_the_session_connected_on_does_not_count(world: World) -> None:
    """Ids of sessions and terms are small numbers: a stranger who guesses them speaks for nobody."""
    allows = SimpleNamespace(is_authorised=lambda *_: True)
    challenges = SimpleNamespace(on_connect=lambda _: Challenge(b"who", lambda answer: Accepted(answer)))
    member = Member(world, world.add_node("leader"), authorisation=allows, authenticator=challenges)
    member.await_leader()
    client, stranger = Script(member, world.add_node("client")), Script(member, world.add_node("stranger"))
    client.send(client.request())
    asked = client.answer().cluster_session_id
    stranger.send(
        ChallengeResponse(correlation_id=1, cluster_session_id=asked, encoded_credentials=b"stranger")
    )
    client.send(ChallengeResponse(correlation_id=2, cluster_session_id=asked, encoded_credentials=b"client"))
    opened = client.answer()
    assert (opened.code, opened.correlation_id) == (EventCode.OK, 2)
    [session] = member.context.applied.sessions
    assert session.principal == b"client"
    client.session_id, client.term_id = opened.cluster_session_id, opened.leadership_term_id
    stranger.session_id, stranger.term_id = client.session_id, client.term_id
    before, activity_ns = member.module.commit_position, session.activity_ns
    stranger.message(b"pay the stranger")
    ids = {"leadership_term_id": client.term_id, "cluster_session_id": client.session_id}
    stranger.send(SessionKeepAlive(**ids))
    stranger.send(AdminRequest(**ids, correlation_id=1, request_type=AdminRequestType.SNAPSHOT))
    stranger.close_session()
    world.run_for(1.0)
    assert member.module.commit_position == before
    assert member.module.snapshot_count == 0
    assert session.is_open
    assert session.activity_ns == activity_ns
    client.message(b"from the client")
    member.until(lambda: member.module.commit_position > before, "the client's own message")


def test_after_an_election_a_session_has_the_stream_on_which_its_client_is_heard_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = Member(world, world.add_node("leader"))
    member.await_leader()
    client, stranger = Script(member, world.add_node("client")), Script(member, world.add_node("stranger"))
    client.connect()
    with monkeypatch.context() as patch:
        patch.setattr(LogRecording, "is_active", False)
        member.until(lambda: not member.module.is_leader, "an election")
    member.await_leader()
    member.until(lambda: client.ingress.is_connected and stranger.ingress.is_connected, "the streams again")
    stranger.session_id = client.session_id
    stranger.term_id = client.term_id = member.module.leadership_term_id
    before = member.module.commit_position
    client.message(b"to the new leader")
    member.until(lambda: member.module.commit_position > before, "a message that is no keepalive")
    before = member.module.commit_position
    stranger.message(b"pay the stranger")
    world.run_for(0.5)
    assert member.module.commit_position == before
    client.message(b"one more")
    member.until(lambda: member.module.commit_position > before, "another message")


def test_a_request_whose_stream_has_ended_takes_no_place(world: World) -> None:
    member = Member(world, world.add_node("leader"))
    member.await_leader()
    stranger = Script(member, world.add_node("stranger"))
    stranger.send(stranger.request(response_channel="aeron:udp?endpoint=leader:9300"))
    connecting = member.module._clients.opening
    member.until(lambda: len(connecting), "the request")
    stranger.client.close()
    session_timeout_ns = member.module.config.session_timeout_ns
    begun_ns = world.now_ns
    member.until(lambda: not len(connecting), "the end of the request")
    assert world.now_ns - begun_ns < session_timeout_ns / 2


@pytest.mark.parametrize(
    ("settings", "channel", "stream_id", "text"),
    [
        (
            {},
            "aeron:ipc",
            102,
            "aeron:ipc is for clients of the member's driver, to which ingress_ipc_allowed=",
        ),
        *(
            (IPC_ALLOWED, "aeron:ipc?alias=x", number, f"{number} is a stream of the member")
            for number in OWN_STREAMS
        ),
        ({}, "aeron:udp?endpoint=leader:9002", 101, "is where the member listens"),
        ({}, "aeron:udp?endpoint=LEADER:9002|mtu=1408", 102, "is where the member listens"),
        ({}, "aeron:udp?endpoint=10.0.0.1:9002", 101, "is where the member listens"),
        ({}, "aeron:udp?endpoint=leader:9003", 108, "is where the member listens"),
    ],
)
def test_no_answers_go_to_the_member_itself(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Any], channel: str, stream_id: int, text: str
) -> None:
    """A stranger would have it take them for messages of its services, or carry out its own answers for ever."""
    with World(20261126) as world:
        member = Member(world, world.add_node("leader"), **settings)
        member.await_leader()
        script = Script(member, world.add_node("client"))
        script.send(script.request(response_channel=channel, response_stream_id=stream_id, correlation_id=1))
        # The next client is answered, and the one before is not in the log.
        assert script.connect(correlation_id=2).correlation_id == 2
        world.run_for(0.5)
        assert len(member.context.applied.sessions) == 1
        assert len(member.module._clients.opening) == 0
        assert member.module.error_count == 0
        [told] = [one for one in caplog.messages if "a client asks for answers on a forbidden" in one]
        assert text in told


@pytest.mark.parametrize(
    ("settings", "channel"),
    [
        (IPC_ALLOWED, "aeron:ipc"),
        ({"ingress_channel": "aeron:ipc"}, "aeron:ipc"),
        ({}, "aeron:udp?endpoint=leader:9100"),
    ],
)
def test_a_client_beside_the_member_is_answered(settings: dict[str, Any], channel: str) -> None:
    with World(20261127) as world:
        node = world.add_node("leader")
        member = Member(world, node, **settings)
        member.await_leader()
        script = Script(
            member, node, ingress=settings.get("ingress_channel", "aeron:udp?endpoint=leader:9002")
        )
        script.answers = script.client.add_subscription(channel, 102)
        assert script.connect().code is EventCode.OK


def test_versions_that_strangers_choose_are_one_text_of_the_error_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Which keeps each text, and has room for few; the client and the log are told which version it was."""
    with World(20261128) as world:
        member = Member(world, world.add_node("leader"))
        member.await_leader()
        script = Script(member, world.add_node("client"))
        before = len(member.context.log._entries._observed)
        for number in range(10):
            told = script.connect(version=(1 << 16) + number, correlation_id=number)
            assert told.detail == f"invalid client version 1.0.{number}, cluster is 0.3.0"
        assert len(member.context.log._entries._observed) == before + 1
        assert any("1.0.0" in one for one in caplog.messages)
