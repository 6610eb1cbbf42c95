"""What is asked of one member: by clients that are refused, by operators, by settings in the specification's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import ConfigError, RegistrationError
from headrace.archive.client import calls
from headrace.cluster import ContainerConfig
from headrace.cluster.common.node_archive import node_archive_config
from headrace.cluster.member.config import ConsensusModuleConfig
from headrace.cluster.member.half_open_sessions import _HALF_OPEN_MAX
from headrace.cluster.member.states import NodeToggle, Toggle
from headrace.cluster.protocol.codes import AdminRequestType, AdminResponseCode, EventCode
from headrace.cluster.protocol.control import ClusterMembersQuery
from headrace.cluster.protocol.messages import decode, encode
from headrace.cluster.protocol.session import AdminRequest
from headrace.security import Accepted, Rejected, Verdict
from headrace.security.plugins import authenticator_named
from headrace.testing import World
from tests.cluster.members import MEMBERS, Member, Script


@pytest.fixture
def world() -> Iterator[World]:
    with World(17) as world:
        yield world


def made_member(world: World, **settings: Any) -> Member:
    member = Member(world, world.add_node("leader"), **settings)
    member.await_leader()
    return member


def test_clients_that_were_refused_and_cannot_be_told_take_no_place_from_others(world: World) -> None:
    member = made_member(world, max_sessions=2)
    silent = Script(member, world.add_node("silent"))
    for number in range(3):
        nowhere = f"aeron:udp?endpoint=leader:{9300 + number}"
        silent.send(silent.request(version=1 << 16, response_channel=nowhere))
    member.until(lambda: len(member.module._clients.opening._pending) == 3, "the requests")
    opened = Script(member, world.add_node("client")).connect()
    assert opened.code is EventCode.OK


def test_a_tool_is_answered_whenever_it_asks(world: World) -> None:
    """It asks once: also at the end of a term, where the stream refuses the first attempt."""
    member = made_member(world)
    tool = member.node.connect()
    answers = tool.add_subscription(member.module.config.control_channel, 104)
    queries = tool.add_publication(member.module.config.control_channel, 105)
    heard: list[Any] = []
    for number in range(3 * 128 * 1024 // 256):
        queries.offer_blocking(encode(ClusterMembersQuery(correlation_id=number, extended=True)))
        member.until(lambda: answers.poll(lambda data, _: heard.append(decode(data))), f"answer {number}")
        assert heard.pop().correlation_id == number


class Secret:
    """Knows one client."""

    def on_connect(self, credentials: bytes) -> Verdict:
        return Accepted(b"known") if credentials == b"secret" else Rejected()


def test_half_open_sessions_of_strangers_keep_no_client_out(world: World) -> None:
    """Neither in their number, nor in that of open sessions; and they are not more than have a bound."""
    member = made_member(world, max_sessions=2, authenticator=Secret())
    stranger = Script(member, world.add_node("stranger"))
    connecting = member.module._clients.opening
    most = 2 + _HALF_OPEN_MAX
    known = Script(member, world.add_node("client"))
    for number in range(most + 10):
        nowhere = f"aeron:udp?endpoint=leader:{9300 + number}"
        stranger.send(stranger.request(response_channel=nowhere, encoded_credentials=b"wrong"))
        if number == most:
            known.send(known.request(encoded_credentials=b"secret"))
    opened = known.answer()
    assert opened.code is EventCode.OK
    assert len(connecting) <= most


def test_the_limit_of_sessions_counts_those_that_are_open(world: World) -> None:
    member = made_member(world, max_sessions=1)
    scripts = [Script(member, world.add_node(name)) for name in ("one", "other")]
    for script in scripts:
        script.send(script.request())
    told = [script.answer() for script in scripts]
    assert sorted(one.detail for one in told)[0] == "concurrent session limit"
    assert sorted(one.code for one in told) == [EventCode.OK, EventCode.ERROR]


def test_a_session_that_does_not_fit_an_entry_of_the_log_is_refused(world: World) -> None:
    member = made_member(
        world, log_channel="aeron:udp?term-length=64k", authenticator=SimpleNamespace(on_connect=_long_name)
    )
    script = Script(member, world.add_node("client"))
    long_channel = f"{script.answers.channel}|alias=".ljust(4090, "x")
    refused = script.connect(response_channel=long_channel)
    assert refused.code is EventCode.ERROR
    assert "too long for the log" in refused.detail
    assert script.connect(correlation_id=8).code is EventCode.OK


def _long_name(credentials: bytes) -> Verdict:
    return Accepted(4096 * b"x")


def test_time_outs_of_sessions_go_by_a_clock_that_nobody_sets(world: World) -> None:
    """And timestamps of the log by the one that an operator sets."""
    member = made_member(world)
    script = Script(member, world.add_node("client"))
    script.connect()
    silent = Script(member, world.add_node("silent"))
    silent.send(silent.request(response_channel="aeron:udp?endpoint=leader:9300"))
    member.until(lambda: len(member.module._clients.opening), "the request")
    for by_s in (3600.0, -7200.0):
        before = member.node.time_ns
        member.node.jump_clock(by_s)
        world.run_for(0.5)
        assert abs(member.node.time_ns - before - by_s * 1e9) < 1e9
        assert len(member.context.applied.sessions) == len(member.module._clients.opening) == 1
        assert member.context.time.to_ns(member.context.now) == pytest.approx(member.node.time_ns, abs=1e8)
    member.until(lambda: not len(member.context.applied.sessions), "the end of a silent session")
    member.until(lambda: not len(member.module._clients.opening), "the end of a request that leads nowhere")


async def _allowed_later() -> bool:
    return True


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_allowed_later, "it returned a coroutine, which nothing awaits: the method must not be async"),
        (lambda: "denied", "it returned an object of class str"),
        (lambda: 1, "it returned an object of class int"),
        (lambda: None, "it returned an object of class NoneType"),
        (lambda: False, ""),
    ],
)
@pytest.mark.filterwarnings("error")
def test_only_true_itself_allows_a_request(world: World, answer: Callable[[], object], words: str) -> None:
    told: list[str] = []
    service = SimpleNamespace(is_authorised=lambda *_: answer())
    member = made_member(world, authorisation=service, on_error=told.append)
    script = Script(member, world.add_node("client"))
    script.connect()
    request = AdminRequest(
        leadership_term_id=script.term_id,
        cluster_session_id=script.session_id,
        correlation_id=3,
        request_type=AdminRequestType.SNAPSHOT,
    )
    script.send(request)
    assert script.answer().response_code is AdminResponseCode.UNAUTHORISED_ACCESS
    assert len(told) == bool(words)
    assert not words or words in told[0]


def test_a_recording_log_is_validated_against_the_archive(world: World) -> None:
    member = made_member(world)
    script = Script(member, world.add_node("client"))
    script.connect()
    log = member.context.recording_log
    for count in (1, 2):
        member.module.request(Toggle.SNAPSHOT)
        member.until(lambda count=count: member.module.snapshot_count == count, "a snapshot")  # type: ignore[misc]
    older, newer = (entry for entry in log if entry.is_snapshot)
    # Of a service, whose recording is there: without the module's part it is no snapshot.
    log.append_snapshot(replace(newer, recording_id=older.recording_id, service_id=0))
    purged = member.context.archive.ask(calls.purge_recording(newer.recording_id))
    member.until(lambda: purged.is_done, "the recording gone")
    member.context.archive.answer(purged)
    toggle = member.context.counters.node_toggle
    toggle.value = NodeToggle.VALIDATE_RECORDING_LOG
    position = older.log_position
    member.until(lambda: member.context.plan.snapshots[0].log_position == position, "the validation")
    assert [entry for entry in log if entry.is_snapshot] == [older]
    assert toggle.value == NodeToggle.NEUTRAL
    before = member.module.commit_position
    script.message(b"goes on")
    member.until(lambda: member.module.commit_position > before, "the message in the log")
    toggle.value = NodeToggle.REPLICATE_STANDBY_SNAPSHOT
    member.until(lambda: toggle.value == NodeToggle.NEUTRAL, "the toggle back")
    member.restart(keeps_writes=True)


@pytest.mark.parametrize("config", [ConsensusModuleConfig, ContainerConfig])
def test_a_part_takes_the_settings_of_an_archives_client(
    config: type[ConsensusModuleConfig] | type[ContainerConfig],
) -> None:
    """All that the specification names; those that a part of a node has no use for change nothing."""
    properties = {
        "message.timeout": "3s",
        "message.retry.attempts": "5",
        "client.name": "orders",
        "control.term.buffer.length": "128k",
        "control.term.buffer.sparse": "false",
        "control.mtu.length": "4096",
        "control.channel": "aeron:udp?endpoint=elsewhere:8010",
        "control.stream.id": "11",
        "control.response.channel": "aeron:ipc?alias=answers",
        "control.response.stream.id": "21",
        "recording.events.channel": "aeron:udp?endpoint=elsewhere:8030",
        "recording.events.stream.id": "31",
    }
    own = {"members": MEMBERS, "ingress_channel": "aeron:udp"} if config is ConsensusModuleConfig else {}
    made = config.of(
        properties={f"aeron.archive.{name}": value for name, value in properties.items()},
        environment={},
        **own,
    )
    client = node_archive_config(made, "cm", 0)
    assert client.control_channel.startswith("aeron:ipc")
    assert client.response_channel == "aeron:ipc?alias=answers"
    assert (client.control_stream_id, client.response_stream_id) == (10, 121)
    assert (client.message_timeout_s, client.client_name) == (3.0, "orders")
    assert (client.term_buffer_length, client.mtu_length) == (128 * 1024, 4096)
    with pytest.raises(ConfigError, match=r"did you mean aeron\.archive\.message\.timeout\?"):
        config.of(properties={"aeron.archive.mesage.timeout": "3s"}, environment={}, **own)


def test_properties_may_have_the_defaults_of_the_specification_in_its_own_words() -> None:
    config = ConsensusModuleConfig.of(
        properties={
            "aeron.cluster.members": MEMBERS,
            "aeron.cluster.member.endpoints": "",
            "aeron.cluster.ingress.channel": "aeron:udp",
            "aeron.cluster.replication.channel": "aeron:udp?endpoint=leader:0",
            "aeron.cluster.file.sync.level": "0",
            "aeron.cluster.authenticator.supplier": "io.aeron.security.DefaultAuthenticatorSupplier",
        }
    )
    assert config.member_endpoints == ""
    assert config.authenticator is not None
    accepts = authenticator_named("authenticator", config.authenticator)
    assert accepts.on_connect(b"anything") == Accepted()
    with pytest.raises(ConfigError, match=r"file\.sync\.level=1: .* set aeron\.archive\.file\.sync\.level"):
        ConsensusModuleConfig.of(properties={"aeron.cluster.file.sync.level": "1"})


def test_a_session_whose_counter_the_driver_refuses_is_served_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    member = made_member(world)
    refused = SimpleNamespace(poll=_refuse, cancel=lambda: None)
    monkeypatch.setattr(member.context.counters, "of_session", lambda *_: refused)
    script = Script(member, world.add_node("client"))
    assert script.connect().code is EventCode.OK
    script.message(b"goes into the log")
    assert script.heard == []
    before = member.module.commit_position
    script.message(b"and another")
    member.until(lambda: member.module.commit_position > before, "the message in the log")
    assert member.module.failure is None
    assert "the counter that shows a session is refused" in caplog.text


def _refuse() -> None:
    raise RegistrationError("no room for another counter", 11, 1)
