"""What clients send that a consensus module cannot take, in a simulated world."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.cluster.protocol.codes import EventCode
from headrace.testing import World
from tests.cluster.members import Member, Script

IPC_ALLOWED = {"ingress_ipc_allowed": True}
OWN_STREAMS = (10, 120, 100, 101, 103, 104, 105, 107)


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
        ({}, "aeron:udp?endpoint=leader:9002", 101, "is where the member hears"),
        ({}, "aeron:udp?endpoint=LEADER:9002|mtu=1408", 102, "is where the member hears"),
        ({}, "aeron:udp?endpoint=10.0.0.1:9002", 101, "is where the member hears"),
        ({}, "aeron:udp?endpoint=leader:9003", 108, "is where the member hears"),
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
        assert len(member.module._connecting) == 0
        assert member.module.error_count == 0
        [told] = [one for one in caplog.messages if "a client asks for answers where none may go" in one]
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
