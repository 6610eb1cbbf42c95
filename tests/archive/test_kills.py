"""A kill between any two changes of the disk is undone or finished at the next start, which may be killed as well.

Every operation of several steps is run as often as it has steps, and killed before each; so is the start that follows.
Then the archive starts, and everything is as if the operation had not begun, or had ended.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from headrace._base.states import NoEvents
from headrace.archive import ArchiveConfig
from headrace.archive.files.catalog import STATE_DELETED, Catalog
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.mark_file import ArchiveMarkFile
from headrace.archive.files.pending_operations import Purge, Truncation
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.files.stop_position import recovered_stop_position
from headrace.archive.files.verify import frames_of, verify
from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.archive.server.context import Context
from headrace.archive.server.deletions import Deletions
from headrace.archive.server.recording_store import StoredRecordings
from headrace.archive.server.recovery import open_files
from headrace.testing import Killed, SimulatedStorage
from headrace.testing.storage import PAGE_LENGTH
from tests.archive.streams import TERM_LENGTH, descriptor, frame

pytestmark = pytest.mark.faults

SEGMENT_LENGTH = 2 * TERM_LENGTH
ERRORS_LENGTH = 64
CAPACITY = 1024
LATER_MS = 60_000
# Within a page, over pages, zeros over pages, a message whose last page is empty, and one of exactly a page.
LENGTHS = ((40, 1), (6000, 2), (9000, 0), (4064, 3), (100, 4))


def config(checksum: str | None, **settings: Any) -> ArchiveConfig:
    """Settings of every start here."""
    return ArchiveConfig(
        control_channel_enabled=False, catalog_capacity=CAPACITY, record_checksum=checksum, **settings
    )


def blocks(position: int, end: int, mark: int) -> list[tuple[bytes, int]]:
    """Blocks of a few frames, and the stream they fill, from a position on to another or soon after."""
    result, index = [], mark
    while position < end:
        block, begin = b"", position
        for _ in range(3):
            length, filler = LENGTHS[index % len(LENGTHS)]
            index += 1
            one = frame(position + len(block), bytes([filler and filler + mark]) * length)
            room = TERM_LENGTH - (position + len(block)) % TERM_LENGTH
            if len(one) >= room:
                break
            block += one
        if block:
            result.append((block, len(block)))
        position = begin + len(block)
        room = TERM_LENGTH - position % TERM_LENGTH
        if room < 20_000:
            result.append((frame(position, b"", kind=0, length=room), room))
            position += room
    return result


class Archive:
    """The files of an archive, and what is known to be in them."""

    def __init__(self, storage: SimulatedStorage, checksum: str | None) -> None:
        self.storage = storage
        self.checksum_name = checksum
        self.checksum = checksum_named(checksum)
        self.now_ms = 0
        self.catalog: Catalog
        self.stored: StoredRecordings
        self.streams: dict[int, list[tuple[bytes, int]]] = {}
        self.acknowledged: dict[int, int] = {}

    def start(self, **settings: Any) -> None:
        """As the server does it; leaves the mark file as a kill does."""
        self.now_ms += LATER_MS
        self.storage.locked.clear()
        mark = ArchiveMarkFile(self.storage, ERRORS_LENGTH, self.now_ms)
        mark.clear_errors()
        self.catalog = open_files(
            config(self.checksum_name, **settings), self.storage, self.now_ms, lambda text: None
        )
        self.stored = StoredRecordings(self.catalog, NoEvents())
        mark.update(self.now_ms)

    def after_the_kill(self) -> Self:
        """The next process on the same files."""
        again = type(self)(self.storage.copy(), self.checksum_name)
        again.now_ms = self.now_ms
        again.streams = {number: list(stream) for number, stream in self.streams.items()}
        again.acknowledged = dict(self.acknowledged)
        return again

    def write(self, recording_id: int, position: int, to: list[tuple[bytes, int]]) -> SegmentWriter:
        """Record blocks from a position on."""
        stream = self.streams[recording_id]
        while sum(length for _, length in stream) > position:
            stream.pop()
        assert sum(length for _, length in stream) == position
        writer = SegmentWriter(
            self.storage, recording_id, descriptor().geometry, position, checksum=self.checksum
        )
        writer.open()
        for block, length in to:
            stream.append((block, length))
            writer.write(block, length)
            self.acknowledged[recording_id] = writer.position
        return writer

    def record(self, end: int, mark: int = 1) -> int:
        """A new recording, which is stopped."""
        recording_id = self.catalog.next_recording_id
        self.streams[recording_id] = []
        assert self.catalog.add(descriptor()) == recording_id
        self.acknowledged[recording_id] = 0
        writer = self.write(recording_id, 0, blocks(0, end, mark))
        writer.close()
        self.catalog.stopped(recording_id, writer.position, self.now_ms)
        return recording_id

    def extend(self, recording_id: int, length: int, mark: int = 7) -> None:
        """Go on with one."""
        position = self.stop_position(recording_id)
        self.catalog.extended(recording_id, 1, 2, descriptor().session_id)
        writer = self.write(recording_id, position, blocks(position, position + length, mark))
        writer.close()
        self.catalog.stopped(recording_id, writer.position, self.now_ms)

    def stop_position(self, recording_id: int) -> int:
        """Where a recording ends."""
        found = self.catalog.find(recording_id)
        assert found is not None
        return found.stop_position

    def deletions(self) -> Deletions:
        """What truncates and purges."""
        context = SimpleNamespace(
            config=config(self.checksum_name),
            storage=self.storage,
            catalog=self.catalog,
            stored=self.stored,
            log=SimpleNamespace(error=pytest.fail, warning=pytest.fail),
        )
        return Deletions(cast(Context, context), lambda number: False, lambda number, reason: None)

    def work_off(self, deletions: Deletions, recording_id: int) -> None:
        """Delete one file after the other."""
        while self.stored.has_deletion(recording_id):
            deletions.do_work()

    def truncate(self, recording_id: int, position: int) -> None:
        """Cut a recording at a position."""
        self.acknowledged[recording_id] = position
        deletions = self.deletions()
        deletions.truncate(cast(Any, Listener()), 1, recording_id, position)
        self.work_off(deletions, recording_id)

    def purge(self, recording_id: int) -> None:
        """Delete one."""
        del self.acknowledged[recording_id]
        deletions = self.deletions()
        deletions.purge(None, recording_id, "a test purges it")
        self.work_off(deletions, recording_id)

    # --- what must be ------------------------------------------------------------------------------------

    def check(self) -> None:
        """Every recording is whole up to its end, has nothing after it, and no acknowledged frame is missing."""
        storage = self.storage
        for entry in self.catalog.entries():
            recording_id, stop = entry.recording_id, entry.descriptor.stop_position
            names = [name for name in storage.files if name.startswith(f"{recording_id}-")]
            if entry.state == STATE_DELETED:
                assert names == []
                continue
            assert stop >= self.acknowledged.get(recording_id, 0)
            stream = b"".join(block.ljust(length, b"\0") for block, length in self.streams[recording_id])
            for position, one, body in frames_of(storage, entry.descriptor, 0, stop):
                if not one.is_padding:
                    assert body == stream[position + 32 : position + one.span]
            self._check_rest(entry.descriptor, names)
        assert self.acknowledged.keys() <= {entry.recording_id for entry in self.catalog}
        checked = verify(self.catalog, storage, is_thorough=True, checksum=self.checksum)
        assert [finding.text for finding in checked if not finding.is_ok] == []
        assert [name for name in storage.files if name.endswith((".begun", ".part", ".updated"))] == []

    def _check_rest(self, one: RecordingDescriptor, names: list[str]) -> None:
        geometry, stop = one.geometry, one.stop_position
        for name in names:
            if not name.endswith(".rec"):
                assert name.endswith(".cut")
                continue
            base = int(name.removesuffix(".rec").partition("-")[2])
            assert base <= stop
            data = self.storage.files[name]
            assert len(data) == geometry.segment_length
            assert not any(data[max(0, stop - base) :])


class Listener:
    """A control session that takes everything."""

    def send_signal(self, *_: object) -> None:
        """Heard."""

    def send_error(self, correlation_id: int, code: object, text: str) -> None:
        pytest.fail(text)


def prepared(checksum: str | None, *, knows_holes: bool) -> Archive:
    """Two recordings that were stopped; the first has four segment files."""
    archive = Archive(SimulatedStorage(knows_holes=knows_holes), checksum)
    archive.start()
    archive.record(3 * SEGMENT_LENGTH + TERM_LENGTH // 2)
    archive.record(SEGMENT_LENGTH - 30_000, mark=3)
    archive.check()
    return archive


def frame_boundary(archive: Archive, position: int) -> int:
    """The first block of the first recording that begins at a position or after it."""
    at = 0
    for _, length in archive.streams[0]:
        if at >= position:
            return at
        at += length
    raise AssertionError("beyond the end")


def grow(archive: Archive) -> None:
    """Recordings until the catalog has to become longer, one of them in two pages of it."""
    for number in range(4):
        recording_id = archive.catalog.next_recording_id
        archive.streams[recording_id] = []
        channel = "aeron:ipc?alias=" + "x" * 1330
        archive.catalog.add(descriptor(original_channel=channel, stop_position=0, stream_id=number))
    archive.catalog.replace_channel(0, "aeron:ipc?alias=" + "y" * 2000, "aeron:ipc")
    in_two_pages = next(
        entry.recording_id
        for entry in archive.catalog.entries()
        if entry.offset // PAGE_LENGTH != (entry.offset + 300) // PAGE_LENGTH
    )
    archive.catalog.replace_channel(in_two_pages, "aeron:ipc?alias=z", "aeron:ipc?alias=" + "w" * 800)


OPERATIONS: dict[str, Callable[[Archive], object]] = {
    "record": lambda archive: archive.record(30_000),
    "extend": lambda archive: archive.extend(0, 30_000),
    "extend over a segment": lambda archive: archive.extend(1, 40_000),
    "truncate inside a segment": lambda archive: archive.truncate(
        0, frame_boundary(archive, SEGMENT_LENGTH + 9000)
    ),
    "truncate at a segment": lambda archive: archive.truncate(0, SEGMENT_LENGTH),
    "truncate at the start": lambda archive: archive.truncate(0, 0),
    "truncate and extend": lambda archive: (
        archive.truncate(0, frame_boundary(archive, SEGMENT_LENGTH + 9000)),
        archive.extend(0, 20_000),
    ),
    "purge": lambda archive: archive.purge(0),
    "grow the catalog": grow,
}


def kill_everywhere(
    archive: Archive, act: Callable[[Archive], object], check: Callable[[Archive], None]
) -> int:
    """Kill an operation before each of its steps; gives their number. Each time, the start is killed as well."""
    step = 0
    while True:
        victim = archive.after_the_kill()
        victim.start()
        victim.storage.kill_before(step)
        try:
            act(victim)
        except Killed:
            pass
        else:
            victim = victim.after_the_kill()
            victim.start()
            check(victim)
            return step
        kill_the_start(victim, check)
        step += 1


def kill_the_start(victim: Archive, check: Callable[[Archive], None]) -> None:
    """Kill the start that follows before each of its steps, and let the one after that be."""
    step, is_over = 0, False
    while not is_over:
        again = victim.after_the_kill()
        again.storage.kill_before(step)
        try:
            again.start()
            is_over = True
        except Killed:
            pass
        again = again.after_the_kill()
        again.start()
        check(again)
        step += 1


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(("checksum", "knows_holes"), [(None, True), (None, False), ("CRC-32C", False)])
def test_a_kill_at_any_step_is_undone_or_finished(name: str, checksum: str | None, knows_holes: bool) -> None:
    """Without a person, and with a recording that can be extended from where it ends."""

    def check(archive: Archive) -> None:
        archive.check()
        for recording_id in [entry.recording_id for entry in archive.catalog]:
            if archive.catalog.find(recording_id).stream_id == descriptor().stream_id:  # type: ignore[union-attr]
                archive.extend(recording_id, 10_000, mark=11)
        archive.check()

    archive = prepared(checksum, knows_holes=knows_holes)
    assert kill_everywhere(archive, OPERATIONS[name], check) > 3


def test_a_kill_at_any_step_of_the_first_start_leaves_a_directory_that_starts() -> None:
    """Catalog and mark file are made in several steps each."""
    empty = Archive(SimulatedStorage(), None)
    kill_the_start(empty, Archive.check)


def test_a_kill_while_everything_is_deleted_deletes_everything() -> None:
    """The next start goes on with it, whatever its settings."""
    archive, step, is_over = prepared(None, knows_holes=True), 0, False
    names = set(archive.storage.files)
    while not is_over:
        victim = archive.after_the_kill()
        victim.storage.kill_before(step)
        try:
            victim.start(directory_delete_on_start=True)
            is_over = True
        except Killed:
            pass
        victim = victim.after_the_kill()
        files = victim.storage.files.keys()
        is_begun = "delete-all.begun" in files or not names <= files
        victim.start()
        assert len(victim.catalog) == (0 if is_begun else 2)
        if is_begun:
            assert not any(name.endswith(".rec") for name in victim.storage.files)
            victim.acknowledged.clear()
        victim.check()
        step += 1
    assert step > 5


def test_a_note_that_the_catalog_does_not_bear_out_is_dropped() -> None:
    """Another archive, which knows no notes, has gone on from there: nothing of it is deleted."""
    archive = prepared(None, knows_holes=True)
    stop = archive.stop_position(0)
    archive.storage.create("truncate-0-131072.begun", 0)
    archive.storage.create("truncate-9-0.begun", 0)
    archive.start()
    assert archive.stop_position(0) == stop
    archive.check()


@pytest.mark.parametrize("number", ["07", "+7", " 7", "7_0", "\u0667"])
def test_a_file_that_is_called_almost_as_a_note_is_none(number: str) -> None:
    """A note is taken away by its name, so under another one it would be finished again at each start."""
    assert Purge.named(f"purge-{number}.begun") is None
    assert Truncation.named(f"truncate-{number}-0.begun") is None
    assert Truncation.named(f"truncate-0-{number}.begun") is None


def test_what_is_cut_off_is_kept_aside_once() -> None:
    """However often the start is killed: one file, which has the bytes."""
    archive = prepared(None, knows_holes=True)
    stop = archive.stop_position(1)
    archive.catalog.extended(1, 1, 2, descriptor().session_id)
    data = archive.storage.files["1-0.rec"]
    rest = b"\0" * 64 + b"a part of a block" * 500
    data[stop : stop + len(rest)] = rest

    def check(again: Archive) -> None:
        again.check()
        assert [name for name in again.storage.files if name.endswith(".cut")] == [f"1-{stop}.cut"]
        assert again.storage.files[f"1-{stop}.cut"] == rest

    kill_the_start(archive, check)
    again = archive.after_the_kill()
    notes: list[str] = []
    recovered_stop_position(again.storage, descriptor(recording_id=1), None, notes.append)
    assert notes == [f"{len(rest)} bytes after position={stop} of 1-0.rec were moved to 1-{stop}.cut"]
