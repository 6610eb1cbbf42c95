"""Sessions against a clock that the test moves and a disk in memory."""

import itertools
import threading
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from headrace import ClientError, OfferResult, RegistrationError
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.protocol.messages import PROTOCOL_VERSION, encode
from headrace.archive.protocol.requests import AuthConnectRequest
from headrace.archive.server.config import ArchiveConfig
from headrace.archive.server.control import Control
from headrace.archive.server.control_session import ControlSession, Refusal
from headrace.archive.server.recording_session import RecordingSession
from headrace.archive.server.replay_session import (
    Limit,
    LimitState,
    ReplayMeans,
    ReplayRequester,
    ReplaySession,
    ReplaySpan,
)
from headrace.archive.server.states import SessionState
from headrace.positions import HEADER_LENGTH
from headrace.security import Accepted, Rejected
from headrace.security import Challenge as Ask
from headrace.security.verdicts import Verdicts
from headrace.testing import ManualClock, SimulatedStorage
from headrace.testing.storage import PAGE_LENGTH
from tests.archive.fakes import FakeCounter, FakeImage, FakeLog, FakePending, FakePublication, Heard, begun
from tests.archive.streams import TERM_LENGTH, descriptor, frame, frames
from tests.helpers import TIMEOUT_S, await_true

TIMEOUT_MS = 5_000
PING_MS = 1_000


def control(
    publication: FakePublication, clock: ManualClock, credentials: bytes | Refusal = b""
) -> ControlSession:
    """A session with time-outs of the specification."""
    parts: Any = FakeImage(), FakePending(publication), FakePending(FakeCounter())
    return session_of(parts, clock, credentials)


def session_of(
    parts: Any, clock: ManualClock, credentials: bytes | Refusal = b"", verdicts: Verdicts | None = None
) -> ControlSession:
    """One whose client is accepted, unless an authenticator decides."""
    log: Any = FakeLog()
    times = TIMEOUT_MS * 1_000_000, PING_MS * 1_000_000
    parts = 11, 99, *parts, clock, *times, log, verdicts or Verdicts(None), credentials
    return begun(ControlSession(*parts))


def active(publication: FakePublication, clock: ManualClock) -> ControlSession:
    """One whose client has answered."""
    session = control(publication, clock)
    session.do_work()
    session.activate()
    publication.sent.clear()
    return session


def test_the_answer_to_a_connect_is_repeated_until_the_client_speaks() -> None:
    """Every 200 ms: a client may have missed it."""
    publication, clock = FakePublication(), ManualClock()
    publication.is_connected = False
    session = control(publication, clock)
    session.do_work()
    assert publication.sent == []
    publication.is_connected = True
    for _ in range(6):
        session.do_work()
        clock.advance(0.1)
    answers = [
        (type(one).__name__, one.correlation_id, one.relevant_id, int(one.code)) for one in publication.sent
    ]
    assert answers == [("ControlResponse", 99, 11, 0)] * 3
    session.activate()
    clock.advance(0.3)
    session.do_work()
    assert session.state is SessionState.ACTIVE
    assert len(publication.sent) == 3


def test_a_stream_whose_counter_cannot_be_asked_for_is_not_left_at_the_driver() -> None:
    """No subscriber would ever read it."""
    pending, log = FakePending(FakePublication()), FakeLog()

    def refuse(*_: object) -> None:
        raise RegistrationError("no room for a command")

    client: Any = SimpleNamespace(
        client_id=1,
        counters=[],
        add_subscription=lambda *_: SimpleNamespace(
            poll=lambda handler, _: handler(connect, SimpleNamespace(session_id=5)) or 1,
            image_by_session_id=lambda _: FakeImage(),
        ),
        request_exclusive_publication=lambda *_: pending,
        request_counter=refuse,
    )
    connect = encode(
        AuthConnectRequest(
            correlation_id=1,
            response_stream_id=20,
            version=PROTOCOL_VERSION,
            response_channel="aeron:ipc",
        )
    )
    config = ArchiveConfig(control_channel_enabled=False)
    context: Any = SimpleNamespace(client=client, config=config, archive_id=1, log=log)
    Control(context, cast(Any, None), itertools.count(), Verdicts(None)).do_work()
    assert "no room" in " ".join(log.warnings)
    assert pending.is_cancelled


def test_a_client_that_never_connects_or_never_speaks_is_given_up() -> None:
    """After the connect time-out, not before."""
    for is_connected in (False, True):
        publication, clock = FakePublication(), ManualClock()
        publication.is_connected = is_connected
        session = control(publication, clock)
        session.do_work()
        clock.advance((TIMEOUT_MS - 1) / 1000)
        session.do_work()
        assert not session.is_done
        clock.advance(0.001)
        session.do_work()
        assert session.is_done
        assert session.end_reason
        session.close()
        assert publication.events == ["revoke", "close"]


def session_in_the_making(
    clock: ManualClock,
) -> tuple[ControlSession, FakePending[FakePublication], FakePending[FakeCounter]]:
    """One that the driver has added nothing for."""
    publication = FakePending(FakePublication(), is_ready=False)
    counter = FakePending(FakeCounter(), is_ready=False)
    parts: Any = FakeImage(), publication, counter
    return session_of(parts, clock), publication, counter


def test_a_session_begins_when_the_driver_has_added_its_stream_and_counter() -> None:
    """In either order; then the counter shows the session, refers to the stream, and the time-out begins anew."""
    for first, last in ((0, 1), (1, 0)):
        clock = ManualClock()
        session, *pending = session_in_the_making(clock)
        session.do_work()
        pending[first].is_ready = True
        clock.advance((TIMEOUT_MS - 1) / 1000)
        session.do_work()
        assert session.state is SessionState.INIT
        pending[last].is_ready = True
        session.do_work()
        assert session.state is SessionState.AUTHENTICATED
        assert (pending[1].added.value, pending[1].added.reference_id) == (11, 4711)
        clock.advance((TIMEOUT_MS - 1) / 1000)
        session.do_work()
        assert not session.is_done
        assert pending[0].added.names() == ["ControlResponse"] * 2


def test_a_session_that_the_driver_refuses_or_is_late_for_leaves_nothing() -> None:
    """What was added is closed, what was not is given up."""
    for refuse in (True, False):
        clock = ManualClock()
        session, publication, counter = session_in_the_making(clock)
        counter.is_ready = True
        session.do_work()
        if refuse:
            publication.refusal = RegistrationError("no room for a log")
        else:
            clock.advance(TIMEOUT_MS / 1000)
        session.do_work()
        assert session.is_done
        assert ("no room for a log" in session.end_reason) == refuse
        session.close()
        assert publication.is_cancelled
        assert counter.added.is_closed
        assert not counter.is_cancelled


def test_a_challenge_is_asked_until_it_is_sent_and_answered_once() -> None:
    """A second answer, while the first is judged, is not taken; and the first counts."""
    may_go_on = threading.Event()

    class Asks:
        def on_connect(self, credentials: bytes) -> Ask:
            return Ask(b"who?", self._judge)

        def _judge(self, answer: bytes) -> Accepted | Rejected:
            assert may_go_on.wait(TIMEOUT_S)
            return Accepted(b"me") if answer == b"it is me" else Rejected()

    publication, clock = FakePublication(), ManualClock()
    parts: Any = FakeImage(), FakePending(publication), FakePending(FakeCounter())
    verdicts = Verdicts(Asks())
    session = session_of(parts, clock, verdicts=verdicts)
    publication.refusal = OfferResult.BACK_PRESSURED
    session.do_work()
    await_true(lambda: session.do_work() == 1)
    session.do_work()
    assert session.state is SessionState.CONNECTED
    assert not session.on_challenge_response(100, b"it is me")
    publication.refusal = None
    session.do_work()
    session.do_work()
    assert publication.names() == ["Challenge"]
    assert session.state is SessionState.CHALLENGED
    assert session.on_challenge_response(101, b"it is me")
    assert not session.on_challenge_response(102, b"it is not")
    may_go_on.set()
    await_true(lambda: session.do_work() > 0)
    assert session.state is SessionState.AUTHENTICATED
    assert session.principal == b"me"
    assert [one.correlation_id for one in publication.sent] == [99, 101]
    assert not session.on_challenge_response(103, b"it is me")
    verdicts.close()


def test_a_session_without_a_verdict_ends_with_the_connect_time_out() -> None:
    """The time-out is one for all its challenges; what waits for the authenticator is not asked any more."""
    may_go_on, seen = threading.Event(), []

    class Blocks:
        def on_connect(self, credentials: bytes) -> Accepted:
            seen.append(credentials)
            assert may_go_on.wait(TIMEOUT_S)
            return Accepted()

    verdicts, clock = Verdicts(Blocks()), ManualClock()
    sessions = []
    for credentials in (b"first", b"second"):
        parts: Any = FakeImage(), FakePending(FakePublication()), FakePending(FakeCounter())
        sessions.append(session_of(parts, clock, credentials, verdicts))
        sessions[-1].do_work()
    await_true(lambda: seen == [b"first"])
    clock.advance(TIMEOUT_MS / 1000)
    for session in sessions:
        session.do_work()
        assert session.state is SessionState.ABORTED
        assert "the authenticator did not decide within" in session.end_reason
    may_go_on.set()
    last = verdicts.on_connect(b"last")
    await_true(lambda: last.poll() is not None)
    assert seen == [b"first", b"last"]
    verdicts.close()


def test_a_refused_client_is_told_and_never_served() -> None:
    """As often as the answer would be repeated, until it is given up."""
    publication, clock = FakePublication(), ManualClock()
    session = control(publication, clock, Refusal(10, "no"))
    session.do_work()
    session.activate()
    assert session.state is SessionState.REJECTED
    assert (publication.sent[0].relevant_id, publication.sent[0].error_message) == (10, "no")
    clock.advance(TIMEOUT_MS / 1000)
    session.do_work()
    assert session.is_done


def test_an_active_session_is_pinged_each_second_and_ends_with_its_stream() -> None:
    """A client that leaves without a word is noticed."""
    publication, clock = FakePublication(), ManualClock()
    session = active(publication, clock)
    for _ in range(25):
        clock.advance(0.1)
        session.do_work()
    assert publication.names() == ["Ping", "Ping"]
    publication.is_connected = False
    session.do_work()
    assert session.is_done
    assert session.state is SessionState.CLOSED


def test_answers_wait_in_order_for_a_client_that_is_slow() -> None:
    """For at most the connect time-out; any success begins it anew."""
    publication, clock = FakePublication(), ManualClock()
    session = active(publication, clock)
    publication.refusal = OfferResult.BACK_PRESSURED
    for correlation_id in range(3):
        session.send_ok(correlation_id)
    clock.advance((TIMEOUT_MS - 1) / 1000)
    session.do_work()
    assert not session.try_send(b"later")
    publication.refusal = None
    session.do_work()
    assert [one.correlation_id for one in publication.sent if type(one).__name__ == "ControlResponse"] == [
        0,
        1,
        2,
    ]
    clock.advance(TIMEOUT_MS / 1000)
    session.do_work()
    assert not session.is_done
    publication.refusal = OfferResult.BACK_PRESSURED
    session.send_ok(4)
    clock.advance(TIMEOUT_MS / 1000)
    session.do_work()
    assert session.is_done


def test_a_client_that_asks_on_without_reading_its_answers_is_given_up() -> None:
    """What waits for it does not grow without end."""
    publication, clock = FakePublication(), ManualClock()
    session = active(publication, clock)
    publication.refusal = OfferResult.BACK_PRESSURED
    asked = 0
    while not session.is_done:
        session.send_ok(asked)
        asked += 1
    assert asked < 5000
    assert session.state is SessionState.ABORTED
    assert "answers unread" in session.end_reason


def recording(
    storage: SimulatedStorage, image: FakeImage, heard: Heard
) -> tuple[RecordingSession, FakeCounter]:
    """A session recording an image from position 0."""
    counter = FakeCounter()
    writer = SegmentWriter(storage, 0, descriptor().geometry, 0)
    parts: Any = image, writer, FakePending(counter), heard, ManualClock(), None
    return begun(RecordingSession(0, *parts, 1 << 20)), counter


def test_a_recording_writes_blocks_moves_its_counter_and_ends_with_the_stream() -> None:
    """Padding counts as the stream it fills."""
    storage, heard = SimulatedStorage(), Heard()
    block = frames(0, 10, 96)
    rest = TERM_LENGTH - len(block)
    padding = frame(len(block), b"", kind=0, length=rest)
    image = FakeImage([(block, len(block)), (padding, rest)])
    session, counter = recording(storage, image, heard)
    while counter.value < TERM_LENGTH:
        session.do_work()
    assert session.position == TERM_LENGTH
    assert not session.is_stopped
    image.is_end_of_stream = True
    while not session.is_stopped:
        session.do_work()
    assert heard.events == ["started", "progress", "progress", "stopped"]
    assert storage.files["0-0.rec"][: len(block) + 32] == block + padding


def test_a_slow_stream_is_nothing_to_hurry_for_and_a_fast_one_is() -> None:
    """So that the archive's thread rests between the messages of a slow one."""
    few, many = frames(0, 10, 96), frames(1280, 100, 96)
    session, _ = recording(SimulatedStorage(), FakeImage([(few, len(few)), (many, len(many))]), Heard())
    session.do_work()
    assert (session.do_work(), session.position) == (0, len(few))
    assert (session.do_work(), session.position) == (len(many), len(few) + len(many))


def test_a_recording_writes_nothing_before_its_position_can_be_seen() -> None:
    """And one whose counter is refused fails with the reason, having written nothing."""
    block = frames(0, 10, 96)
    for refuse in (True, False):
        storage = SimulatedStorage()
        counter = FakePending(FakeCounter(), is_ready=False)
        writer = SegmentWriter(storage, 0, descriptor().geometry, 0)
        parts: Any = FakeImage([(block, len(block))]), writer, counter, Heard(), ManualClock(), None
        session = begun(RecordingSession(0, *parts, 1 << 20))
        for _ in range(3):
            session.do_work()
        assert session.is_awaiting_counter
        assert storage.names() == []
        if refuse:
            counter.refusal = RegistrationError("no counter left")
        else:
            counter.is_ready = True
        for _ in range(3):
            session.do_work()
        assert session.is_stopped == refuse
        assert session.position == (0 if refuse else len(block))
        session.close_counter()
        assert (counter.is_cancelled, counter.added.is_closed) == (refuse, not refuse)
        if refuse:
            assert session.failure is not None
            assert "no counter left" in session.failure.text


@pytest.mark.parametrize("is_in_write", [True, False])
def test_a_recorder_that_the_stream_has_overtaken_records_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch, *, is_in_write: bool
) -> None:
    """Its process was paused, before a poll or while a block was written; the log came round meanwhile."""
    first, second = frames(0, 30, 96), bytearray(frames(3840, 30, 96))
    storage, heard = SimulatedStorage(), Heard()
    image = FakeImage([(first, len(first)), (second, len(second))])  # type: ignore[list-item]
    session, counter = recording(storage, image, heard)
    while counter.value < len(first):
        session.do_work()
    if is_in_write:
        file_type = type(storage.create("other", 0))
        write = file_type.write

        def pausing(file: Any, offset: int, data: Any) -> None:
            write(file, offset, data)
            second[20] ^= 3  # the term

        monkeypatch.setattr(file_type, "write", pausing)
    else:
        overtaken = Mock(side_effect=ClientError("the stream went on without this reader"))
        monkeypatch.setattr(image, "block_poll", overtaken)
    assert is_in_write or session.has_work
    while not session.is_stopped:
        session.do_work()
    assert session.failure is not None
    assert "the stream went on" in session.failure.text
    assert session.position == counter.value == len(first)
    assert storage.files["0-0.rec"][: len(first)] == first
    assert not any(storage.files["0-0.rec"][len(first) :])


def test_a_full_disk_ends_a_recording_at_the_last_whole_block() -> None:
    """With the code for it, and nothing of the failed block left in the file."""
    first, second = frames(0, 30, 96), frames(3840, 30, 96)
    storage, heard = SimulatedStorage(space=PAGE_LENGTH), Heard()
    session, counter = recording(storage, FakeImage([(first, 3840), (second, 3840)]), heard)
    while not session.is_stopped:
        session.do_work()
    assert session.failure is not None
    assert session.failure.code is ErrorCode.STORAGE_SPACE
    assert counter.value == session.position == 3840
    assert storage.files["0-0.rec"][:3840] == first
    assert not any(storage.files["0-0.rec"][3840:])


def test_what_no_one_expects_ends_a_recording_where_it_is() -> None:
    """Also when it comes while the recording is closed; nothing is tried again and again."""
    block = frames(0, 10, 96)
    session, counter = recording(SimulatedStorage(), FakeImage([(block, len(block))]), Heard())
    session.do_work()
    session.do_work()
    session.fail(AssertionError("never"))
    assert counter.value == len(block)

    def refuse(_: object) -> None:
        raise KeyError("gone")

    session._listener = SimpleNamespace(on_stopped=refuse)  # type: ignore[assignment]
    with pytest.raises(KeyError):
        session.do_work()
    assert session.is_stopped
    assert session.failure is not None
    assert session.failure.text == "recording_id=0 stopped at position=1280: never"


def replay(
    storage: SimulatedStorage,
    clock: ManualClock,
    publication: FakePublication,
    answers: FakePublication,
    position: int,
    stop: int,
    replay_limit: int,
    limit: Limit | None = None,
) -> ReplaySession:
    """A replay of recording 0."""
    pending: Any = FakePending(publication)
    parts = descriptor(stop_position=stop), pending, ReplaySpan(position, stop, replay_limit, limit)
    means = ReplayMeans(storage, clock, TIMEOUT_MS * 1_000_000, 4096)
    return begun(ReplaySession(ReplayRequester(active(answers, clock), 5, 77), *parts, means))


def stored(*blocks: bytes) -> SimulatedStorage:
    """A disk with recording 0 on it."""
    storage = SimulatedStorage()
    writer = SegmentWriter(storage, 0, descriptor().geometry, 0)
    writer.open()
    for block in blocks:
        writer.write(block, len(block))
    writer.close()
    return storage


def test_a_replay_is_acknowledged_then_awaits_its_subscriber_then_ends_in_order() -> None:
    """And sends what was recorded under the session and stream of its publication."""
    clock, publication, answers = ManualClock(), FakePublication(), FakePublication()
    data = frames(0, 100, 96)
    publication.is_connected = False
    session = replay(stored(data), clock, publication, answers, 0, len(data), len(data))
    session.do_work()
    assert [(one.correlation_id, one.relevant_id) for one in answers.sent] == [(5, 77 << 32 | 7)]
    session.do_work()
    assert publication.blocks == []
    publication.is_connected = True
    publication.refusal = OfferResult.BACK_PRESSURED
    session.do_work()
    session.do_work()
    publication.refusal = None
    while not session.is_done:
        session.do_work()
    session.close()
    sent = b"".join(publication.blocks)
    assert len(sent) == len(data)
    assert sent[32:128] == data[32:128]
    assert sent[12:20] == (7).to_bytes(4, "little") + (20).to_bytes(4, "little")
    assert publication.events == ["close"]


def test_a_replay_hurries_while_more_was_recorded_however_short_its_blocks_are() -> None:
    """As a client may ask for short ones; the last of them is a trickle like any other."""
    data, clock, publication = frames(0, 100, 96), ManualClock(), FakePublication()
    session = replay(stored(data), clock, publication, FakePublication(), 0, len(data), len(data))
    session.do_work()
    session.do_work()
    assert [session.do_work() for _ in range(4)] == [4096, 4096, 4096, 0]
    assert session.position == len(data)


def test_padding_longer_than_any_message_is_replayed_in_parts() -> None:
    """As a stream with reliable=false leaves it."""
    first, clock, publication = frames(0, 1, 96), ManualClock(), FakePublication()
    last = frames(len(first) + 32_768, 1, 96)
    gap = frame(len(first), b"", kind=0, length=32_750) + bytes(32_768 - HEADER_LENGTH)
    data = first + gap + last
    session = replay(stored(data), clock, publication, FakePublication(), 0, len(data), len(data))
    while not session.is_done:
        session.do_work()
    assert session.failure is None
    assert publication.paddings == [8192 - HEADER_LENGTH] * 4
    assert session.position == len(data)
    assert [len(block) for block in publication.blocks if block] == [len(first), len(last)]


class CounterAt:
    """A limit that a test moves: a counter on a recording that has stopped at 1280."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.is_open = True

    def state(self) -> LimitState:
        return LimitState(min(self.value, 1280), self.is_open and self.value < 1280, self.value >= 1280)


def test_a_replay_goes_as_far_as_whole_frames_below_a_counter_and_on_when_it_moves() -> None:
    """Of a frame in which the counter lies nothing is sent; it may lie in any word of one, or in padding."""
    data = frames(0, 4, 96) + frame(512, b"", kind=0, length=256) + bytes(224) + frames(768, 4, 96)
    limit, publication = CounterAt(96), FakePublication()
    clock, answers = ManualClock(), FakePublication()
    session = replay(stored(data), clock, publication, answers, 0, limit.value, 1 << 62, limit)
    expected = [(96, 0), (128, 128), (416, 384), (480, 384), (544, 512), (736, 512), (768, 768), (1248, 1152)]
    for value, position in expected:
        limit.value = value
        for _ in range(4):
            session.do_work()
        assert (session.position, session.is_done) == (position, False), value
    limit.value = 2000
    while not session.is_done:
        session.do_work()
    assert session.failure is None
    assert (session.position, publication.paddings) == (1280, [256 - HEADER_LENGTH])
    session.close()
    assert publication.events == ["close"]


def test_a_replay_ends_before_the_frame_in_which_a_counter_was_closed() -> None:
    """In order, as all that it may send was sent."""
    data, limit, publication = frames(0, 10, 96), CounterAt(480), FakePublication()
    session = replay(stored(data), ManualClock(), publication, FakePublication(), 0, 480, 1 << 62, limit)
    for _ in range(4):
        session.do_work()
    assert not session.is_done
    limit.is_open = False
    while not session.is_done:
        session.do_work()
    assert (session.position, session.failure) == (384, None)
    session.close()
    assert publication.events == ["close"]


def test_a_damaged_frame_below_a_counter_is_no_frame_that_the_counter_cuts() -> None:
    """The replay would wait for ever, or end as if it were whole."""
    data = frames(0, 9, 96) + frame(1152, b"x" * 96, length=600)
    limit = CounterAt(1280)
    session = replay(
        stored(data), ManualClock(), FakePublication(), FakePublication(), 0, 1280, 1 << 62, limit
    )
    for _ in range(4):
        session.do_work()
    assert session.failure is not None
    assert "position=1152: the file ends within the frame" in session.failure.text
    assert not session.failure.is_clients_doing


def test_a_replay_of_nothing_within_a_recording_ends_at_once() -> None:
    """After its position was found to be a frame's."""
    data = frames(0, 10, 96)
    for position, code in ((128, None), (64, ErrorCode.INVALID_POSITION)):
        parts = ManualClock(), FakePublication(), FakePublication()
        session = replay(stored(data), *parts, position, len(data), position)
        while not session.is_done:
            session.do_work()
        assert (session.failure and session.failure.code) == code


def test_a_replay_without_a_subscriber_fails_and_is_revoked() -> None:
    """After the connect time-out."""
    clock, publication, answers = ManualClock(), FakePublication(), FakePublication()
    publication.is_connected = False
    data = frames(0, 10, 96)
    session = replay(stored(data), clock, publication, answers, 0, len(data), len(data))
    session.do_work()
    clock.advance(TIMEOUT_MS / 1000)
    session.do_work()
    assert session.failure is not None
    assert "no subscriber" in session.failure.text
    session.close()
    assert publication.events == ["revoke", "close"]


def replay_in_the_making() -> tuple[ReplaySession, FakePending[FakePublication], FakePublication]:
    """One that the driver has added no stream for, and what its client was told."""
    data, answers, clock = frames(0, 10, 96), FakePublication(), ManualClock()
    publication = FakePending(FakePublication(), is_ready=False)
    pending: Any = publication
    session = ReplaySession(
        ReplayRequester(active(answers, clock), 5, 77),
        descriptor(stop_position=len(data)),
        pending,
        ReplaySpan(0, len(data), len(data), None),
        ReplayMeans(stored(data), clock, TIMEOUT_MS * 1_000_000, 4096),
    )
    return begun(session), publication, answers


def test_a_replay_is_acknowledged_once_the_driver_has_added_its_stream() -> None:
    """And refused with the reason when it does not."""
    session, publication, answers = replay_in_the_making()
    session.do_work()
    assert answers.sent == []
    publication.is_ready = True
    session.do_work()
    assert answers.sent[0].relevant_id == session.replay_id == 77 << 32 | 7
    session, publication, answers = replay_in_the_making()
    publication.refusal = RegistrationError("no room for a log")
    session.do_work()
    assert session.is_done
    assert session.failure is not None
    assert "no room for a log" in session.failure.text
    session.close()
    assert publication.is_cancelled


def test_a_replay_that_is_stopped_before_it_began_is_answered_all_the_same() -> None:
    """Its client would wait otherwise."""
    session, publication, _ = replay_in_the_making()
    session.do_work()
    session.abort()
    assert session.is_done
    assert session.failure is not None
    assert "stopped before it began" in session.failure.text
    session.close()
    assert publication.is_cancelled


def test_a_replay_from_within_a_frame_is_refused() -> None:
    """Before it is acknowledged."""
    clock, publication, answers = ManualClock(), FakePublication(), FakePublication()
    data = frames(0, 10, 96)
    session = replay(stored(data), clock, publication, answers, 32, len(data), len(data))
    session.do_work()
    assert session.failure is not None
    assert session.failure.code is ErrorCode.INVALID_POSITION
    assert answers.sent == []


def test_a_replay_awaits_a_first_file_that_is_made_late() -> None:
    """A recording that has just begun makes it a moment later; without it the replay fails by name."""
    clock, publication, answers = ManualClock(), FakePublication(), FakePublication()
    storage = SimulatedStorage()
    data = frames(0, 10, 96)
    session = replay(storage, clock, publication, answers, 0, len(data), len(data))
    session.do_work()
    assert not session.is_done
    storage.files.update(stored(data).files)
    while not session.is_done:
        session.do_work()
    assert b"".join(publication.blocks)[32:128] == data[32:128]
    late = replay(SimulatedStorage(), clock, FakePublication(), FakePublication(), 0, 64, 64)
    clock.advance(TIMEOUT_MS / 1000)
    late.do_work()
    assert late.failure is not None
    assert "0-0.rec" in late.failure.text
