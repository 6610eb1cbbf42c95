"""The container of a service, driven by a scripted consensus module: log to handler, answers, acknowledgements."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.cluster import ServiceContainer
from headrace.cluster.common.counters import ClusterCounter
from headrace.cluster.errors import ClusterFileError
from headrace.cluster.files.mark_file import read_mark_fields, service_mark_name
from headrace.cluster.protocol.codes import CloseReason, Role
from headrace.cluster.protocol.control import CancelTimer, CloseSession, JoinLog, ScheduleTimer
from headrace.cluster.protocol.header import HEADER_LENGTH, unpack_header
from headrace.cluster.protocol.log import SessionOpenEvent
from headrace.cluster.protocol.messages import encode
from headrace.testing import World
from tests.cluster.scripted import EGRESS, LOG, TERM, Recorder, Rig

EVENT = SessionOpenEvent(
    leadership_term_id=TERM,
    correlation_id=1,
    cluster_session_id=8,
    timestamp=0,
    response_stream_id=102,
    response_channel=EGRESS,
)


@pytest.fixture
def rig() -> Iterator[Rig]:
    with World(7) as world:
        yield Rig(world)


def test_a_service_starts_without_a_snapshot_and_acknowledges_with_its_client(rig: Rig) -> None:
    service = Recorder()
    container = rig.container(service)
    rig.world.run_for(1)
    assert service.calls == []
    module = rig.module()
    ack = module.acked()
    assert service.calls == [("on_start", None)]
    assert container._client is not None
    assert (ack.log_position, ack.relevant_id, ack.service_id) == (0, container._client.client_id, 0)


def test_entries_come_in_order_with_their_times_and_positions(rig: Rig) -> None:
    service = Recorder()
    module, container = rig.started(service)
    assert service.names() == ["on_start", "on_role_change"]
    del service.calls[:]
    positions = [
        module.term(),
        module.open(5, 10),
        module.message(5, b"one", 11),
        module.message(-(1 << 63) + 1, b"self", 12),
        module.timer(77, 13),
        module.close_session(5, 14),
    ]
    rig.until(lambda: len(service.calls) == 6)
    assert [call[0] for call in service.calls[:1]] == ["on_new_leadership_term"]
    assert service.calls[1:] == [
        ("on_session_open", 5, 10, b"who"),
        ("on_session_message", 5, 11, b"one", positions[2]),
        ("on_session_message", None, 12, b"self", positions[3]),
        ("on_timer_event", 77, 13),
        ("on_session_close", 5, 14, CloseReason.TIMEOUT),
    ]
    cluster = service.cluster
    assert cluster is not None
    assert (cluster.time, cluster.log_position, cluster.member_id) == (14, positions[5], 2)
    assert (cluster.leadership_term_id, cluster.role, cluster.sessions) == (TERM, Role.LEADER, ())
    fields = read_mark_fields(rig.node.disk("cluster"), service_mark_name(0))
    assert fields is not None
    assert (fields.member_id, fields.service_id, fields.component) == (2, 0, "CONTAINER")
    assert rig.errors == []
    assert container.failure is None


def test_a_container_that_waits_beside_another_clusters_module_names_it(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    id_of_another = (7).to_bytes(4, "little")
    with (
        rig.node.connect() as client,
        client.add_counter(ClusterCounter.MODULE_STATE, id_of_another, "another's module"),
    ):
        container = ServiceContainer(
            Recorder(), driver=rig.node, is_invoked=True, storage=rig.node.disk("cluster")
        )
        rig.node.run(container.do_work)
        rig.until(lambda: "cluster_id=0; on this driver runs that of cluster_id=7" in caplog.text)


def test_a_container_says_where_its_mark_file_is(rig: Rig, tmp_path: Path) -> None:
    rig.started(Recorder(), mark_file_directory=tmp_path)
    disk, name = rig.node.disk("cluster"), service_mark_name(0)
    assert not disk.length(name)
    fields = read_mark_fields(disk, name)
    assert fields is not None
    assert fields.activity_timestamp > 0


def test_a_container_that_nothing_holds_is_gone(rig: Rig) -> None:
    """While it reads a log: its client's handlers do not keep it."""
    module, service = rig.module(), Recorder()
    container = ServiceContainer(service, driver=rig.node, is_invoked=True, storage=rig.node.disk("cluster"))
    held = [container]
    rig.node.run(lambda: held[0].do_work() if held else 0)
    assert module.acked().relevant_id > 0
    module.recovery.close()
    module.join()
    module.term()
    rig.until(lambda: service.calls)
    seen = weakref.ref(container)
    del container
    held.clear()
    # The test holds the service, which holds what it was given.
    vars(service).clear()
    gc.collect()
    assert seen() is None


def test_nothing_beyond_the_commit_position_is_read(rig: Rig) -> None:
    service = Recorder()
    module, _ = rig.started(service)
    module.term()
    committed = module.message(1, b"committed")
    module.message(1, b"not yet", commit=False)
    rig.world.run_for(0.5)
    assert service.state == [b"committed"]
    module.commit.value = committed + 64
    rig.until(lambda: len(service.state) == 2)


def test_the_first_answer_finds_the_stream_to_the_client(rig: Rig) -> None:
    service = Recorder()
    answers = rig.node.connect().add_subscription(EGRESS, 102)
    module, _ = rig.started(service)
    module.term()
    # As the consensus module does, which confirms the session before it is in the log.
    own = module.client.add_publication(EGRESS, 102)
    rig.until(lambda: own.is_connected)
    module.open(5, 10)
    module.message(5, b"question", 11)
    heard: list[bytes] = []
    rig.until(lambda: answers.poll(lambda data, _: heard.append(data)))
    assert unpack_header(heard[0]) == (TERM, 5, 11)
    assert heard[0][HEADER_LENGTH:] == b"re:question"


def test_a_member_that_does_not_lead_sends_nothing_and_says_it_did(rig: Rig) -> None:
    service = Recorder()
    module = rig.module()
    rig.container(service)
    module.acked()
    module.join(Role.FOLLOWER)
    module.term()
    module.open(5)
    module.message(5, b"question")
    rig.until(lambda: service.answers)
    assert service.answers == [1]
    assert "on_role_change" not in service.names()


def test_a_service_schedules_closes_and_sends_to_itself(rig: Rig) -> None:
    class Acting(Recorder):
        def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
            cluster = self.cluster
            assert cluster is not None
            assert cluster.schedule_timer(1, 100)
            assert cluster.cancel_timer(2)
            assert cluster.offer(b"to self") == 1
            session = cluster.session(5)
            assert session is not None
            assert session.close()
            assert session.close()
            assert session.is_closing
            with pytest.raises(Exception, match="unknown cluster_session_id=6"):
                cluster.close_session(6)
            with pytest.raises(Exception, match="deadline=9223372036854775807"):
                cluster.schedule_timer(1, (1 << 63) - 1)

    module, _ = rig.started(Acting())
    module.term()
    module.open(5)
    module.timer(9, 50)
    assert module.next(ScheduleTimer) == ScheduleTimer(correlation_id=1, deadline=100)
    assert module.next(CancelTimer) == CancelTimer(correlation_id=2)
    assert module.next(tuple) == (0, b"to self")
    assert module.next(CloseSession) == CloseSession(cluster_session_id=5)
    rig.world.run_for(0.1)
    assert rig.errors == []


def test_no_request_is_refused_and_all_come_in_order_before_the_log_is_read_on(rig: Rig) -> None:
    count = 3000

    class Asking(Recorder):
        def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
            super().on_timer_event(correlation_id, timestamp)
            cluster = self.cluster
            assert cluster is not None
            if correlation_id == 9:
                assert all(cluster.schedule_timer(number, 100) for number in range(count))
                assert cluster.offer([b"to ", b"self"]) > 0

    service = Asking()
    module, _ = rig.started(service)
    module.term()
    module.timer(9, 50)
    rig.until(lambda: "on_timer_event" in service.names())
    position = module.timer(10, 51)
    module.ask_ack(position)
    rig.world.run_for(0.1)
    assert service.names().count("on_timer_event") == 1
    for number in range(count):
        assert module.next(ScheduleTimer) == ScheduleTimer(correlation_id=number, deadline=100)
    assert module.next(tuple) == (0, b"to self")
    assert module.acked().log_position == position
    assert service.names().count("on_timer_event") == 2
    assert rig.errors == []


def test_a_message_to_the_cluster_that_the_log_does_not_take_is_refused(rig: Rig) -> None:
    lengths = []

    class Sending(Recorder):
        def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
            assert self.cluster is not None
            lengths.append(correlation_id)
            self.cluster.offer(b"x" * correlation_id)

    module, _ = rig.started(Sending(), control_channel="aeron:ipc?term-length=1m")
    longest = module.log.max_message_length - HEADER_LENGTH
    module.term()
    module.timer(longest, 1)
    module.timer(longest + 1, 2)
    rig.until(lambda: len(lengths) == 2)
    assert module.next(tuple) == (0, b"x" * longest)
    (error,) = rig.errors
    assert f"message of length={longest + 1}: must be at most {longest}, which the log takes" in error


def test_callbacks_that_are_no_entries_may_not_send(rig: Rig) -> None:
    class Sending(Recorder):
        def on_role_change(self, role: Role) -> None:
            assert self.cluster is not None
            self.cluster.offer(b"x")

        def do_background_work(self, now_ns: int) -> int:
            if not rig.errors:
                return 0
            assert self.cluster is not None
            self.cluster.schedule_timer(1, 1)
            return 0

    rig.started(Sending())
    rig.until(lambda: len(rig.errors) > 1)
    for name, error in zip(("on_role_change", "do_background_work"), rig.errors, strict=False):
        assert f"sending messages or scheduling timers is not allowed from {name}" in error


@pytest.mark.parametrize(
    "name", ["on_session_message", "on_timer_event", "on_session_open", "on_new_leadership_term"]
)
def test_what_a_handler_raises_is_told_and_its_entry_is_consumed(rig: Rig, name: str) -> None:
    service = Recorder()
    service.raises[name] = ValueError("no such thing")
    module, container = rig.started(service)
    module.term()
    module.open(5)
    module.message(5, b"one")
    module.timer(7, 1)
    module.message(5, b"two")
    rig.until(lambda: service.state == [b"one", b"two"])
    assert (
        f"{name} of service_id=0 raised ValueError('no such thing'), first at log_position=" in rig.errors[0]
    )
    assert service.names().count(name) == len(rig.errors) == container.error_count
    assert container._counters.errors.value == container.error_count


@pytest.mark.parametrize("in_batches", [False, True])
def test_an_entry_that_is_none_is_told_and_passed_over(rig: Rig, in_batches: bool) -> None:
    service = Recorder()
    if in_batches:
        service.on_session_messages = lambda batch: service.state.extend(batch)  # type: ignore[attr-defined]
    module, container = rig.started(service)
    module.term()
    position = module.append(b"x")
    for wrong in (b"of no schema, and longer than a header", bytes(8), b"", encode(EVENT)[:-30]):
        module.append(wrong)
    # Of a template that is not known: of a later version.
    module.append(encode(EVENT)[:2] + b"\xe7\x03" + encode(EVENT)[4:])
    module.message(1, b"good")
    rig.until(lambda: service.state == [b"good"])
    assert len(rig.errors) == 5
    assert f"an entry of the log does not belong to a cluster: log_position={position}: " in rig.errors[0]
    assert container.failure is None


def test_views_are_given_by_choice_and_end_with_the_call(rig: Rig) -> None:
    class Viewing(Recorder):
        message_views = True
        kept: object = None

        def on_session_message(self, session, timestamp, message, position) -> None:  # type: ignore[no-untyped-def]
            assert isinstance(message, memoryview)
            self.kept = message
            super().on_session_message(session, timestamp, message, position)

    service = Viewing()
    module, _ = rig.started(service)
    module.term()
    module.message(1, b"seen")
    rig.until(lambda: service.state == [b"seen"])
    with pytest.raises(ValueError, match="released"):
        bytes(service.kept)  # type: ignore[call-overload]
    assert rig.errors == []


def test_positions_are_acknowledged_once_they_are_reached(rig: Rig) -> None:
    service = Recorder()
    module, _ = rig.started(service)
    position = module.term()
    module.ask_ack(position + 64)
    rig.world.run_for(0.1)
    assert module.heard == []
    module.message(1, b"x")
    ack = module.acked()
    assert (ack.log_position, ack.relevant_id) == (position + 64, -1)


def test_a_log_that_does_not_go_on_where_the_service_is_ends_it(rig: Rig) -> None:
    service = Recorder()
    module = rig.module()
    container = rig.container(service)
    module.acked()
    module.send(
        JoinLog(
            log_position=96,
            max_log_position=1 << 40,
            member_id=0,
            log_session_id=module.log.session_id,
            log_stream_id=100,
            is_startup=False,
            role=0,
            log_channel=LOG,
        )
    )
    rig.until(lambda: container.failure is not None)
    assert "must be contiguous: the service is at log_position=0, is to join at 96" in str(container.failure)
    assert container.is_closed


def test_a_session_that_is_opened_twice_ends_the_container(rig: Rig) -> None:
    module, container = rig.started(Recorder())
    module.term()
    module.open(5)
    module.open(5)
    rig.until(lambda: container.failure is not None)
    assert "cluster_session_id=5 is opened twice" in str(container.failure)
    assert container.do_work() == 0


def test_another_major_version_or_unit_of_time_ends_the_container(rig: Rig) -> None:
    module, container = rig.started(Recorder())
    module.term(app_version=1 << 16)
    rig.until(lambda: container.failure is not None)
    assert "the leader has 1.0.0, and the service 0.0.1" in str(container.failure)


def test_another_unit_of_time_ends_the_container(rig: Rig) -> None:
    module, container = rig.started(Recorder())
    module.term()
    module.term(time_unit=2)
    rig.until(lambda: container.failure is not None)
    assert "incompatible time unit: NANOS, where timestamps were in MILLIS" in str(container.failure)


def test_it_ends_in_order_where_it_is_told_to(rig: Rig) -> None:
    service = Recorder()
    module, container = rig.started(service)
    end = module.term()
    module.end(end)
    ack = module.acked()
    assert (ack.log_position, ack.relevant_id) == (end, -1)
    rig.until(lambda: container.is_closed)
    assert service.calls[-1] == ("on_terminate",)
    assert container.failure is None
    fields = read_mark_fields(rig.node.disk("cluster"), service_mark_name(0))
    assert fields is not None
    assert (fields.version, fields.activity_timestamp) == (768, -1)


def test_it_ends_when_the_module_is_gone(rig: Rig) -> None:
    service = Recorder()
    module, container = rig.started(service)
    module.client.close()
    rig.until(lambda: container.is_closed)
    assert service.calls[-1] == ("on_terminate",)
    assert container.failure is None


def test_a_position_that_is_past_ends_it_unexpectedly(rig: Rig) -> None:
    service = Recorder()
    module, container = rig.started(service)
    module.term()
    rig.until(lambda: "on_new_leadership_term" in service.names())
    module.end(0)
    module.acked()
    rig.until(lambda: container.failure is not None)
    assert "ends at log_position=96, after 0" in str(container.failure)


def test_it_ends_when_the_module_is_gone_before_the_log_came(rig: Rig) -> None:
    service = Recorder()
    module = rig.module()
    container = rig.container(service)
    module.acked()
    module.send(
        JoinLog(
            log_position=0,
            max_log_position=1 << 40,
            member_id=0,
            log_session_id=module.log.session_id + 1,
            log_stream_id=100,
            is_startup=False,
            role=0,
            log_channel=LOG,
        )
    )
    rig.world.run_for(1)
    assert not container.is_closed
    module.client.close()
    rig.until(lambda: container.is_closed)
    assert service.calls[-1] == ("on_terminate",)
    assert container.failure is None


def test_it_waits_for_a_module_where_it_found_the_counter_of_one_that_was_killed(rig: Rig) -> None:
    """Which the driver frees once it has noticed; nothing was taken over from that one."""
    service = Recorder()
    killed = rig.module()
    killed.recovery.close()
    rig.world.run_for(0.1)
    container = rig.container(service)
    rig.until(lambda: container._commit is not None)
    killed.client.close()
    rig.world.run_for(1)
    assert not container.is_closed
    module = rig.module()
    assert module.acked().relevant_id > 0
    module.recovery.close()
    module.join()
    module.term()
    rig.until(lambda: "on_new_leadership_term" in service.names())
    assert service.names().count("on_start") == 1
    assert container.failure is None


def test_a_second_container_of_a_service_is_refused(rig: Rig) -> None:
    rig.container(Recorder())
    with pytest.raises(ClusterFileError, match="active mark file: "):
        rig.container(Recorder())
    rig.container(Recorder(), service_id=1)


def test_a_service_that_cannot_start_says_so(rig: Rig) -> None:
    service = Recorder()
    service.raises["on_start"] = ValueError("not today")
    module = rig.module()
    container = rig.container(service)
    assert module.acked().relevant_id == -1
    rig.until(lambda: container.failure is not None)
    assert "cannot start at log_position=0: ValueError('not today')" in str(container.failure)
    assert "on_terminate" not in service.names()


def test_closing_it_tells_the_service(rig: Rig) -> None:
    service = Recorder()
    _, container = rig.started(service)
    container.close()
    container.close()
    assert service.names().count("on_terminate") == 1


@pytest.mark.parametrize("name", ["on_session_open", "on_session_message", "on_take_snapshot"])
def test_a_handler_may_close_a_container_that_is_stepped(rig: Rig, name: str) -> None:
    """It closes after the turn: a handler is not told to end while another one runs."""
    service = Recorder()
    containers: list[ServiceContainer] = []
    seen: list[bool] = []

    def close(*_: object) -> None:
        (container,) = containers
        container.close()
        seen.append(container.is_closed or "on_terminate" in service.names())

    setattr(service, name, close)
    module, container = rig.started(service)
    containers.append(container)
    module.term()
    module.open(5)
    module.message(5, b"one")
    module.snapshot()
    rig.until(lambda: container.is_closed)
    assert seen == [False]
    assert service.names().count("on_terminate") == 1
    assert container.failure is None
    container.close()
