"""The parts of a consensus module that own no stream, file or clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import ConfigError
from headrace._base.states import NoEvents
from headrace.cluster.common.members import ingress_endpoints, members_text, parse_members
from headrace.cluster.common.snapshots import SnapshotPoint
from headrace.cluster.errors import ClusterError
from headrace.cluster.member.applied import Applied
from headrace.cluster.member.egress import egress_channel
from headrace.cluster.member.pending_messages import PendingMessages, service_id_of
from headrace.cluster.member.snapshot_format import SnapshotLoader, snapshot_messages
from headrace.cluster.member.states import ModuleState
from headrace.cluster.member.timers import Timers
from headrace.cluster.protocol.codes import CloseReason, ClusterTimeUnit
from headrace.cluster.protocol.log import SessionOpenEvent

MEMBER = "3,a:1,b:2,c:3,d:4,e:5"


# --- timers ----------------------------------------------------------------------------------------------------------


def fired(timers: Timers, now: int, room: int = 100) -> list[int]:
    ids: list[int] = []

    def fire(correlation_id: int) -> int | None:
        if len(ids) == room:
            return None
        ids.append(correlation_id)
        return 1000 + len(ids)

    timers.poll(now, fire)
    return ids


def test_timers_fire_in_the_order_of_their_deadlines_and_not_before() -> None:
    timers = Timers()
    for correlation_id, deadline in ((1, 30), (2, 10), (3, 20), (4, 99)):
        timers.schedule(correlation_id, deadline)
    assert fired(timers, 30) == [2, 3, 1]
    assert list(timers) == [(4, 99)]


@pytest.mark.parametrize("is_polled", [True, False])
def test_timers_that_are_moved_or_cancelled_take_no_memory(is_polled: bool) -> None:
    """As a time-out does that each message moves, after one that fires soon; a replay polls none."""
    timers = Timers()
    timers.schedule(1, 10)
    for number in range(5000):
        timers.schedule(2, 1000 + number)
        timers.schedule(10 + number, 20)
        if number >= 3:
            timers.cancel(10 + number - 3)
        if is_polled:
            timers.poll(5, lambda timer_id: timer_id)
    assert len(timers) == 5
    assert len(timers._heap) <= 3 * len(timers) + 65
    assert fired(timers, 5999) == [1, 5007, 5008, 5009, 2]


def test_a_timer_that_is_scheduled_again_fires_once_at_its_last_deadline() -> None:
    timers = Timers()
    timers.schedule(1, 10)
    timers.schedule(1, 50)
    assert fired(timers, 49) == []
    assert fired(timers, 50) == [1]
    assert fired(timers, 1000) == []


def test_a_cancelled_timer_does_not_fire() -> None:
    timers = Timers()
    timers.schedule(1, 10)
    assert timers.cancel(1)
    assert not timers.cancel(1)
    assert fired(timers, 10) == []


def test_without_room_in_the_log_a_timer_stays() -> None:
    timers = Timers()
    timers.schedule(1, 10)
    timers.schedule(2, 10)
    assert fired(timers, 10, room=1) == [1]
    assert fired(timers, 10) == [2]


def test_twenty_timers_fire_in_a_turn() -> None:
    timers = Timers()
    for correlation_id in range(50):
        timers.schedule(correlation_id, 1)
    assert [len(fired(timers, 1)) for _ in range(4)] == [20, 20, 10, 0]


def test_an_event_in_the_log_is_of_a_timer_that_was_due() -> None:
    timers = Timers()
    timers.schedule(7, 10)
    timers.fired(7, 10)
    assert list(timers) == []
    timers.schedule(7, 20)
    timers.fired(7, 19)
    assert list(timers) == [(7, 20)]
    timers.fired(8, 30)
    assert list(timers) == [(7, 20)]


@given(st.data())
def test_a_replay_has_the_timers_that_the_leader_had(data: st.DataObject) -> None:
    """A service asks, its requests come late, the leader lets fire what is due; a replay has the requests in time."""
    leader, replay = Timers(), Timers()
    log: list[tuple[int, int, int]] = []
    under_way: list[tuple[int, int]] = []
    read = now = 0
    numbers = st.integers(0, 3)
    for _ in range(data.draw(st.integers(0, 40))):
        act = data.draw(st.sampled_from(["ask", "ask", "read", "take", "fire", "fire"]))
        if act == "ask":
            delay = data.draw(st.integers(-1, 5))
            log.append((data.draw(numbers), 0 if delay < 0 else now + delay, -1))
        elif act == "read" and read < len(log):
            timer_id, deadline, timestamp = log[read]
            read += 1
            if timestamp < 0:
                under_way.append((timer_id, deadline))
        elif act == "take" and under_way:
            _ask(leader, *under_way.pop(0))
        elif act == "fire":
            now += data.draw(numbers)
            log.extend((timer_id, 0, now) for timer_id in fired(leader, now))
    for timer_id, deadline, timestamp in log[read:]:
        if timestamp < 0:
            under_way.append((timer_id, deadline))
    for timer_id, deadline in under_way:
        _ask(leader, timer_id, deadline)
    for timer_id, deadline, timestamp in log:
        if timestamp < 0:
            _ask(replay, timer_id, deadline)
        else:
            replay.fired(timer_id, timestamp)
    had, has = dict(leader), dict(replay)
    assert has.items() <= had.items()
    for timer_id, deadline in had.items() - has.items():
        # The service has heard of this one, after it asked and not before the deadline: it is not to fire again.
        asked = max(i for i, one in enumerate(log) if one == (timer_id, deadline, -1))
        assert any(one[0] == timer_id and one[2] >= deadline for one in log[asked:])


def _ask(timers: Timers, timer_id: int, deadline: int) -> None:
    if deadline:
        timers.schedule(timer_id, deadline)
    else:
        timers.cancel(timer_id)


def test_what_fired_and_was_not_committed_fires_again() -> None:
    timers = Timers()
    timers.schedule(1, 10)
    timers.schedule(2, 10)
    fired(timers, 10)
    timers.committed(1001)
    timers.restore_uncommitted()
    assert fired(timers, 10) == [2]


def test_a_timer_that_fires_again_waits_for_its_deadline_on_a_clock_that_was_set_back() -> None:
    timers = Timers()
    timers.schedule(1, 10)
    assert fired(timers, 12) == [1]
    timers.restore_uncommitted()
    assert fired(timers, 9) == []
    assert fired(timers, 10) == [1]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20), st.booleans()), max_size=40))
def test_timers_agree_with_a_dictionary(actions: list[tuple[int, int, bool]]) -> None:
    timers, model = Timers(), dict[int, int]()
    for correlation_id, deadline, is_scheduled in actions:
        if is_scheduled:
            timers.schedule(correlation_id, deadline)
            model[correlation_id] = deadline
        else:
            timers.cancel(correlation_id)
            model.pop(correlation_id, None)
    assert dict(timers) == model
    assert sorted(fired(timers, 20)) == sorted(model)


# --- messages of services --------------------------------------------------------------------------------------------


def appended(pending: PendingMessages, first_position: int = 100) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []

    def append(session_id: int, payload: bytes) -> int:
        found.append((session_id, payload))
        return first_position * len(found)

    pending.poll(append)
    return found


def test_messages_of_a_service_have_ids_that_name_it() -> None:
    pending = PendingMessages(5)
    pending.add(b"a")
    pending.add(b"b")
    ids = [session_id for session_id, _ in appended(pending)]
    assert ids == [-(1 << 63) + (5 << 56) + 1, -(1 << 63) + (5 << 56) + 2]
    assert {service_id_of(session_id) for session_id in ids} == {5}


def test_a_message_is_appended_once_and_again_if_it_was_not_committed() -> None:
    pending = PendingMessages(0)
    pending.add(b"a")
    pending.add(b"b")
    assert [payload for _, payload in appended(pending)] == [b"a", b"b"]
    assert not pending.has_unsent
    assert appended(pending) == []
    pending.committed(100)
    pending.restore_uncommitted()
    assert [payload for _, payload in appended(pending)] == [b"b"]


def test_what_the_log_has_already_is_not_kept() -> None:
    pending = PendingMessages(0)
    pending.logged(-(1 << 63) + 1)
    pending.add(b"late")
    assert len(pending) == 0
    pending.add(b"new")
    assert len(pending) == 1


def test_more_than_there_is_room_for_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.cluster.member.pending_messages._BYTES_MAX", 3)
    pending = PendingMessages(0)
    pending.add(b"abc")
    with pytest.raises(ClusterError, match="service_id=0 has 3 bytes of messages to itself waiting"):
        pending.add(b"d")


# --- snapshots -------------------------------------------------------------------------------------------------------

POINT = SnapshotPoint(960, 2, ClusterTimeUnit.MILLIS, 1)


def filled() -> Applied:
    applied = Applied(2, NoEvents())
    for session_id in (1, 4, 9):
        event = SessionOpenEvent(
            leadership_term_id=0,
            correlation_id=session_id * 10,
            cluster_session_id=session_id,
            timestamp=5,
            response_stream_id=102,
            response_channel=f"aeron:udp?endpoint=client:{session_id}",
        )
        applied.sessions.logged_open(event, 100 * session_id)
    closing = applied.sessions.get(4)
    assert closing is not None
    applied.sessions.close(closing, CloseReason.SERVICE_ACTION, "a service closes it")
    applied.timers.schedule(77, 1234)
    applied.timers.schedule(78, 99)
    applied.pending[1].add(b"to myself")
    applied.pending[1].add(b"x" * 3000)
    return applied


def stored(applied: Applied) -> list[bytes]:
    return list(snapshot_messages(POINT, applied.sessions, applied.timers, applied.pending))


def loaded(messages: list[bytes], point: SnapshotPoint = POINT) -> Applied:
    applied = Applied(2, NoEvents())
    loader = SnapshotLoader(point, applied.sessions, applied.timers, applied.pending)
    for message in messages:
        loader.take(message)
    assert loader.is_done
    return applied


def test_a_snapshot_gives_back_what_it_was_taken_of() -> None:
    before = filled()
    after = loaded(stored(before))
    assert [session.stored() for session in after.sessions] == [
        session.stored() for session in before.sessions
    ]
    assert after.sessions.next_id == 10
    assert list(after.timers) == list(before.timers)
    assert [list(pending) for pending in after.pending] == [list(pending) for pending in before.pending]
    assert stored(after) == stored(before)


@pytest.mark.parametrize(
    ("point", "words"),
    [
        (SnapshotPoint(960, 2, ClusterTimeUnit.NANOS, 1), "incompatible time unit"),
        (SnapshotPoint(960, 2, ClusterTimeUnit.MILLIS, 2 << 16), "incompatible version"),
        (SnapshotPoint(992, 2, ClusterTimeUnit.MILLIS, 1), "has log_position=960, and .* log_position=992"),
        (
            SnapshotPoint(960, 3, ClusterTimeUnit.MILLIS, 1),
            "has leadership_term_id=2, .* leadership_term_id=3",
        ),
    ],
)
def test_a_snapshot_of_another_kind_is_refused(point: SnapshotPoint, words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        loaded(stored(filled()), point)


@pytest.mark.parametrize("dropped", [0, 1, 3, 5, 8, 9])
def test_a_snapshot_with_a_hole_is_refused_or_not_done(dropped: int) -> None:
    messages = stored(filled())
    del messages[dropped]
    with pytest.raises((ClusterError, AssertionError)):
        assert stored(loaded(messages)) == stored(filled())


# --- members and channels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("further", ["", ",f:6", ",f:6,g:7"])
def test_members_are_read_and_written(further: str) -> None:
    text = f"{MEMBER}{further}|4,a:7,b:8,c:9,d:10,e:11"
    members = parse_members(text + "|")
    assert members_text(members) == text
    assert ingress_endpoints(members) == "3=a:1,4=a:7"


@pytest.mark.parametrize(
    "text", ["", "3,a:1", f"x{MEMBER}", f"{MEMBER},f:6,g:7,h:8", "3,a,b,c,d,e", f"{MEMBER}|{MEMBER}"]
)
def test_members_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="members="):
        parse_members(text)


@pytest.mark.parametrize(
    ("template", "wanted", "is_ipc_allowed", "channel"),
    [
        (None, "aeron:udp?endpoint=a:1", False, "aeron:udp?endpoint=a:1"),
        ("aeron:udp?mtu=1408", "aeron:udp?endpoint=a:1", False, "aeron:udp?endpoint=a:1|mtu=1408"),
        ("aeron:udp?endpoint=b:2", "aeron:udp?endpoint=a:1", False, "aeron:udp?endpoint=b:2"),
        ("aeron:udp?endpoint=b:2", "aeron:ipc", False, "aeron:udp?endpoint=b:2"),
        ("aeron:udp?endpoint=b:2", "aeron:ipc", True, "aeron:ipc"),
        (None, "aeron:ipc", False, "aeron:ipc"),
        (None, "aeron:udp?endpoint=a:1|linger=1h", False, None),
        (None, "aeron:udp?endpoint=a:1|linger=3600s", False, "aeron:udp?endpoint=a:1|linger=5s"),
        (
            "aeron:udp?linger=1s",
            "aeron:udp?endpoint=a:1|linger=3600s",
            False,
            "aeron:udp?endpoint=a:1|linger=1s",
        ),
        (None, "aeron:udp?endpoint=a:1|linger=0", False, "aeron:udp?endpoint=a:1|linger=0"),
        (None, "aeron:ipc?term-length=1g|sparse=false", False, "aeron:ipc?sparse=true|term-length=67108864"),
        (
            "aeron:udp?term-length=1m",
            "aeron:udp?endpoint=a:1|term-length=1g",
            False,
            "aeron:udp?endpoint=a:1|term-length=1m",
        ),
    ],
)
def test_the_template_of_answers(
    template: str | None, wanted: str, is_ipc_allowed: bool, channel: str | None
) -> None:
    if channel is None:
        with pytest.raises(ConfigError, match="linger=1h"):
            egress_channel(template, wanted, is_ipc_allowed)
        return
    assert egress_channel(template, wanted, is_ipc_allowed) == channel


def test_an_action_that_was_not_committed_is_undone() -> None:
    applied = Applied(0, NoEvents())
    applied.acted(100, ModuleState.ACTIVE)
    applied.acted(200, ModuleState.SUSPENDED)
    assert applied.restore_uncommitted(100) == ([], ModuleState.SUSPENDED)
    assert applied.restore_uncommitted(100) == ([], None)
