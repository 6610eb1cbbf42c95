"""Segments that leave and join recordings, killed before each step: undone or finished by the next start.

All recordings here are parts of one stream, so whatever a recording has must be what the stream has at its positions.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from headrace._base.states import NoEvents
from headrace.archive import ArchiveConfig
from headrace.archive.errors import CatalogError
from headrace.archive.files.catalog import STATE_DELETED, Catalog
from headrace.archive.files.maintenance import orphaned_segments
from headrace.archive.files.pending_operations import finish_pending
from headrace.archive.files.pending_segments import Migration, SegmentPurge
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.files.verify import frames_of, verify
from headrace.archive.server.context import Context
from headrace.archive.server.deletions import Deletions, ReplyTo
from headrace.archive.server.recordings import Recordings
from headrace.archive.server.replays import Replays
from headrace.archive.server.replications import Replications
from headrace.archive.server.retention import Expiry
from headrace.archive.server.segments import Segments
from headrace.testing import Killed, ManualClock, SimulatedStorage
from tests.archive.streams import TERM_LENGTH, descriptor
from tests.archive.test_kills import SEGMENT_LENGTH, Archive, Listener, blocks, config, kill_everywhere

pytestmark = pytest.mark.faults

END = 3 * SEGMENT_LENGTH + TERM_LENGTH
STREAM = blocks(0, END, 1)
BYTES = b"".join(block.ljust(length, b"\0") for block, length in STREAM)
FIRST, SECOND, THIRD = SEGMENT_LENGTH, 2 * SEGMENT_LENGTH, 3 * SEGMENT_LENGTH


class Answered(Listener):
    """A control session that also takes answers."""

    def __init__(self, is_refused: bool) -> None:
        self.answers: list[int] = []
        self.is_refused = is_refused

    def send_error(self, correlation_id: int, code: object, text: str) -> None:
        if not self.is_refused:
            super().send_error(correlation_id, code, text)

    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        self.answers.append(relevant_id)


class State(NamedTuple):
    """What a recording is: its positions, and where its segment files begin."""

    start: int
    stop: int
    bases: tuple[int, ...]


class Library(Archive):
    """Parts of one stream, whose segments leave and join."""

    sync_level = 0
    is_refused = False
    """Whether the disk refuses something, so that errors are no failure of a test."""

    def settings(self) -> ArchiveConfig:
        """Settings of the archive."""
        levels = {"file_sync_level": self.sync_level, "catalog_file_sync_level": self.sync_level}
        return config(self.checksum_name, **levels)

    def start(self, **settings: Any) -> None:
        """With the sync level of this one."""
        levels = {"file_sync_level": self.sync_level, "catalog_file_sync_level": self.sync_level}
        super().start(**levels, **settings)

    def go_on_later(self) -> None:
        """A recording that a case has made active stops where it was."""
        for entry in list(self.catalog):
            if entry.descriptor.is_active:
                self.catalog.stopped(entry.recording_id, END, self.now_ms)

    def part(self, start: int, stop: int) -> int:
        """A recording of the stream from one position to another."""
        described = descriptor(start_position=start)
        recording_id = self.catalog.add(described)
        writer = SegmentWriter(
            self.storage,
            recording_id,
            described.geometry,
            start,
            sync_level=self.sync_level,
            checksum=self.checksum,
        )
        writer.open()
        at = 0
        for block, length in STREAM:
            if start <= at < stop:
                writer.write(block, length)
            at += length
        writer.close()
        assert writer.position == stop
        self.catalog.stopped(recording_id, stop, self.now_ms)
        return recording_id

    def act(self, case: Case) -> None:
        """Carry out a request to its end, and look at its answer."""
        session = Answered(self.is_refused)
        if case.is_active:
            self.catalog.extended(0, 1, 2, descriptor().session_id)
        fail = (lambda *texts: None) if self.is_refused else pytest.fail
        context = SimpleNamespace(
            config=self.settings(),
            storage=self.storage,
            catalog=self.catalog,
            stored=self.stored,
            clock=ManualClock(),
            events=NoEvents(),
            record_checksum=self.checksum,
            log=SimpleNamespace(error=fail, warning=fail, info=lambda text: None),
        )
        idle = SimpleNamespace(
            active=lambda number: SimpleNamespace(position=END) if self.is_active(number) else None,
            has_replays=lambda number: False,
            reads_before=lambda number, position: False,
            first_segment_read=lambda number: None,
        )
        deletions = Deletions(cast(Context, context), lambda number: False, lambda number, reason: None)
        segments = Segments(cast(Context, context), cast(Recordings, idle), cast(Replays, idle), deletions)
        answer = case.request(segments, ReplyTo(cast(Any, session), 1))
        while any(self.stored.work_under_way(entry.recording_id) for entry in self.catalog.entries()):
            deletions.do_work()
            segments.do_work()
        if not self.is_refused:
            assert (session.answers if answer is None else [answer]) == case.answer

    def is_active(self, recording_id: int) -> bool:
        found = self.catalog.find(recording_id)
        return found is not None and found.is_active

    def states(self) -> tuple[State, ...]:
        """What each recording is; what they have is checked with it."""
        states = []
        for entry in self.catalog:
            one = entry.descriptor
            for position, header, body in frames_of(self.storage, one, one.start_position, one.stop_position):
                if not header.is_padding:
                    assert body == BYTES[position + 32 : position + header.span]
            states.append(State(one.start_position, one.stop_position, self.bases(entry.recording_id)))
        findings = verify(self.catalog, self.storage, is_thorough=True, checksum=self.checksum)
        assert [finding.text for finding in findings if not finding.is_ok] == []
        assert [name for name in self.storage.files if name.endswith((".begun", ".cut", ".part"))] == []
        return tuple(states)

    def bases(self, recording_id: int) -> tuple[int, ...]:
        """Where its segment files begin."""
        names = [name for name in self.storage.files if name.startswith(f"{recording_id}-")]
        return tuple(sorted(int(name.removesuffix(".rec").partition("-")[2]) for name in names))


def whole(library: Library) -> None:
    library.part(0, END)


def retained(library: Library) -> None:
    """Its last segment file and a byte of the one before are kept."""
    library.part(0, END)
    library.stored.replace_channel(0, f"aeron:ipc?retain-bytes={END - THIRD + 1}", "aeron:ipc")


def expired(segments: Segments) -> None:
    """The retention applied, as the archive does in its turns."""
    context, recordings, replays = segments._context, segments._recordings, segments._replays
    replications = Replications(context, recordings, itertools.count(), random.Random(1))
    expiry = Expiry(context, recordings, replays, segments, segments._deletions, replications)
    for _ in range(2):
        expiry.do_work()


def detached(library: Library) -> None:
    library.part(0, END)
    library.act(Case(whole, lambda segments, reply_to: segments.detach(0, FIRST), [], []))


def twice_detached(library: Library) -> None:
    library.part(0, END)
    library.act(Case(whole, lambda segments, reply_to: segments.detach(0, SECOND), [], []))


def joined(library: Library) -> None:
    """Recording 0 ends where 1 begins, and has an empty last file there."""
    library.part(0, SECOND)
    library.part(SECOND, END)


def continued(library: Library) -> None:
    """The same, where the last file of recording 0 has gone with a truncation."""
    joined(library)
    library.acknowledged[0] = SECOND
    library.truncate(0, SECOND)


def continued_twice(library: Library) -> None:
    """And recording 1 ends where a file does, with an empty one after it."""
    library.part(0, FIRST)
    library.part(FIRST, THIRD)
    library.acknowledged[0] = FIRST
    library.truncate(0, FIRST)


ALL = (0, FIRST, SECOND, THIRD)


class Case(NamedTuple):
    """A request, what was before it, its answer, and all that may be afterwards: the last is that it has ended."""

    before: Callable[[Library], None]
    request: Callable[[Segments, ReplyTo], object]
    answer: list[int]
    outcomes: list[tuple[State, ...]]
    is_active: bool = False


CASES: dict[str, Case] = {
    "detach": Case(
        whole,
        lambda segments, reply_to: segments.detach(0, SECOND),
        [],
        [(State(0, END, ALL),), (State(SECOND, END, ALL),)],
    ),
    "detach of an active recording": Case(
        whole,
        lambda segments, reply_to: segments.detach(0, THIRD),
        [],
        [(State(0, END, ALL),), (State(THIRD, END, ALL),)],
        is_active=True,
    ),
    "purge": Case(
        whole,
        lambda segments, reply_to: segments.purge(reply_to, 0, SECOND),
        [2],
        [(State(0, END, ALL),), (State(SECOND, END, (SECOND, THIRD)),)],
    ),
    "purge of an active recording": Case(
        whole,
        lambda segments, reply_to: segments.purge(reply_to, 0, THIRD),
        [3],
        [(State(0, END, ALL),), (State(THIRD, END, (THIRD,)),)],
        is_active=True,
    ),
    "retention": Case(
        retained,
        lambda segments, reply_to: expired(segments),
        [],
        [(State(0, END, ALL),), (State(SECOND, END, (SECOND, THIRD)),)],
    ),
    "retention of an active recording": Case(
        retained,
        lambda segments, reply_to: expired(segments),
        [],
        [(State(0, END, ALL),), (State(SECOND, END, (SECOND, THIRD)),)],
        is_active=True,
    ),
    "purge after a detachment": Case(
        detached,
        lambda segments, reply_to: segments.purge(reply_to, 0, THIRD),
        [2],
        [(State(FIRST, END, ALL),), (State(THIRD, END, (0, THIRD)),)],
    ),
    "delete detached": Case(
        twice_detached,
        lambda segments, reply_to: segments.delete_detached(reply_to, 0),
        [2],
        [(State(SECOND, END, ALL),), (State(SECOND, END, (SECOND, THIRD)),)],
    ),
    "delete without any": Case(
        whole,
        lambda segments, reply_to: segments.delete_detached(reply_to, 0),
        [0],
        [(State(0, END, ALL),)],
    ),
    "attach": Case(
        twice_detached,
        lambda segments, reply_to: segments.attach(reply_to, 0),
        [2],
        [(State(SECOND, END, ALL),), (State(FIRST, END, ALL),), (State(0, END, ALL),)],
    ),
    "migrate to the beginning": Case(
        joined,
        lambda segments, reply_to: segments.migrate(reply_to, 0, 1),
        [2],
        [
            (State(0, SECOND, (0, FIRST, SECOND)), State(SECOND, END, (SECOND, THIRD))),
            (State(0, 0, ()), State(0, END, ALL)),
        ],
    ),
    "migrate to the end": Case(
        continued,
        lambda segments, reply_to: segments.migrate(reply_to, 1, 0),
        [2],
        [
            (State(0, SECOND, (0, FIRST)), State(SECOND, END, (SECOND, THIRD))),
            (State(0, END, ALL), State(SECOND, SECOND, ())),
        ],
    ),
    "migrate with an empty last file": Case(
        continued_twice,
        lambda segments, reply_to: segments.migrate(reply_to, 1, 0),
        [2],
        [
            (State(0, FIRST, (0,)), State(FIRST, THIRD, (FIRST, SECOND, THIRD))),
            (State(0, THIRD, (0, FIRST, SECOND)), State(FIRST, FIRST, ())),
        ],
    ),
}


def prepared(
    case: Case, checksum: str | None, storage: SimulatedStorage | None = None, *, sync_level: int = 0
) -> Library:
    """A library before a case."""
    library = Library(storage or SimulatedStorage(), checksum)
    library.sync_level = sync_level
    library.start()
    case.before(library)
    library.storage.sync()
    return library


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("checksum", [None, "CRC-32C"])
def test_a_kill_at_any_step_is_undone_or_finished(name: str, checksum: str | None) -> None:
    """Nothing that was recorded is lost but what was asked to go, and no start needs a person."""
    case, seen = CASES[name], set()

    def check(archive: Archive) -> None:
        states = cast(Library, archive).states()
        assert states in case.outcomes
        seen.add(states)

    def act(archive: Archive) -> None:
        cast(Library, archive).act(case)

    assert kill_everywhere(prepared(case, checksum), act, check) > 0
    assert seen == set(case.outcomes), "the kills have hit each of them"


@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename", "delete"])
@pytest.mark.parametrize("name", CASES)
def test_what_the_disk_refuses_once_is_undone_now_or_finished_by_the_next_start(name: str, kind: str) -> None:
    """A request that is refused has changed nothing."""
    case, after, was_refused = CASES[name], 0, True
    while was_refused:
        library = prepared(case, None)
        library.is_refused = True
        library.storage.fail(kind, after=after, times=1)
        before = library.storage.refused_count
        try:
            library.act(case)
        except OSError:
            library.go_on_later()
            assert library.states() == case.outcomes[0]
        was_refused = library.storage.refused_count > before
        library.storage.mend()
        again = library.after_the_kill()
        again.start()
        assert again.states() in case.outcomes
        after += 1


@pytest.mark.parametrize("name", ["migrate to the beginning", "migrate to the end"])
def test_a_migration_that_can_be_neither_ended_nor_undone_is_finished_by_the_next_start(name: str) -> None:
    """Until then the archive skips what it may not touch."""
    case = CASES[name]
    library = prepared(case, None)
    library.is_refused = True
    library.storage.fail("rename", after=1)
    with pytest.raises(OSError, match=r"\.rec"):
        library.act(case)
    source, destination = (0, 1) if name.endswith("beginning") else (1, 0)
    assert library.catalog.find(source) is None
    assert (library.catalog.find(destination) is None) == name.endswith("end")
    library.storage.mend()
    closed = library.after_the_kill()
    with pytest.raises(CatalogError, match="migration is not finished: start the archive"):
        orphaned_segments(Catalog(closed.storage), closed.storage)
    again = library.after_the_kill()
    again.start()
    assert again.states() == case.outcomes[-1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_a_power_cut_at_any_step_is_undone_or_finished(name: str, seed: int) -> None:
    """With sync level 2, and any of what was not synced lost."""
    case, step, is_over = CASES[name], 0, False
    choose = random.Random(seed)
    while not is_over:
        library = prepared(case, None, SimulatedStorage(choose), sync_level=2)
        library.storage.kill_before(step)
        try:
            library.act(case)
            is_over = True
        except Killed:
            pass
        library.storage.crash()
        again = next_life(library)
        again.start()
        assert again.states() in case.outcomes
        step += 1
    assert step > 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_a_power_cut_after_the_start_that_follows_a_kill_changes_nothing(name: str, seed: int) -> None:
    """What that start has finished must not rest on what the killed process wrote and did not force."""
    case, step, is_over = CASES[name], 0, False
    choose = random.Random(seed)
    while not is_over:
        # The start ends, or the power goes in the middle of it.
        second, is_started = 0, False
        while not is_started:
            library = prepared(case, None, SimulatedStorage(choose), sync_level=2)
            library.storage.kill_before(step)
            try:
                library.act(case)
                is_over = True
            except Killed:
                pass
            library.storage.crash(keeps_writes=True)
            library.storage.kill_before(second)
            try:
                next_life(library).start()
                is_started = True
            except Killed:
                pass
            library.storage.crash()
            again = next_life(library)
            again.start()
            assert again.states() in case.outcomes
            second += 1
        step += 1


def next_life(library: Library) -> Library:
    """The next process on the same disk."""
    again = Library(library.storage, None)
    again.now_ms, again.sync_level = library.now_ms, library.sync_level
    return again


MISFITS: dict[str, tuple[Callable[[Library], object], str]] = {
    "one is unknown": (lambda library: library.catalog.set_state(1, STATE_DELETED), "unknown"),
    "the source goes on": (
        lambda library: library.catalog.update(0, stop_position=FIRST),
        "source has start=0",
    ),
    "the destination has moved": (
        lambda library: library.catalog.update(1, start_position=THIRD),
        "destination has start=",
    ),
    "a file under both names": (
        lambda library: library.storage.create(f"1-{FIRST}.rec", SEGMENT_LENGTH).close(),
        "exactly one should be there",
    ),
    "a file under neither name": (
        lambda library: library.storage.delete(f"0-{FIRST}.rec"),
        "exactly one should be there",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_note_of_a_migration_that_no_longer_fits_changes_nothing(name: str) -> None:
    """Another archive has worked on the directory, or a person has."""
    change, words = MISFITS[name]
    library = prepared(CASES["migrate to the beginning"], None)
    change(library)
    before = {one: bytes(data) for one, data in library.storage.files.items() if one.endswith(".rec")}
    migration = Migration(True, 0, 1, 0, SECOND)
    migration.begin(library.storage, 0)
    notes: list[str] = []
    finish_pending(library.catalog, library.storage, 0, notes.append)
    (note,) = notes
    assert words in note
    assert {one: bytes(data) for one, data in library.storage.files.items() if one.endswith(".rec")} == before
    assert library.storage.length(migration.name) is None


def test_a_note_of_a_purge_that_was_not_decided_deletes_nothing() -> None:
    """The recording begins elsewhere: another archive has attached a file, or detached one."""
    library = prepared(CASES["delete detached"], None)
    note = SegmentPurge(0, 0, FIRST)
    note.begin(library.storage, 0)
    finish_pending(library.catalog, library.storage, 0, lambda text: None)
    assert library.states() == CASES["delete detached"].outcomes[0]


def test_a_detachment_is_not_taken_for_the_decision_of_a_purge_that_failed() -> None:
    """The note of a purge that the disk refused, and would not drop, is dropped first."""
    library = prepared(CASES["purge"], None)
    SegmentPurge(0, 0, SECOND).begin(library.storage, 0)
    library.act(CASES["detach"])
    again = library.after_the_kill()
    again.start()
    assert again.states() == CASES["detach"].outcomes[-1]


@pytest.mark.parametrize(
    "name", ["purge-segments-0-0.begun", "prepend-0-1-0-x.begun", "append-0-1-00-5.begun"]
)
def test_other_files_are_no_notes(name: str) -> None:
    assert SegmentPurge.named(name) is None
    assert Migration.named(name) is None


def test_an_extension_killed_before_its_first_file_begins_after_what_was_detached() -> None:
    """The catalog has it as active, and every file there is lies before it."""
    library = prepared(CASES["migrate to the end"], None)
    library.act(Case(continued, lambda segments, reply_to: segments.detach(0, SECOND), [], []))
    library.catalog.extended(0, 1, 2, -77)
    again = library.after_the_kill()
    again.start()
    assert again.states()[0] == State(SECOND, SECOND, (0, FIRST))
