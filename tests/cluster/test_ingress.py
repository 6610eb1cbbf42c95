"""What clients send that a consensus module cannot take, in a simulated world."""

from __future__ import annotations

from headrace.cluster.protocol.codes import EventCode
from headrace.testing import World
from tests.cluster.members import Member, Script


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
