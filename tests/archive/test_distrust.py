"""Recovery does not take a damaged catalog entry for the truth about files that contradict it."""

import struct

import pytest

from headrace.archive.errors import CatalogError
from headrace.archive.files.catalog import CATALOG_NAME, STATE_DELETED, STATE_INVALID, Catalog
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.pending_operations import Purge, Truncation, delete_all
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.files.verify import verify
from headrace.archive.server.recovery import Recovery, recover
from headrace.testing import SimulatedStorage
from tests.archive.streams import TERM_LENGTH, descriptor, frames

CRC_32 = checksum_named("CRC-32")
CRC_32C = checksum_named("CRC-32C")
SEGMENT = 2 * TERM_LENGTH
# Where the first entry has its state, which no checksum covers.
STATE = 32 + 4
# Where a field of the first entry is in the catalog.
START_POSITION, INITIAL_TERM_ID, SEGMENT_LENGTH, TERM, STREAM = (32 + 32 + at for at in (40, 56, 60, 64, 76))


def killed(storage: SimulatedStorage, *, end: int, checksum: object = None, **changes: object) -> None:
    """What an archive leaves that was killed while it recorded up to a position, and a sound second recording."""
    catalog = Catalog(storage, capacity=4096, checksum=checksum)  # type: ignore[arg-type]
    for recording_id in (0, 1):
        catalog.add(descriptor(**changes))
        shape = descriptor(**changes)
        writer = SegmentWriter(storage, recording_id, shape.geometry, shape.start_position)
        writer.open()
        while writer.position < end:
            count = min(end - writer.position, TERM_LENGTH - writer.position % TERM_LENGTH) // 128
            writer.write(frames(writer.position, count, 96), count * 128)
        writer.close()


def damage(storage: SimulatedStorage, offset: int, number: int, kind: str = "<i") -> None:
    struct.pack_into(kind, storage.files[CATALOG_NAME], offset, number)


def segments(storage: SimulatedStorage) -> dict[str, bytes]:
    """All files but the catalog, of which only the sound recording's may have changed."""
    return {name: bytes(data) for name, data in storage.files.items() if name.startswith("0-")}


def started(storage: SimulatedStorage, checksum: object = None) -> tuple[Catalog, list[str]]:
    notes: list[str] = []
    catalog = Catalog(storage, checksum=checksum, on_note=notes.append)  # type: ignore[arg-type]
    recover(catalog, storage, Recovery(now_ms=7, on_note=notes.append, checksum=checksum))  # type: ignore[arg-type]
    return catalog, [note for note in notes if "is skipped" in note]


DAMAGES: dict[str, tuple[int, int, int, str]] = {
    "a longer term": (
        4 * TERM_LENGTH - 1280,
        TERM,
        2 * TERM_LENGTH,
        "longer than|term_buffer_length|no frame",
    ),
    "a shorter segment": (
        4 * TERM_LENGTH - 1280,
        SEGMENT_LENGTH,
        TERM_LENGTH,
        "is longer than segment_file_length",
    ),
    "a longer segment": (
        4 * TERM_LENGTH - 1280,
        SEGMENT_LENGTH,
        4 * TERM_LENGTH,
        "where no segment file begins",
    ),
    "another stream": (1280, STREAM, 4711, "not a frame of the recording"),
    "another first term": (1280, INITIAL_TERM_ID, 5, "not a frame of the recording"),
    "a start within the first file": (1280, START_POSITION, 640 + 32, "not a frame of the recording"),
    "a start at a later frame": (2560, START_POSITION, 1280, "before start_position=1280"),
    "a start after the files": (1280, START_POSITION, 1 << 40, "first segment file is missing"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_files_that_contradict_the_entry_stay_as_they_are(case: str) -> None:
    """The recording is skipped by name with advice; the archive starts, and others are recovered."""
    end, offset, number, reason = DAMAGES[case]
    storage = SimulatedStorage()
    killed(storage, end=end)
    damage(storage, offset, number, "<q" if offset == START_POSITION else "<i")
    before = segments(storage)
    catalog, skipped = started(storage)
    assert segments(storage) == before
    assert [entry.recording_id for entry in catalog] == [1]
    assert catalog.find(1).stop_position == end  # type: ignore[union-attr]
    (note,) = skipped
    assert note.startswith("recording_id=0 is skipped, and its files stay as they are")
    assert "headrace archive verify 0" in note
    assert any(part in note for part in reason.split("|")), note
    catalog.close()
    (finding, other) = verify(Catalog(storage), storage, is_repaired=True)
    assert not finding.is_ok, "a repair does not take it for the truth either"
    assert other.is_ok
    assert segments(storage) == before


@pytest.mark.parametrize(
    ("wrong", "end"), [(2 * TERM_LENGTH, 2 * TERM_LENGTH - 1280), (4 * TERM_LENGTH, 1 << 18)]
)
def test_a_term_length_that_the_frames_do_not_have_is_found(wrong: int, end: int) -> None:
    """Frames of the first term have the same places with both, those after it do not."""
    storage = SimulatedStorage()
    killed(storage, end=end, segment_file_length=8 * TERM_LENGTH)
    damage(storage, TERM, wrong)
    before = segments(storage)
    _, (note,) = started(storage)
    assert f"is of a recording with term_buffer_length={TERM_LENGTH}" in note
    assert segments(storage) == before


@pytest.mark.parametrize("kind", [CRC_32, CRC_32C])
@pytest.mark.parametrize("configured", [None, CRC_32, CRC_32C])
def test_an_entry_without_its_checksum_is_not_trusted(kind: object, configured: object) -> None:
    """Whatever the archive is to write now; an MTU contradicts no file. A repair takes the entry as it is."""
    storage = SimulatedStorage()
    killed(storage, end=1280, checksum=kind)
    catalog, skipped = started(storage.copy(), configured)
    assert (len(catalog), skipped) == (2, [])
    damage(storage, 32 + 32 + 68, 64)
    before = segments(storage)
    catalog, (note,) = started(storage, configured)
    assert "recording_id=0 is skipped" in note
    assert "checksum of its catalog entry at offset=32 is wrong" in note
    assert segments(storage) == before
    assert [one.is_ok for one in verify(Catalog(storage), storage)] == [False, True]
    assert [one.is_ok for one in verify(Catalog(storage), storage, is_repaired=True, now_ms=7)] == [
        True,
        True,
    ]
    catalog, skipped = started(storage, configured)
    assert (len(catalog), skipped) == (2, [])


def test_the_checksum_that_a_shorter_channel_leaves_is_one_of_the_entry() -> None:
    """Aeron's archive writes that of the shorter description, and keeps the length of the entry."""
    assert CRC_32 is not None
    storage = SimulatedStorage()
    killed(storage, end=1280, checksum=CRC_32, original_channel="aeron:ipc?alias=" + "x" * 200)
    data = storage.files[CATALOG_NAME]
    length = struct.unpack_from("<i", data, 32)[0]
    short = descriptor().encode()
    short = short.ljust(-(-(32 + len(short)) // 64) * 64 - 32, b"\0")
    data[64 : 64 + length] = short.ljust(length, b"\0")
    damage(storage, 40, CRC_32(short))
    assert started(storage)[1] == []


def test_a_kill_between_two_pages_of_an_update_needs_no_person() -> None:
    """The checksum of the stop may be there without the stop, where a page ends between them."""
    storage = SimulatedStorage()
    catalog = Catalog(storage, capacity=1 << 16, checksum=CRC_32)
    ends = set()
    for _ in range(60):
        recording_id = catalog.add(descriptor(original_channel="x" * (64 * len(ends))))
        entry = catalog.find_entry(recording_id)
        assert entry is not None
        page = (entry.offset // 4096 + 1) * 4096
        if page >= entry.offset + entry.length:
            continue
        ends.add(page - entry.offset)
        writer = SegmentWriter(storage, recording_id, descriptor().geometry, 0)
        writer.open()
        writer.write(frames(0, 10, 96), 1280)
        writer.close()
        copy = storage.copy()
        catalog.stopped(recording_id, 1280, 7)
        copy.files[CATALOG_NAME][:page] = storage.files[CATALOG_NAME][:page]
        again, skipped = started(copy)
        assert skipped == []
        assert again.find(recording_id).stop_position == 1280  # type: ignore[union-attr]
    assert 32 in ends, "the header alone was written"


@pytest.mark.parametrize("stray", [3 * SEGMENT, SEGMENT])
@pytest.mark.parametrize("content", ["frames", "zeros", "noise"])
def test_a_stray_segment_file_does_not_say_where_a_recording_ends(stray: int, content: str) -> None:
    """Only files that continue the recording count. Frames right after a gap need a person: they may be its own."""
    storage = SimulatedStorage()
    killed(storage, end=1280)
    data = {"frames": frames(stray, 3, 96), "zeros": bytes(384), "noise": b"noise" * 80}[content]
    storage.create(f"0-{stray}.rec", SEGMENT).write(0, data)
    before = segments(storage)
    notes: list[str] = []
    catalog = Catalog(storage)
    recover(catalog, storage, Recovery(now_ms=7, on_note=notes.append))
    assert segments(storage) == before
    if (stray, content) == (SEGMENT, "frames"):
        assert "frames are missing at the end of simulated/0-0.rec" in notes[0]
        assert [entry.recording_id for entry in catalog] == [1]
        (finding, _) = verify(Catalog(storage), storage, is_repaired=True)
        assert finding.is_ok
        catalog = Catalog(storage)
    else:
        assert notes[0].startswith(
            f"simulated/0-{stray}.rec does not continue recording_id=0 and is left as it is"
        )
    assert catalog.find(0).stop_position == 1280  # type: ignore[union-attr]
    assert storage.files[f"0-{stray}.rec"] == before[f"0-{stray}.rec"]


@pytest.mark.parametrize("left", [None, 0, 100, 32 + 192])
def test_a_catalog_that_is_gone_or_cut_short_is_no_empty_one(left: int | None) -> None:
    """The next recording would get an id whose files are there, and purging it would delete them."""
    storage = SimulatedStorage()
    killed(storage, end=1280)
    if left is None:
        storage.delete(CATALOG_NAME)
    else:
        del storage.files[CATALOG_NAME][left:]
    before = segments(storage)
    with pytest.raises(CatalogError, match=r"archive\.catalog.*restore it, or move the segment files"):
        started(storage)
    assert segments(storage) == before
    for name in storage.names():
        storage.delete(name)
    assert started(storage)[1] == []


@pytest.mark.parametrize("name", ["0-+131072.rec", "0-131_072.rec", "0- 131072.rec", "0-0131072.rec"])
def test_a_file_with_a_name_that_only_looks_like_a_segments_is_none(name: str) -> None:
    """The file that the number in it stands for is not there."""
    storage = SimulatedStorage()
    killed(storage, end=1280)
    storage.create(name, 5)
    catalog, skipped = started(storage)
    assert (len(catalog), skipped) == (2, [])
    assert storage.length(name) == 5


def test_whole_terms_after_missing_frames_are_not_cut() -> None:
    """A kill leaves no gap before the last term, so the disk lost a header, and a person has to look."""
    storage = SimulatedStorage()
    killed(storage, end=TERM_LENGTH + 1280)
    for lost in (TERM_LENGTH - 1280, 1280):
        storage.files["0-0.rec"][lost : lost + 32] = bytes(32)
        before = segments(storage)
        catalog, (note,) = started(storage)
        assert segments(storage) == before
        assert (
            f"frames are missing at position={lost}, and the term at position={TERM_LENGTH} goes on" in note
        )
        assert [entry.recording_id for entry in catalog] == [1]
        catalog.close()
    (finding, _) = verify(Catalog(storage), storage, is_repaired=True)
    assert finding.is_ok
    assert Catalog(storage).find(0).stop_position == 1280  # type: ignore[union-attr]
    assert storage.files["0-1280.cut"] == before["0-0.rec"][1280:].rstrip(b"\0")


@pytest.mark.parametrize("state", [STATE_DELETED, STATE_INVALID])
def test_a_state_that_damage_wrote_hides_a_recording_by_name_and_deletes_nothing(state: int) -> None:
    storage = SimulatedStorage()
    killed(storage, end=1280, checksum=CRC_32)
    before = segments(storage)
    damage(storage, STATE, state)
    for _ in range(2):
        notes: list[str] = []
        catalog = Catalog(storage, checksum=CRC_32, on_note=notes.append)
        recover(catalog, storage, Recovery(now_ms=7, on_note=notes.append, checksum=CRC_32))
        word = "deleted" if state == STATE_DELETED else "invalid"
        told = [note for note in notes if f"marks recordings as {word} whose files are there" in note]
        assert len(told) == 1
        assert "recording_id=0;" in told[0]
        assert catalog.find(0) is None
        assert segments(storage) == before
        catalog.close()
    catalog = Catalog(storage, checksum=CRC_32)
    (wrong, _), (repaired, _) = verify(catalog, storage), verify(catalog, storage, is_repaired=True)
    assert wrong.is_ok == (state == STATE_INVALID)
    assert repaired.is_ok
    assert catalog.find(0).stop_position == 1280  # type: ignore[union-attr]
    assert segments(storage) == before


def test_a_purge_that_was_begun_and_decided_is_finished_and_one_that_was_not_is_dropped() -> None:
    for state, left in ((STATE_DELETED, 0), (None, 1)):
        storage = SimulatedStorage()
        killed(storage, end=1280)
        Purge(0).begin(storage, 0)
        if state is not None:
            damage(storage, STATE, state)
        started(storage)
        assert len(segments(storage)) == left
        assert Purge(0).name not in storage.files
        assert "1-0.rec" in storage.files


@pytest.mark.parametrize("kind", ["create", "write", "sync"])
@pytest.mark.parametrize("begun", [Purge(0), Truncation(0, 64)])
def test_what_the_disk_refuses_to_note_has_not_begun(begun: Purge | Truncation, kind: str) -> None:
    storage = SimulatedStorage()
    storage.fail(kind)
    with pytest.raises(OSError, match="Input/output error"):
        begun.begin(storage, 1)
    assert storage.names() == []


def test_a_note_of_what_is_not_finished_stays_when_the_same_is_refused_again() -> None:
    storage, begun = SimulatedStorage(), Truncation(0, 64)
    begun.begin(storage, 1)
    storage.fail("sync")
    with pytest.raises(OSError, match="Input/output error"):
        begun.begin(storage, 1)
    assert storage.names() == [begun.name]


@pytest.mark.parametrize(
    "name", ["purge-.begun", "purge-0", "purge-x.begun", "purge--1.begun", "purge-0.begun.1"]
)
def test_a_name_that_only_looks_like_a_purge_is_none(name: str) -> None:
    assert Purge.named(name) is None
    assert Purge.named(Purge(12).name) == Purge(12)


def test_deleting_everything_forgets_what_was_begun() -> None:
    """A new recording has the id of an old one."""
    storage = SimulatedStorage()
    killed(storage, end=1280)
    Purge(0).begin(storage, 0)
    delete_all(storage)
    assert storage.names() == []


def test_a_catalog_that_is_refused_stays_as_it_was() -> None:
    storage = SimulatedStorage()
    killed(storage, end=1280)
    damage(storage, 0, 2 << 16)
    storage.create("archive.catalog.updated", 64).close()
    before = {name: bytes(data) for name, data in storage.files.items()}
    assert len(before[CATALOG_NAME]) == 4096
    with pytest.raises(CatalogError, match=r"version 2\.0\.0"):
        Catalog(storage, capacity=1 << 20)
    assert {name: bytes(data) for name, data in storage.files.items()} == before
    damage(storage, 0, 3 << 16 | 1 << 8)
    catalog = Catalog(storage, capacity=1 << 20)
    assert len(storage.files[CATALOG_NAME]) == catalog.capacity == 1 << 20
    assert len(catalog) == 2
