"""Catalog, segments and recovery, in memory and byte for byte."""

import contextlib
import itertools
import re
import struct
import zlib

import pytest

from headrace.archive.errors import CatalogError
from headrace.archive.files.catalog import CATALOG_NAME, STATE_INVALID, Catalog
from headrace.archive.files.checksum import Checksum, checksum_named
from headrace.archive.files.frames import read_frame
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.files.stop_position import recovered_stop_position
from headrace.archive.files.verify import verify
from headrace.archive.server.recovery import Recovery, recover
from headrace.positions import HEADER_LENGTH
from headrace.testing import Killed, SimulatedStorage
from headrace.testing.storage import PAGE_LENGTH
from tests.archive.streams import SESSION_ID, TERM_LENGTH, descriptor, frame, frames

CRC_32 = checksum_named("CRC-32")
CRC_32C = checksum_named("CRC-32C")
assert CRC_32 is not None
assert CRC_32C is not None
EMPTY = descriptor(stripped_channel="", original_channel="", source_identity="")


def put(storage: SimulatedStorage, offset: int, data: bytes) -> None:
    """Damages the catalog."""
    storage.files[CATALOG_NAME][offset : offset + len(data)] = data


# --- catalog ---------------------------------------------------------------------------------------------


def test_a_new_catalog_has_the_published_header() -> None:
    """32 bytes: version 3.1.0, length, next id, alignment 64."""
    storage = SimulatedStorage()
    Catalog(storage, capacity=4096).close()
    assert bytes(storage.files[CATALOG_NAME][:32]) == struct.pack("<iiqi12x", 196864, 32, 0, 64)
    assert len(storage.files[CATALOG_NAME]) == 4096


def test_an_entry_has_the_published_layout() -> None:
    """The specification's example: three empty strings make a frame of 128 bytes with length 96."""
    storage = SimulatedStorage()
    catalog = Catalog(storage)
    assert catalog.add(EMPTY) == 0
    entry = bytes(storage.files[CATALOG_NAME][32:160])
    assert struct.unpack_from("<iii", entry) == (96, 1, 0)
    values = struct.unpack_from("<qqqqqqqiiiiii", entry, 32)
    assert values[2:7] == (0, EMPTY.start_timestamp, -1, 0, -1)
    assert values[7:] == (EMPTY.initial_term_id, 2 * TERM_LENGTH, TERM_LENGTH, 1408, SESSION_ID, 1001)
    assert entry[112:] == bytes(16)
    assert struct.unpack_from("<q", storage.files[CATALOG_NAME], 8) == (1,)


def test_recordings_survive_a_reopening_in_the_order_of_their_ids() -> None:
    """With their numbers changed, one deleted, and one description grown over its neighbours."""
    storage = SimulatedStorage()
    catalog = Catalog(storage, capacity=32)
    for number in range(5):
        assert catalog.add(descriptor(stream_id=number)) == number
    catalog.stopped(1, 4096, 17)
    catalog.set_state(2, 2)
    catalog.replace_channel(0, "aeron:ipc?alias=" + "x" * 500, "aeron:ipc")
    catalog.extended(3, 5, 6, 99)
    catalog.close()
    again = Catalog(storage)
    assert [entry.recording_id for entry in again] == [0, 1, 3, 4]
    assert again.next_recording_id == 5
    assert again.find(1) == descriptor(recording_id=1, stream_id=1, stop_position=4096, stop_timestamp=17)
    assert again.find(2) is None
    assert again.find(0).original_channel.endswith("xxx")  # type: ignore[union-attr]
    assert again.find(3).session_id == 99  # type: ignore[union-attr]
    assert again.find(4) == descriptor(recording_id=4, stream_id=4)
    assert [entry.recording_id for entry in again.valid_from(2)] == [3, 4]


@pytest.mark.parametrize(
    ("kind", "name"), [("write", "archive.catalog.updated"), ("rename", "*"), ("sync", ".")]
)
def test_a_description_that_cannot_be_made_longer_harms_no_other(kind: str, name: str) -> None:
    """Neither at once nor when it is written again."""
    storage = SimulatedStorage()
    catalog = Catalog(storage)
    for _ in range(2):
        catalog.add(descriptor())
    storage.fail(kind, name)
    with pytest.raises(OSError, match="Input/output error"):
        catalog.replace_channel(0, "aeron:ipc?alias=" + "x" * 500, "aeron:ipc")
    catalog.stopped(0, 4096, 17)
    catalog.stopped(1, 8192, 18)
    catalog.close()
    storage.mend()
    again = Catalog(storage)
    assert list(again) == list(catalog)
    assert [entry.descriptor.stop_position for entry in again] == [4096, 8192]


@pytest.mark.parametrize(
    ("offset", "data", "words"),
    [
        (0, struct.pack("<i", 2 << 16), "has version 2.0.0, and this archive reads 3.x"),
        (32, struct.pack("<i", 1 << 30), "reaches beyond the file"),
        (32, struct.pack("<i", 0), "length is 0 but next_recording_id"),
        (224 + 48, struct.pack("<q", 0), "recording_id=0 follows recording_id=0"),
        (144, struct.pack("<I", 0xFFFF_FFFF), "ends outside"),
        (8, struct.pack("<q", 1), "next_recording_id=1"),
        (8, struct.pack("<q", (1 << 63) - 1), "next_recording_id=9223372036854775807 leaves no id"),
    ],
)
def test_a_damaged_catalog_is_refused_by_name(offset: int, data: bytes, words: str) -> None:
    """Never opened with recordings missing."""
    storage = SimulatedStorage()
    catalog = Catalog(storage, capacity=4096)
    for _ in range(3):
        storage.create(f"{catalog.add(descriptor())}-0.rec", 0)
    catalog.close()
    assert catalog.entries()[1].offset == 224
    put(storage, offset, data)
    with pytest.raises(CatalogError, match=words) as refusal:
        Catalog(storage)
    assert CATALOG_NAME in str(refusal.value)


@pytest.mark.parametrize(
    ("offset", "data", "words"),
    [
        (36, struct.pack("<i", 9), "state=9"),
        (128, struct.pack("<i", 12345), "term_buffer_length=12345"),
        (104, struct.pack("<q", 33), "start_position=33"),
        (112, struct.pack("<q", -64), "stop_position=-64"),
    ],
)
def test_an_entry_with_values_that_no_recording_has_is_skipped_by_name(
    offset: int, data: bytes, words: str
) -> None:
    """In any place, for where it ends is known: the others are there, its files and its id stay its own."""
    for damaged in range(3):
        storage, notes = SimulatedStorage(), list[str]()
        catalog = Catalog(storage, capacity=4096)
        for _ in range(3):
            storage.create(f"{catalog.add(descriptor())}-0.rec", 0)
        put(storage, offset + 192 * damaged, data)
        again = Catalog(storage, on_note=notes.append)
        assert [entry.recording_id for entry in again] == [one for one in range(3) if one != damaged]
        assert again.find(damaged) is None
        assert again.entries()[damaged].state_name == "DAMAGED"
        (note,) = notes
        assert f"recording_id={damaged} is skipped: {words}" in note
        assert again.add(descriptor(stream_id=7)) == 3
        assert Catalog(storage, on_note=notes.append).find(3).stream_id == 7  # type: ignore[union-attr]


def test_an_append_cut_short_is_as_if_it_had_not_been() -> None:
    """The description was written, its length was not: no client was told of the recording."""
    storage = SimulatedStorage()
    catalog = Catalog(storage, capacity=4096)
    catalog.add(descriptor())
    catalog.add(descriptor(stream_id=5))
    end = catalog.entries()[1].offset
    put(storage, end, struct.pack("<iii", 0, 0, 0))
    put(storage, 8, struct.pack("<q", 1))
    again = Catalog(storage)
    assert len(again) == 1
    assert again.add(descriptor(stream_id=6)) == 1
    assert Catalog(storage).find(1).stream_id == 6  # type: ignore[union-attr]


def test_entries_carry_checksums_when_asked_to() -> None:
    """Over the description and the zeros after it."""
    storage = SimulatedStorage()
    Catalog(storage, checksum=CRC_32).add(EMPTY)
    stored = struct.unpack_from("<i", storage.files[CATALOG_NAME], 40)[0]
    assert stored & 0xFFFF_FFFF == zlib.crc32(storage.files[CATALOG_NAME][64:160])


def test_the_checksums_are_the_published_ones() -> None:
    """Check values of both polynomials."""
    for name, published in (("Crc32", 0xCBF4_3926), ("Crc32c", 0xE306_9283)):
        for package in ("io.aeron.archive.checksum", "org.agrona.checksum"):
            checksum = checksum_named(f"{package}.{name}")
            assert checksum is not None
            assert checksum(b"123456789") & 0xFFFF_FFFF == published
            assert checksum(memoryview(b"0123456789")[1:]) == checksum(bytearray(b"123456789"))


# --- segments --------------------------------------------------------------------------------------------


def test_segments_begin_at_the_term_of_the_start_position() -> None:
    """The specification's example."""
    geometry = descriptor(start_position=65632).geometry
    assert [geometry.segment_base(position) for position in (65632, 196607, 196608)] == [65536, 65536, 196608]
    assert geometry.segment_offset(65632) == 96
    assert geometry.term_id(2 * TERM_LENGTH) == -(1 << 31), "term ids wrap"


def write(storage: SimulatedStorage, position: int, *blocks: tuple[bytes, int], **settings: object) -> int:
    """Records blocks of bytes and the stream they fill."""
    writer = SegmentWriter(storage, 0, descriptor(start_position=position).geometry, position, **settings)  # type: ignore[arg-type]
    writer.open()
    for block, length in blocks:
        writer.write(block, length)
    writer.close()
    return writer.position


def test_a_full_segment_is_followed_by_the_next_at_once() -> None:
    """Files of full length, named by position; padding is stored as its header alone."""
    storage = SimulatedStorage()
    first = frames(64, 10, 96)
    rest = TERM_LENGTH - 64 - len(first)
    padding = frame(64 + len(first), b"", kind=0, length=rest)
    second = frames(TERM_LENGTH, TERM_LENGTH // 128, 96)
    assert write(storage, 64, (first, len(first)), (padding, rest), (second, TERM_LENGTH)) == 2 * TERM_LENGTH
    assert storage.names() == ["0-0.rec", f"0-{2 * TERM_LENGTH}.rec"]
    data = storage.files["0-0.rec"]
    assert len(data) == 2 * TERM_LENGTH
    assert data[:64] == bytes(64)
    assert data[64 : 64 + len(first)] == first
    assert not any(data[64 + len(first) + 32 : TERM_LENGTH])
    assert storage.files[f"0-{2 * TERM_LENGTH}.rec"] == bytes(2 * TERM_LENGTH)


def test_a_next_segment_that_is_there_already_is_kept_aside() -> None:
    """It is of a truncation that another archive did not finish, or of a catalog that was lost."""
    for name in (f"0-{2 * TERM_LENGTH}.rec", f"0-{4 * TERM_LENGTH}.rec"):
        storage, notes = SimulatedStorage(), []
        storage.create(name, 5).write(0, b"stale")
        block = frames(0, TERM_LENGTH // 128, 96)
        write(storage, 0, *[(block, TERM_LENGTH)] * 4, on_note=notes.append)
        cut_name = name.replace(".rec", ".cut")
        assert storage.files[cut_name] == b"stale"
        assert notes == [f"{name} does not belong to the recording and was renamed to {cut_name}"]
        assert not any(storage.files[f"0-{4 * TERM_LENGTH}.rec"])


def test_what_lies_where_an_extension_writes_is_kept_aside() -> None:
    """Frames of a former life after the end would be taken for frames of this one."""
    storage, notes = SimulatedStorage(), []
    block = frames(0, 20, 96)
    write(storage, 0, (block, len(block)))
    writer = SegmentWriter(storage, 0, descriptor().geometry, 1280, on_note=notes.append)
    writer.open()
    writer.close()
    assert storage.files["0-1280.cut"] == block[1280:]
    assert not any(storage.files["0-0.rec"][1280:])
    assert notes == [f"{len(block) - 1280} bytes after position=1280 of 0-0.rec were moved to 0-1280.cut"]


def test_the_first_header_of_a_block_is_written_last() -> None:
    """A block that a kill cut short begins with no header, on whatever file system."""
    block, written = frames(0, 20, 992), set()
    for step in itertools.count():
        storage = SimulatedStorage()
        storage.kill_before(step)
        with contextlib.suppress(Killed):
            write(storage, 0, (block, len(block)))
            break
        data = storage.files.get("0-0.rec", bytearray())
        assert not any(data[:HEADER_LENGTH])
        written.add(len(data[: len(block)].rstrip(b"\0")))
    assert storage.files["0-0.rec"][: len(block)] == block
    assert len(block) in written, "all but the header was there"


def test_each_sync_level_forces_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Level 0 nothing; 1 the data; 2 the data and what describes it; both the directory for a new file."""
    block, seen = frames(0, 4, 96), []
    file = SimulatedStorage().create("0-0.rec", 0)
    monkeypatch.setattr(SimulatedStorage, "sync", lambda storage: seen.append("directory"))
    monkeypatch.setattr(type(file), "sync", lambda file, level: seen.append(level))
    for level, syncs in ((0, []), (1, ["directory", 1]), (2, ["directory", 2])):
        seen.clear()
        write(SimulatedStorage(), 0, (block, len(block)), sync_level=level)
        assert seen == syncs


def test_a_position_moves_only_after_the_sync() -> None:
    """A block that was written and not forced is not acknowledged."""
    storage, block = SimulatedStorage(), frames(0, 4, 96)
    writer = SegmentWriter(storage, 0, descriptor().geometry, 0, sync_level=1)
    writer.open()
    storage.fail("sync", "0-0.rec")
    with pytest.raises(OSError, match="Input/output error"):
        writer.write(block, len(block))
    assert storage.files["0-0.rec"][: len(block)] == block
    assert writer.position == 0


@pytest.mark.parametrize("checksum", [CRC_32, CRC_32C])
def test_checksums_replace_session_ids_on_disk_and_are_found_wrong(checksum: Checksum) -> None:
    """Of data and not of padding; and a flipped byte is found at the frame it is in."""
    storage = SimulatedStorage()
    block = frames(0, 4, 100)
    padding = frame(len(block), b"", kind=0, length=TERM_LENGTH - len(block))
    write(storage, 0, (block, len(block)), (padding, TERM_LENGTH - len(block)), checksum=checksum)
    data = bytearray(storage.files["0-0.rec"][: len(block) + 32])
    assert read_frame(data).session_id == checksum(block[32:160])
    assert read_frame(data, len(block)).session_id == SESSION_ID
    assert checksum.first_wrong(data, len(data)) is None
    data[160 + 40] ^= 1
    assert checksum.first_wrong(data, len(data)) == 160
    assert checksum.first_wrong(data, 160) is None


# --- walking ---------------------------------------------------------------------------------------------


# --- recovery --------------------------------------------------------------------------------------------


def recovered(storage: SimulatedStorage, **changes: object) -> tuple[int, list[str]]:
    """The stop position found, and what was noted."""
    notes: list[str] = []
    return recovered_stop_position(storage, descriptor(**changes), None, notes.append), notes


def test_recovery_finds_the_end_of_the_last_frame() -> None:
    """In the last of several files; without a file, the start."""
    storage = SimulatedStorage()
    assert recovered(storage, start_position=128) == (128, [])
    blocks = [(frames(base, TERM_LENGTH // 128, 96), TERM_LENGTH) for base in (0, TERM_LENGTH)]
    write(storage, 0, *blocks)
    assert recovered(storage) == (2 * TERM_LENGTH, [])
    more = frames(2 * TERM_LENGTH, 3, 60)
    storage.files[f"0-{2 * TERM_LENGTH}.rec"][: len(more)] = more
    assert recovered(storage) == (2 * TERM_LENGTH + len(more), [])


def make_holes(storage: SimulatedStorage, name: str) -> None:
    """As after a machine stopped before the pages of zeros were written."""
    data = bytes(storage.files[name])
    storage.delete(name)
    file = storage.create(name, len(data))
    for offset in range(0, len(data), PAGE_LENGTH):
        if any(page := data[offset : offset + PAGE_LENGTH]):
            file.write(offset, page)


def test_a_last_frame_with_an_empty_page_is_kept_unless_the_page_was_never_written() -> None:
    """Its checksum says that it is whole, and so does a disk that does not know holes."""
    first = frames(0, 31, 96)
    block = first + frame(len(first), bytes(6000))
    for knows_holes, checksum, end in (
        (False, None, len(block)),
        (True, CRC_32C, len(block)),
        (True, None, len(first)),
    ):
        storage = SimulatedStorage(knows_holes=knows_holes)
        write(storage, 0, (block, len(block)), checksum=checksum)
        make_holes(storage, "0-0.rec")
        notes: list[str] = []
        assert recovered_stop_position(storage, descriptor(), checksum, notes.append) == end
        assert len(notes) == (end == len(first))
    # Of the frame a part is not zeros, its header.
    assert storage.files[f"0-{end}.cut"] == block[end:].rstrip(b"\0")
    assert not any(storage.files["0-0.rec"][end:])


def test_a_last_frame_that_ends_with_the_segment_does_not_keep_the_archive_from_starting() -> None:
    """There is no hole in its file, so no file system tells whether it knows holes."""
    rest = 2 * TERM_LENGTH - 15 * 8192
    for knows_holes in (False, True):
        for last in (bytes([7]) * (rest - 32), bytes([7]) * (rest - 4200) + bytes(4168)):
            blocks = [frame(8192 * number, b"\1" * 8160) for number in range(15)]
            blocks.append(frame(8192 * 15, last))
            storage = SimulatedStorage(knows_holes=knows_holes)
            write(storage, 0, *[(block, len(block)) for block in blocks])
            storage.delete(f"0-{2 * TERM_LENGTH}.rec")  # a kill may have prevented it
            make_holes(storage, "0-0.rec")
            is_kept = last[-1] == 7 or not knows_holes
            assert recovered(storage)[0] == (2 * TERM_LENGTH if is_kept else 15 * 8192)


@pytest.mark.parametrize(("offset", "name"), [(8, "term_offset"), (20, "term_id"), (16, "stream_id")])
def test_a_recording_ends_before_a_frame_of_another_place(offset: int, name: str) -> None:
    """Frames of a former life of the file are none of it; they are kept aside."""
    storage, block = SimulatedStorage(), frames(0, 20, 96)
    write(storage, 0, (block, len(block)))
    storage.files["0-0.rec"][1280 + offset] ^= 0x40
    rest = bytes(storage.files["0-0.rec"][1280 : len(block)])
    assert recovered(storage)[0] == 1280
    assert storage.files["0-1280.cut"] == rest
    assert not any(storage.files["0-0.rec"][1280:])


def test_a_full_disk_does_not_keep_recovery_from_finding_the_end() -> None:
    """What follows stays where it is, and is kept aside before anything is written there."""
    storage, block = SimulatedStorage(), frames(0, 20, 96)
    write(storage, 0, (block, len(block)))
    storage.files["0-0.rec"][1280 + 20] ^= 0x40
    before, storage.space = bytes(storage.files["0-0.rec"]), 0
    stop, notes = recovered(storage)
    assert stop == 1280
    assert "cannot move the bytes of recording_id=0 after position=1280" in notes[0]
    assert storage.files["0-0.rec"] == before
    assert storage.names() == ["0-0.rec"], "no part of a copy takes room"
    storage.space = 1 << 30
    write(storage, 0, (block[:1280], 1280))
    assert storage.files["0-0.cut"] == before.rstrip(b"\0")


def test_files_at_places_where_no_segment_begins_are_left_alone() -> None:
    """Whatever program put them there."""
    storage, block = SimulatedStorage(), frames(0, 3, 96)
    write(storage, 0, (block, len(block)))
    for name in ("0-64.rec", "0--131072.rec", f"0-{TERM_LENGTH}.rec", "0-x.rec"):
        storage.create(name, 5)
    stop, notes = recovered(storage)
    assert stop == len(block)
    assert [note.partition(" ")[0] for note in notes] == [
        "simulated/0-64.rec",
        f"simulated/0-{TERM_LENGTH}.rec",
    ]
    assert len(storage.names()) == 5


def test_a_recording_with_a_torn_frame_that_others_follow_is_skipped_and_cut_by_a_repair() -> None:
    """No kill leaves one, a power cut or a bad disk may: nothing after it is deleted unasked."""
    for checksum in (CRC_32C, None):
        storage, block = SimulatedStorage(), frames(0, 20, 992)
        catalog = Catalog(storage, checksum=checksum)
        write(storage, 0, (block, len(block)), checksum=checksum)
        torn, files = 8 * 1024, storage.files
        files["0-0.rec"][torn + 32 : torn + 64] = bytes(32)
        if checksum is None:
            # Without checksums only a frame over pages can be told to be torn, where the file system knows holes.
            assert recovered(storage) == (len(block), [])
            continue
        catalog.add(descriptor())
        notes: list[str] = []
        recover(catalog, storage, Recovery(now_ms=0, on_note=notes.append, checksum=checksum))
        assert re.search(rf"0-0\.rec: the frame at offset={torn} is torn.*--repair", notes[0])
        assert catalog.find(0) is None
        assert any(files["0-0.rec"][torn + 1024 :])
        (finding,) = verify(catalog, storage, checksum=checksum, is_repaired=True)
        assert finding.is_ok
        assert Catalog(storage).find(0).stop_position == torn  # type: ignore[union-attr]
        assert not any(files["0-0.rec"][torn:])


@pytest.mark.parametrize("damaged", [0, 4096])
def test_a_repair_leaves_a_payload_that_went_bad_where_it_is(damaged: int) -> None:
    """The frames around it can still be replayed: the recording stays valid, and the damage is told."""
    storage, block = SimulatedStorage(), frames(0, 20, 992)
    catalog = Catalog(storage, checksum=CRC_32C)
    catalog.add(descriptor(stop_position=len(block)))
    write(storage, 0, (block, len(block)), checksum=CRC_32C)
    storage.files["0-0.rec"][damaged + 40] ^= 1
    before = bytes(storage.files["0-0.rec"])
    (finding,) = verify(catalog, storage, checksum=CRC_32C, is_repaired=True)
    assert not finding.is_ok
    assert f"checksum of the frame at position={damaged} is wrong; it was left" in finding.text
    assert catalog.find(0) is not None
    assert storage.files["0-0.rec"] == before


def test_a_repair_cuts_after_the_last_whole_frame_and_keeps_the_rest_aside() -> None:
    """Of a stopped recording too; what does not lie in its last file is told and left."""
    storage, block = SimulatedStorage(), frames(0, TERM_LENGTH // 128, 96)
    more = frames(2 * TERM_LENGTH, 20, 96)
    catalog = Catalog(storage)
    catalog.add(descriptor(stop_position=2 * TERM_LENGTH + len(more)))
    write(storage, 0, (block, TERM_LENGTH), (frames(TERM_LENGTH, TERM_LENGTH // 128, 96), TERM_LENGTH))
    write(storage, 2 * TERM_LENGTH, (more, len(more)))
    last = f"0-{2 * TERM_LENGTH}.rec"
    storage.files[last][1280:1312] = bytes(32)
    rest = bytes(storage.files[last][1280 : len(more)])
    (finding,) = verify(catalog, storage)
    assert not finding.is_ok
    cut = 2 * TERM_LENGTH + 1280
    assert (
        f"whole frames end at position={cut}, but stop_position={2 * TERM_LENGTH + len(more)}" in finding.text
    )
    (finding,) = verify(catalog, storage, is_repaired=True, now_ms=7)
    assert finding.is_ok
    assert f"truncated at position={cut}" in finding.text
    assert f"moved to 0-{cut}.cut" in finding.text
    found = catalog.find(0)
    assert found is not None
    assert found.stop_position == cut
    assert storage.files[f"0-{cut}.cut"] == rest
    assert [one.is_ok for one in verify(catalog, storage, is_thorough=True)] == [True]
    storage.files["0-0.rec"][128 + 16] ^= 1
    before = {name: bytes(data) for name, data in storage.files.items()}
    (finding,) = verify(catalog, storage, is_repaired=True, is_thorough=True)
    assert not finding.is_ok
    assert "0-0.rec goes on" in finding.text
    assert before == storage.files
    storage.delete(last)
    (finding,) = verify(catalog, storage, is_repaired=True)
    assert not finding.is_ok
    assert f"missing segment file: simulated/{last}" in finding.text
    assert catalog.find(0) is not None


def test_a_last_segment_without_frames_is_no_sound_recording() -> None:
    """Unless the recording ends where it begins."""
    storage, block = SimulatedStorage(), frames(0, 2 * TERM_LENGTH // 128, 96)
    catalog = Catalog(storage)
    catalog.add(descriptor(stop_position=2 * TERM_LENGTH))
    write(storage, 0, (block[:TERM_LENGTH], TERM_LENGTH), (block[TERM_LENGTH:], TERM_LENGTH))
    assert [finding.is_ok for finding in verify(catalog, storage)] == [True]
    catalog.update(0, stop_position=2 * TERM_LENGTH + 128)
    (finding,) = verify(catalog, storage)
    assert f"frames end at position={2 * TERM_LENGTH}" in finding.text


def test_checksums_that_begin_within_a_recording_are_no_damage() -> None:
    """Nor are frames without them after others that have them: it was extended with another setting."""
    for first, second in ((None, CRC_32C), (CRC_32C, None)):
        storage = SimulatedStorage()
        block = frames(0, 4, 100)
        write(storage, 0, (block, len(block)), checksum=first)
        more = frames(len(block), 4, 100)
        write(storage, len(block), (more, len(more)), checksum=second)
        found = recovered_stop_position(storage, descriptor(), CRC_32C, lambda text: None)
        assert found == len(block) + len(more)


def test_padding_across_pages_is_trusted() -> None:
    """Its body is never written."""
    storage = SimulatedStorage()
    first = frames(0, 31, 96)
    padding = frame(len(first), b"", kind=0, length=TERM_LENGTH - len(first))
    write(storage, 0, (first, len(first)), (padding, TERM_LENGTH - len(first)))
    assert recovered(storage) == (TERM_LENGTH, [])


def test_recovery_stops_every_active_recording_in_the_catalog() -> None:
    """And leaves the others."""
    storage, notes = SimulatedStorage(), []
    catalog = Catalog(storage)
    catalog.add(descriptor())
    catalog.add(descriptor(stop_position=64))
    block = frames(0, 3, 96)
    write(storage, 0, (block, len(block)))
    recover(catalog, storage, Recovery(now_ms=42, on_note=notes.append))
    assert catalog.find(0).stop_position == len(block)  # type: ignore[union-attr]
    assert catalog.find(0).stop_timestamp == 42  # type: ignore[union-attr]
    assert catalog.find(1).stop_position == 64  # type: ignore[union-attr]
    assert len(notes) == 1


def test_a_start_looks_at_the_directory_no_oftener_for_many_active_recordings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor for many files: of years there are very many."""
    block, looks = frames(0, 3, 96), {}
    for count in (1, 50):
        storage, notes = SimulatedStorage(), []
        catalog = Catalog(storage)
        for recording_id in range(count):
            catalog.add(descriptor(recording_id=recording_id))
            writer = SegmentWriter(storage, recording_id, descriptor().geometry, 0)
            writer.open()
            writer.write(block, len(block))
            writer.close()
        calls, names = [], storage.names
        monkeypatch.setattr(storage, "names", lambda calls=calls, names=names: calls.append(1) or names())
        recover(catalog, storage, Recovery(now_ms=42, on_note=notes.append))
        assert [entry.descriptor.stop_position for entry in catalog] == [len(block)] * count
        assert len(notes) == count
        looks[count] = len(calls)
    assert looks[50] == looks[1] > 0


def test_verify_tells_what_is_wrong_and_makes_valid_what_is_sound() -> None:
    """A frame of another stream, a stop position beyond the frames."""
    storage = SimulatedStorage()
    catalog = Catalog(storage)
    block = frames(0, 30, 96)
    catalog.add(descriptor(stop_position=len(block)))
    write(storage, 0, (block, len(block)))
    assert [finding.is_ok for finding in verify(catalog, storage)] == [True]
    struct.pack_into("<i", storage.files["0-0.rec"], 128 + 16, 9)
    (finding,) = verify(catalog, storage)
    assert "position=128" in finding.text
    assert "stream_id=9, expected 1001" in finding.text
    assert not finding.is_ok
    struct.pack_into("<i", storage.files["0-0.rec"], 128 + 16, 1001)
    catalog.set_state(0, STATE_INVALID)
    assert [one.is_ok for one in verify(catalog, storage, is_repaired=True)] == [True]
    assert catalog.find(0) is not None
    catalog.update(0, stop_position=len(block) + 32)
    (finding,) = verify(catalog, storage)
    assert f"frames end at position={len(block)}" in finding.text
