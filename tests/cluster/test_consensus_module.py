"""A consensus module without services, and clients that are scripts, in a simulated world."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import logging
import re
import struct
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import ConfigError, DriverTimeoutError, HeadraceError
from headrace.archive.client import calls
from headrace.client import Client
from headrace.cluster.common.counters import ClusterCounter, find
from headrace.cluster.common.node_archive import RECORDING_POSITION, RecordedStream
from headrace.cluster.errors import ClusterError, ClusterFileError, ClusterTerminalError
from headrace.cluster.files.mark_file import MARK_NAME, read_mark_fields
from headrace.cluster.files.recording_log import RECORDING_LOG_NAME
from headrace.cluster.member import consensus_module, snapshots
from headrace.cluster.member.config import ConsensusModuleConfig
from headrace.cluster.member.consensus_module import ConsensusModule
from headrace.cluster.member.counters import ModuleCounters
from headrace.cluster.member.log_recording import LogRecording
from headrace.cluster.member.snapshot_format import snapshot_messages
from headrace.cluster.member.states import ModuleState, SessionState, Toggle
from headrace.cluster.protocol.codes import AdminRequestType, AdminResponseCode, ClusterAction, EventCode
from headrace.cluster.protocol.control import ServiceAck
from headrace.cluster.protocol.header import pack_header
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.session import AdminRequest, NewLeaderEvent, SessionKeepAlive
from headrace.positions import NULL_VALUE
from headrace.security.authorisation import AllowAll
from headrace.testing import World
from tests.cluster.members import MEMBERS, SEGMENT_LENGTH, Member, Script


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261123) as made:
        yield made


@pytest.fixture
def member(world: World) -> Member:
    return made_member(world)


def made_member(world: World, **settings: Any) -> Member:
    member = Member(world, world.add_node("leader"), **settings)
    member.await_leader()
    return member


@pytest.fixture
def script(world: World, member: Member) -> Script:
    return Script(member, world.add_node("client"))


def test_a_member_that_starts_leads_term_0_and_writes_it_down(member: Member) -> None:
    assert member.module.leadership_term_id == 0
    assert member.module.state is ModuleState.ACTIVE
    [term] = list(member.context.recording_log)
    assert (term.leadership_term_id, term.term_base_log_position) == (0, 0)
    assert member.context.node_state.candidate_term.term_id == 0
    member.until(lambda: member.module.commit_position == 96, "the first entry")


def test_a_client_connects_and_its_messages_are_committed(member: Member, script: Script) -> None:
    event = script.connect()
    assert (event.code, event.cluster_session_id, event.leadership_term_id) == (EventCode.OK, 1, 0)
    before = member.module.commit_position
    script.message(b"x" * 100)
    member.until(lambda: member.module.commit_position >= before + 192, "a message in the log")


def test_messages_of_another_term_or_of_no_session_enter_no_log(member: Member, script: Script) -> None:
    script.connect()
    member.until(lambda: member.module.commit_position > 96, "the session in the log")
    before = member.module.commit_position
    script.send(pack_header(5, script.session_id, 0) + b"other term")
    script.send(pack_header(0, 99, 0) + b"no session")
    script.message(b"right")
    member.until(lambda: member.module.commit_position > before, "the right one")
    member.world.run_for(0.1)
    assert member.module.commit_position == before + 96


@pytest.mark.parametrize("keeps_writes", [True, False])
def test_what_was_committed_is_there_after_a_crash(world: World, keeps_writes: bool) -> None:
    """Of the processes, or of the machine, whose disks then keep what was forced to them."""
    member = made_member(world, sync_level=0 if keeps_writes else 2)
    script = Script(member, world.add_node("client"))
    script.connect()
    script.message(b"before the crash")
    member.until(lambda: member.module.commit_position > 96 + 160, "the message in the log")
    committed = member.module.commit_position
    member.restart(keeps_writes=keeps_writes)
    assert member.module.commit_position >= committed
    assert member.module.leadership_term_id == 1
    assert [term.leadership_term_id for term in member.context.recording_log] == [0, 1]


def test_a_snapshot_has_the_sessions_and_the_next_start_begins_with_it(
    member: Member, script: Script
) -> None:
    script.connect()
    member.context.counters.toggle.value = Toggle.SNAPSHOT
    member.until(lambda: member.context.counters.snapshot_count.value == 1, "a snapshot")
    assert member.context.counters.toggle.value == Toggle.NEUTRAL
    assert member.module.state is ModuleState.ACTIVE
    snapshot = list(member.context.recording_log)[-1]
    member.restart(keeps_writes=True)
    assert member.context.plan.snapshots[0].log_position == snapshot.log_position
    # The client is not there any more for a cluster that has just started.
    member.until(lambda: not len(member.context.applied.sessions), "the session closed")


def test_a_snapshot_is_of_one_turn_however_long_it_takes_to_write(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of services may come while it is written."""
    turns: list[int] = []

    def many(*state: Any) -> Iterator[bytes]:
        turns.append(member.context.now_ns)
        yield from 1000 * list(snapshot_messages(*state))
        turns.append(member.context.now_ns)

    monkeypatch.setattr(snapshots, "snapshot_messages", many)
    member.module.request(Toggle.SNAPSHOT)
    member.until(lambda: member.module.snapshot_count == 1, "a snapshot")
    began, ended = turns
    assert began == ended < member.context.now_ns


def test_the_log_before_a_snapshot_can_be_purged(member: Member, script: Script) -> None:
    script.connect()
    for _ in range(250):
        script.message(bytes(1000))
    member.until(lambda: member.module.commit_position > 2 * SEGMENT_LENGTH, "two segments of log")
    member.context.counters.toggle.value = Toggle.SNAPSHOT
    member.until(lambda: member.context.counters.snapshot_count.value == 1, "a snapshot")
    log, committed = member.context.plan.log, member.module.commit_position
    new_start = member.context.plan.snapshots[0].log_position // SEGMENT_LENGTH * SEGMENT_LENGTH
    asked = member.context.archive.ask(calls.purge_segments(log.recording_id, new_start))
    member.until(lambda: asked.is_done, "the purge")
    assert member.context.archive.answer(asked) == new_start // SEGMENT_LENGTH
    member.restart(keeps_writes=True)
    assert member.module.commit_position >= committed


def test_shutdown_takes_a_snapshot_and_ends(member: Member) -> None:
    member.context.counters.toggle.value = Toggle.SHUTDOWN
    member.until(lambda: member.module.has_terminated, "the end")
    assert member.module.failure is None
    assert member.context.counters.snapshot_count.value == 1
    term, snapshot = list(member.context.recording_log)
    assert term.log_position == snapshot.log_position == member.module.commit_position
    assert member.module.state is ModuleState.CLOSED


def test_abort_takes_none(member: Member) -> None:
    member.context.counters.toggle.value = Toggle.ABORT
    member.until(lambda: member.module.has_terminated, "the end")
    assert len(list(member.context.recording_log)) == 1


def member_that_ends_unrecorded(member: Member, monkeypatch: pytest.MonkeyPatch) -> int:
    """A member that is told to end while the archive lags behind; gives up to where the log is agreed upon."""
    member.until(lambda: member.module.commit_position > 0, "the first entry")
    committed = member.module.commit_position
    monkeypatch.setattr(LogRecording, "position", property(lambda _: committed))
    writer = member.module._term_log.leader.writer
    assert writer is not None
    assert writer.action(ClusterAction.SNAPSHOT, member.context.now, flags=1) is not None
    member.module.request(Toggle.ABORT)
    member.until(lambda: member.module.state is ModuleState.TERMINATING, "the beginning of the end")
    return committed


def test_a_term_ends_where_it_is_agreed_upon_or_nothing_is_said(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = member_that_ends_unrecorded(member, monkeypatch)
    member.until(lambda: member.module.has_terminated, "the end")
    [term] = list(member.context.recording_log)
    assert (term.log_position, member.module.commit_position) == (NULL_VALUE, committed)
    assert member.module.failure is None
    assert member.module.error_count == 1
    monkeypatch.undo()
    member.module.close()
    member.restart(keeps_writes=True)
    first, second = member.context.recording_log
    assert first.log_position == second.term_base_log_position > committed


def test_a_member_that_ends_comes_to_its_end_without_its_recording(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    member_that_ends_unrecorded(member, monkeypatch)
    recording_id = member.context.recording_log.last_term.recording_id
    asked = member.context.archive.ask(calls.stop_recording_by_id(recording_id))
    member.until(lambda: asked.is_done, "the stop of the recording")
    member.until(lambda: member.module.has_terminated, "the end")
    assert member.context.counters.election_count.value == 1
    assert member.module.failure is None
    assert member.module.state is ModuleState.CLOSED


def test_a_suspended_cluster_takes_nothing_until_it_is_resumed(member: Member, script: Script) -> None:
    script.connect()
    member.until(lambda: member.module.commit_position > 96, "the session in the log")
    member.context.counters.toggle.value = Toggle.SUSPEND
    member.until(lambda: member.module.state is ModuleState.SUSPENDED, "suspension")
    script.message(b"later")
    member.world.run_for(0.5)
    before = member.module.commit_position
    member.context.counters.toggle.value = Toggle.RESUME
    member.until(lambda: member.module.commit_position >= before + 96 + 96, "the message in the log")
    assert member.context.counters.toggle.value == Toggle.NEUTRAL


def test_a_suspended_cluster_is_suspended_after_a_restart(member: Member) -> None:
    member.context.counters.toggle.value = Toggle.SUSPEND
    member.until(lambda: member.module.state is ModuleState.SUSPENDED, "suspension")
    before = member.module.commit_position
    member.until(lambda: member.module.commit_position > before, "the action in the log")
    member.restart(keeps_writes=True)
    assert member.module.state is ModuleState.SUSPENDED


def test_a_log_that_is_recorded_no_more_brings_a_new_term(member: Member, script: Script) -> None:
    script.connect()
    recording_id = member.context.recording_log.last_term.recording_id
    asked = member.context.archive.ask(calls.stop_recording_by_id(recording_id))
    member.until(lambda: asked.is_done, "the stop of the recording")
    member.context.archive.answer(asked)
    member.until(lambda: member.module.leadership_term_id == 1 and member.module.is_leader, "a new term")
    told = script.answer()
    assert isinstance(told, NewLeaderEvent)
    assert (told.leadership_term_id, told.ingress_endpoints) == (1, "0=leader:9002")
    script.term_id = 1
    before = member.module.commit_position
    script.message(b"in the new term")
    member.until(lambda: member.module.commit_position > before, "the message in the log")


def test_a_silent_client_is_closed_and_counted(world: World) -> None:
    member = made_member(world, session_timeout_ns=2_000_000_000)
    script = Script(member, world.add_node("client"))
    script.connect()
    world.run_for(1.5)
    script.send(SessionKeepAlive(leadership_term_id=0, cluster_session_id=script.session_id))
    world.run_for(1.0)
    assert not script.poll()
    closed = script.answer()
    assert (closed.code, closed.detail) == (EventCode.CLOSED, "TIMEOUT")
    assert member.context.counters.timed_out_clients.value == 1


def test_a_client_that_is_gone_is_closed(member: Member, script: Script) -> None:
    script.connect()
    script.ingress.close()
    member.until(lambda: not len(member.context.applied.sessions), "the session closed")


def test_a_client_that_closes_is_told_nothing(member: Member, script: Script) -> None:
    script.connect()
    script.close_session()
    member.until(lambda: not len(member.context.applied.sessions), "the session closed")
    member.world.run_for(0.5)
    assert not script.poll()


def test_clients_above_the_limit_are_refused(world: World) -> None:
    member = made_member(world, max_sessions=1)
    first = Script(member, world.add_node("client"))
    first.connect()
    second = Script(member, world.add_node("other"))
    refused = second.connect()
    assert (refused.code, refused.detail) == (EventCode.ERROR, "concurrent session limit")
    assert refused.cluster_session_id == 2


def test_a_client_of_another_version_is_refused(member: Member, script: Script) -> None:
    refused = script.connect(version=1 << 16)
    assert (refused.code, refused.detail) == (
        EventCode.ERROR,
        "invalid client version 1.0.0, cluster is 0.3.0",
    )


def test_a_client_is_told_of_its_session_once_that_is_agreed_upon(member: Member, script: Script) -> None:
    """Else another client may get its id after a crash."""
    seen: set[bool] = set()

    def is_answered() -> bool:
        for session in member.context.applied.sessions:
            is_committed = member.context.commit_position >= session.opened_log_position
            seen.add(is_committed)
            assert is_committed or session.is_open_event_pending
        return bool(script.poll())

    script.send(script.request())
    member.until(is_answered, "an answer")
    assert seen == {False, True}


def test_a_client_whose_name_no_label_can_have_is_served(member: Member, script: Script) -> None:
    assert script.connect(client_info="a\tname\x00").code is EventCode.OK
    assert member.module.error_count == 0


def test_an_admin_request_needs_authorisation(member: Member, script: Script) -> None:
    script.connect()
    script.send(admin_request(script))
    answer = script.answer()
    assert answer.response_code is AdminResponseCode.UNAUTHORISED_ACCESS
    assert answer.message == "Execution of the SNAPSHOT request was not authorised"


def test_an_authorised_admin_request_takes_a_snapshot(world: World) -> None:
    member = made_member(world, authorisation=AllowAll())
    script = Script(member, world.add_node("client"))
    script.connect()
    script.send(admin_request(script))
    answer = script.answer()
    assert (answer.response_code, answer.correlation_id) == (AdminResponseCode.OK, 11)
    member.until(lambda: member.context.counters.snapshot_count.value == 1, "a snapshot")


def admin_request(script: Script) -> AdminRequest:
    return AdminRequest(
        leadership_term_id=script.term_id,
        cluster_session_id=script.session_id,
        correlation_id=11,
        request_type=AdminRequestType.SNAPSHOT,
    )


@pytest.mark.parametrize(
    "data",
    [b"", b"x", bytes(8), bytes(100), b"\xff" * 64, pack_header(0, 1, 0)[:20], pack_header(0, 1, 0)],
    ids=range(7),
)
def test_what_is_no_message_changes_nothing(member: Member, script: Script, data: bytes) -> None:
    script.send(data)
    assert script.connect().code is EventCode.OK
    assert member.module.error_count == 0


def test_a_channel_that_is_none_is_refused_by_silence(member: Member, script: Script) -> None:
    script.send(script.request(response_channel="nonsense"))
    script.send(script.request(response_channel="aeron:udp?endpoint=no-such-host:1"))
    assert script.connect(correlation_id=9).correlation_id == 9


def test_a_second_module_of_the_cluster_is_refused(member: Member) -> None:
    with pytest.raises(ClusterError, match="cluster_id=0: another consensus module"):
        ConsensusModule(
            driver=member.node, is_invoked=True, storage=member.node.disk("other"), **member.settings
        )


def test_a_second_start_deletes_nothing_of_a_member_that_runs(world: World, member: Member) -> None:
    disk = member.node.disk("cluster")
    before = {name: disk.length(name) for name in disk.names()}
    with pytest.raises(ClusterFileError, match="active mark file"):
        ConsensusModule(
            driver=member.node,
            is_invoked=True,
            storage=disk,
            directory_delete_on_start=True,
            **member.settings,
        )
    assert {name: disk.length(name) for name in disk.names()} == before
    member.restart(keeps_writes=True)
    assert member.module.leadership_term_id == 1


def test_a_module_says_where_its_mark_file_is_and_goes_on_from_it(world: World, tmp_path: Path) -> None:
    """An older member noted there in which term it had voted."""
    member = made_member(world, mark_file_directory=tmp_path)
    member.module.close()
    disk = member.node.disk("cluster")
    disk.delete("node-state.dat")
    with (tmp_path / MARK_NAME).open("r+b") as file:
        file.seek(40)
        file.write(struct.pack("<q", 9))
    member.restart(keeps_writes=True)
    assert member.module.leadership_term_id == 10
    mark = read_mark_fields(disk)
    assert mark is not None
    assert mark.activity_timestamp > 0
    assert not disk.length(MARK_NAME)


@pytest.mark.parametrize("left", [0, 1, 63])
def test_a_recording_log_that_was_lost_is_no_new_cluster(member: Member, script: Script, left: int) -> None:
    script.connect()
    member.module.close()
    disk = member.node.disk("cluster")
    with contextlib.closing(disk.open(RECORDING_LOG_NAME)) as file:
        file.set_length(left)
    member.node.crash(keeps_writes=True)
    member.node.start()
    member.start()
    member.until(lambda: member.module.failure, "a refusal")
    assert isinstance(member.module.failure, ClusterFileError)
    assert re.search(r"has a cluster's log up to position \d+ in recording 0", str(member.module.failure))


@pytest.mark.parametrize(
    "until",
    [
        lambda context, term_log: context.node_state.candidate_term.term_id == 0,
        lambda context, term_log: term_log.leader.session_id is not None,
        lambda context, term_log: any(one.type_id == RECORDING_POSITION for one in context.client.counters),
        lambda context, term_log: len(context.recording_log),
    ],
    ids=["voted", "log", "recording", "term"],
)
def test_a_first_start_that_is_killed_is_done_again(
    world: World, until: Callable[[Any, Any], object]
) -> None:
    """Of a recording without a term nothing was told to a client."""
    member = Member(world, world.add_node("leader"))
    member.until(lambda: until(member.context, member.module._term_log), "that step")
    member.restart(keeps_writes=True)


def test_a_start_that_deletes_begins_with_nothing(member: Member) -> None:
    member.module.close()
    member.settings["directory_delete_on_start"] = True
    member.restart(keeps_writes=True)
    assert member.module.leadership_term_id == 0
    assert [term.leadership_term_id for term in member.context.recording_log] == [0]


def test_what_goes_while_a_module_starts_is_none_of_its_services(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the services of a member before it, which were killed with it."""
    node = world.add_node("leader")
    other = node.connect().add_counter(1000, b"", "of a client before")

    def counters(client: Client, config: ConsensusModuleConfig) -> ModuleCounters:
        other.close()
        return ModuleCounters(client, config)

    monkeypatch.setattr(consensus_module, "ModuleCounters", counters)
    member = Member(world, node)
    member.await_leader()
    assert member.module.failure is None


def test_a_module_that_nothing_holds_is_gone(world: World) -> None:
    """Neither its client's handlers, nor those of its streams from clients, keep it."""
    node = world.add_node("leader")
    node.run_archive(segment_file_length=SEGMENT_LENGTH)
    settings = {"members": MEMBERS, "ingress_channel": "aeron:udp", "service_count": 0}
    module = ConsensusModule(driver=node, is_invoked=True, storage=node.disk("cluster"), **settings)
    held = [module]
    node.run(lambda: held[0].do_work() if held else 0)
    world.run_until(lambda: held[0].is_leader, within_s=30.0, what="a leader")
    seen = weakref.ref(module)
    del module
    held.clear()
    gc.collect()
    assert seen() is None


def test_what_a_client_is_told_while_the_module_starts_is_logged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, told = world.add_node("leader"), list[str]()
    connect = Client.connect

    def failing(*args: Any, on_error: Any, **keywords: Any) -> Client:
        on_error(HeadraceError("a fault of the client"))
        return connect(*args, on_error=on_error, **keywords)

    monkeypatch.setattr(Client, "connect", failing)
    member = Member(world, node, on_error=told.append)
    assert told == ["a fault of the client"]
    assert member.module.error_count == 1


def test_a_module_that_cannot_connect_says_so_in_its_mark_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, told = world.add_node("leader"), list[str]()

    def absent(*args: object, **keywords: object) -> Client:
        raise DriverTimeoutError("no driver")

    monkeypatch.setattr(Client, "connect", absent)
    with pytest.raises(DriverTimeoutError):
        ConsensusModule(
            driver=node,
            is_invoked=True,
            storage=node.disk("cluster"),
            on_error=told.append,
            members=MEMBERS,
            ingress_channel="aeron:ipc",
        )
    assert told == ["the consensus module cannot start: no driver"]
    mark = read_mark_fields(node.disk("cluster"))
    assert mark is not None
    assert mark.version == -1


def test_a_module_ends_with_its_archive(world: World) -> None:
    seen: list[tuple[bool, bool]] = []
    member = made_member(
        world, on_error=lambda _: seen.append((member.module.has_terminated, member.module.failure is None))
    )
    member.archive.close()
    member.until(lambda: member.module.has_terminated, "the end of the module")
    assert "archive is not connected" in str(member.module.failure)
    # An end is never seen without its reason.
    assert seen
    assert (True, True) not in seen


def test_a_module_ends_when_the_archive_has_no_room_for_the_log(world: World) -> None:
    member = made_member(world)
    script = Script(member, world.add_node("client"))
    script.connect()
    member.node.disk("archive").space = 0
    for _ in range(150):
        script.message(bytes(1000))
    member.until(lambda: member.module.failure, "the end of the module")
    assert "STORAGE_SPACE" in str(member.module.failure)
    member.node.disk("archive").space = 1 << 30
    member.restart(keeps_writes=True)


def test_a_module_ends_with_its_driver(member: Member) -> None:
    member.archive.close()
    member.node._driver.crash()
    with pytest.raises(HeadraceError):
        member.module.do_work()
    member.module.close()
    assert member.module.failure is not None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"members": None}, "members=None: is required"),
        ({"members": "0,nonsense"}, "or id,ingress,consensus,log,catchup,archive for each member"),
        ({"members": "leader,other"}, "is required in a cluster of several"),
        ({"members": MEMBERS, "member_id": 3}, "member_id=3: must be an id of members: 0"),
        ({"members": MEMBERS, "ingress_channel": None}, "ingress_channel=None: is required"),
        ({"members": MEMBERS, "member_endpoints": "a:1,b:2"}, "member_endpoints='a:1,b:2': must be"),
        ({"members": MEMBERS, "startup_canvass_timeout_ns": 1}, "at least twice leader_heartbeat_timeout_ns"),
        ({"members": MEMBERS, "log_channel": "aeron:udp?term-id=3"}, "must not have term-id"),
        ({"members": MEMBERS, "service_cuont": 3}, "did you mean service_count"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ConsensusModule(**{"ingress_channel": "aeron:udp"} | settings)


def test_a_flood_of_requests_is_bounded(world: World) -> None:
    member = made_member(world, session_timeout_ns=2_000_000_000)
    script = Script(member, world.add_node("client"))
    for number in range(200):
        script.send(
            script.request(
                correlation_id=number, response_channel=f"aeron:udp?endpoint=client:{9200 + number}"
            )
        )
    world.run_for(0.2)
    assert len(member.module._clients.opening) == member.module.config.max_sessions + 64
    member.until(lambda: not len(member.module._clients.opening), "the end of them")
    assert script.connect(correlation_id=777).correlation_id == 777


def test_a_session_that_never_hears_is_given_up(world: World) -> None:
    member = made_member(world, session_timeout_ns=1_000_000_000)
    script = Script(member, world.add_node("client"))
    script.send(script.request(response_channel="aeron:udp?endpoint=client:9999"))
    member.until(lambda: len(member.module._clients.opening), "the request")
    member.until(lambda: not len(member.module._clients.opening), "the end of it")
    assert member.context.counters.timed_out_clients.value == 1
    assert SessionState.OPEN not in [session.state for session in member.context.applied.sessions]


def test_a_counter_in_the_place_of_a_recordings_is_not_gone_by(world: World) -> None:
    """The clock is set forwards, and the driver gives the id to another counter before the module looks again."""
    node = world.add_node("leader")
    client = node.connect()
    position = client.add_counter(RECORDING_POSITION, b"", "how far it is recorded")
    position.value = 64
    stream = RecordedStream(0, position.counter_id, position.registration_id, 0)
    assert (stream.position(client), stream.is_active(client)) == (64, True)
    position.close()
    world.run_for(0.01)
    node.jump_clock(1.5)
    other = client.add_counter(RECORDING_POSITION, b"", "another")
    other.value = 1 << 40
    assert other.counter_id == stream.counter_id
    assert (stream.position(client), stream.is_active(client)) == (0, False)


def test_an_entry_that_names_an_older_snapshot_ends_the_start(member: Member, script: Script) -> None:
    counters = member.context.counters
    for change in (script.connect, lambda: None):
        count = counters.snapshot_count.value
        counters.toggle.value = Toggle.SNAPSHOT
        member.until(lambda count=count: counters.snapshot_count.value > count, "a snapshot")  # type: ignore[misc]
        change()
    log = member.context.recording_log
    older, newer = (entry for entry in log if entry.is_snapshot)
    log.append_snapshot(dataclasses.replace(newer, recording_id=older.recording_id))
    member.node.crash(keeps_writes=True)
    member.node.start()
    member.start()
    member.until(lambda: member.module.has_terminated, "the end of the module")
    words = f"its entry in the recording log has log_position={newer.log_position}"
    assert (
        f"log_position={older.log_position}, and {words}; `headrace cluster invalidate-latest-snapshot"
        in str(member.module.failure)
    )


def test_a_recording_log_that_was_cut_has_the_terms_again_that_the_log_has(
    member: Member, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    member.restart(keeps_writes=True)
    counters = member.context.counters
    counters.toggle.value = Toggle.SNAPSHOT
    member.until(lambda: counters.snapshot_count.value == 1, "a snapshot")
    terms = [entry for entry in member.context.recording_log if entry.is_term]
    first = terms[0]
    member.node.crash(keeps_writes=True)
    with contextlib.closing(member.node.disk("cluster").open(RECORDING_LOG_NAME)) as file:
        file.set_length(first.length)
    member.node.start()
    with caplog.at_level(logging.INFO):
        member.start()
        member.await_leader()
    found = [entry for entry in member.context.recording_log if entry.is_term]
    bases = [(entry.leadership_term_id, entry.term_base_log_position) for entry in found]
    assert bases[:2] == [(entry.leadership_term_id, entry.term_base_log_position) for entry in terms]
    assert [entry.leadership_term_id for entry in member.context.recording_log if entry.is_snapshot] == [1]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


# In the length, the offset and the schema of the second entry of the log.
@pytest.mark.parametrize("offset", [97, 104, 96 + 36])
def test_a_damaged_log_ends_the_start_and_says_so(member: Member, script: Script, offset: int) -> None:
    script.connect()
    script.message(bytes(100))
    member.until(lambda: member.module.commit_position > 96 + 160, "the message in the log")
    member.module.close()
    member.archive.close()
    member.node.crash(keeps_writes=True)
    disk = member.node.disk("archive")
    (name,) = [name for name in disk.names() if name.startswith("0-")]
    with contextlib.closing(disk.open(name)) as file:
        file.write(offset, bytes([file.read(offset, 1)[0] ^ 1]))
    member.node.start()
    member.start()
    member.until(lambda: member.module.failure, "the end of the module")
    assert isinstance(member.module.failure, ClusterTerminalError)
    assert "the log is damaged after position" in str(member.module.failure)
    assert "restore the archive's directory and the cluster's from one copy" in str(member.module.failure)


def test_a_service_that_has_two_containers_is_named(world: World) -> None:
    member = Member(world, world.add_node("leader"), service_count=1)
    clients, config = [member.node.connect() for _ in range(2)], member.module.config
    # Without one, the module has nothing that it could ask to join.
    service = clients[0].add_subscription(config.control_channel, config.service_stream_id)
    member.until(lambda: find(clients[0], ClusterCounter.RECOVERY_STATE, 0), "a module that takes services")
    for client in clients:
        control = client.add_publication(config.control_channel, config.consensus_module_stream_id)
        ack = ServiceAck(log_position=0, timestamp=0, ack_id=0, relevant_id=client.client_id, service_id=0)
        member.until(lambda to=control, ack=ack: to.offer(encode(ack)) > 0, "the control stream")  # type: ignore[misc]
    member.until(lambda: member.module.failure is not None, "the end of the module")
    assert service.is_connected
    assert isinstance(member.module.failure, ClusterTerminalError)
    assert (
        f"service_id=0 has two containers, of the clients {clients[0].client_id} and {clients[1].client_id}"
        in str(member.module.failure)
    )
