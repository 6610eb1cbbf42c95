"""What an operator changes in the files of an archive, in memory, with a kill at each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from headrace.archive.errors import ArchiveFileError, CatalogError
from headrace.archive.files import maintenance
from headrace.archive.files.catalog import CATALOG_NAME, STATE_DELETED, STATE_INVALID, Catalog
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.files.verify import verify
from headrace.positions import segment_name
from headrace.testing import Killed, SimulatedStorage
from tests.archive.streams import TERM_LENGTH, descriptor, frames

STOP = 3 * TERM_LENGTH
SEGMENT = 2 * TERM_LENGTH
VALID, INVALID, DELETED, ACTIVE = range(4)
NOW_MS = 1_700_000_000_000
CRC_32 = checksum_named("CRC-32")
assert CRC_32 is not None


def disk() -> SimulatedStorage:
    """An archive with a recording of two segments in each state."""
    storage = SimulatedStorage()
    catalog = Catalog(storage)
    for recording_id in (VALID, INVALID, DELETED, ACTIVE):
        assert catalog.add(descriptor()) == recording_id
        writer = SegmentWriter(storage, recording_id, descriptor().geometry, 0)
        writer.open()
        for position in range(0, STOP, TERM_LENGTH):
            block = frames(position, 64, 992)
            writer.write(block, len(block))
        writer.close()
        if recording_id != ACTIVE:
            catalog.stopped(recording_id, STOP, NOW_MS)
    catalog.set_state(INVALID, STATE_INVALID)
    catalog.set_state(DELETED, STATE_DELETED)
    catalog.close()
    return storage


def segments(storage: SimulatedStorage) -> set[str]:
    return {name for name in storage.files if name.endswith(".rec")}


def of(*recording_ids: int) -> set[str]:
    return {segment_name(one, base) for one in recording_ids for base in (0, SEGMENT)}


Change = Callable[[SimulatedStorage], object]


def compact(storage: SimulatedStorage) -> maintenance.Deletion:
    with maintenance.changed(storage, NOW_MS) as catalog:
        deletion = maintenance.compaction(catalog, storage)
        maintenance.delete(catalog, storage, deletion)
    return deletion


def delete_orphans(storage: SimulatedStorage) -> maintenance.Deletion:
    with maintenance.changed(storage, NOW_MS) as catalog:
        deletion = maintenance.orphaned_segments(catalog, storage)
        maintenance.delete(catalog, storage, deletion)
    return deletion


def write_checksums(storage: SimulatedStorage) -> None:
    with maintenance.changed(storage, NOW_MS, checksum=CRC_32) as catalog:
        for finding in maintenance.write_checksums(
            catalog, storage, CRC_32, recording_id=VALID, is_thorough=True
        ):
            assert finding.is_ok, finding


def killed_at_each_step(change: Change) -> list[SimulatedStorage]:
    """What is on the disk after a kill before each step of a change, and at last after all of it."""
    found = []
    for step in itertools.count():
        storage = disk()
        storage.kill_before(step)
        try:
            change(storage)
        except Killed:
            found.append(storage.copy())
        else:
            return [*found, storage.copy()]
    raise AssertionError("a change has an end")


def test_compacting_forgets_what_is_invalid_or_deleted_and_trims_the_catalog() -> None:
    storage = disk()
    before = Catalog(storage, read_only=True)
    entries = {entry.recording_id: entry for entry in before.entries()}
    length = storage.length(CATALOG_NAME)
    deletion = compact(storage)
    assert deletion.recording_ids == (INVALID, DELETED)
    assert set(deletion.files) == of(INVALID, DELETED)
    assert deletion.byte_count == 4 * SEGMENT
    assert segments(storage) == of(VALID, ACTIVE)
    after = Catalog(storage, read_only=True)
    assert [entry.recording_id for entry in after.entries()] == [VALID, ACTIVE]
    assert after.next_recording_id == ACTIVE + 1
    assert after.find(VALID) == entries[VALID].descriptor
    trimmed = storage.length(CATALOG_NAME)
    assert length is not None
    assert trimmed == 32 + sum(entries[one].length for one in (VALID, ACTIVE)) < length
    assert Catalog(storage).add(descriptor()) == ACTIVE + 1, "no id is given twice"
    assert compact(storage).recording_ids == ()


def test_a_compaction_that_is_killed_harms_no_valid_recording_and_the_next_one_finishes_it() -> None:
    ends = killed_at_each_step(compact)
    assert len(ends) > 6
    for storage in ends:
        storage.locked.clear()
        catalog = Catalog(storage, read_only=True)
        assert catalog.find(VALID) is not None
        assert of(VALID, ACTIVE) <= segments(storage)
        compact(storage)
        assert segments(storage) == of(VALID, ACTIVE)
        assert [entry.recording_id for entry in Catalog(storage, read_only=True).entries()] == [VALID, ACTIVE]


def test_segments_outside_their_recordings_are_orphans() -> None:
    storage = disk()
    catalog = Catalog(storage)
    catalog.update(VALID, start_position=SEGMENT)
    catalog.close()
    orphans = {
        segment_name(VALID, 0),
        segment_name(VALID, 2 * SEGMENT),
        f"{VALID}-+64.rec",
        f"{ACTIVE}-garbage.rec",
    }
    later = segment_name(ACTIVE, 2 * SEGMENT)
    others = {later, "9-0.rec", f"{VALID}-{STOP}.cut"}
    for name in (orphans | others) - set(storage.files):
        storage.create(name, SEGMENT).close()
    assert set(delete_orphans(storage).files) == orphans
    assert (of(VALID, INVALID, DELETED, ACTIVE) | others) - orphans <= set(storage.files)
    assert not orphans & set(storage.files)
    with maintenance.changed(storage, NOW_MS) as catalog, pytest.raises(CatalogError, match="unknown"):
        maintenance.orphaned_segments(catalog, storage, 77)


def test_checksums_are_found_right_afterwards_wherever_the_writing_was_killed() -> None:
    plain = disk()
    (finding,) = verify(Catalog(plain), plain, recording_id=VALID, checksum=CRC_32)
    assert not finding.is_ok
    ends = killed_at_each_step(write_checksums)
    assert len(ends) > 3
    for storage in ends:
        storage.locked.clear()
        (finding,) = verify(Catalog(storage, read_only=True), storage, recording_id=VALID, is_thorough=True)
        assert finding.is_ok, finding
        write_checksums(storage)
        catalog = Catalog(storage, read_only=True)
        (finding,) = verify(catalog, storage, recording_id=VALID, is_thorough=True, checksum=CRC_32)
        assert finding.is_ok, finding


def test_checksums_of_what_is_damaged_or_has_no_end_are_refused_by_name_and_the_others_are_written() -> None:
    storage = disk()
    storage.files[segment_name(INVALID, SEGMENT)][4096 * 5 : 4096 * 5 + 4] = b"\xff\xff\xff\xff"
    with maintenance.changed(storage, NOW_MS, checksum=CRC_32) as catalog:
        findings = list(maintenance.write_checksums(catalog, storage, CRC_32))
    assert [(finding.recording_id, finding.is_ok) for finding in findings] == [
        (VALID, True),
        (INVALID, False),
        (ACTIVE, False),
    ]
    assert "whole frames end at position=" in findings[1].text
    assert "has no stop position" in findings[2].text


def test_validity_is_changed_between_valid_and_invalid_alone() -> None:
    storage = disk()
    with maintenance.changed(storage, NOW_MS) as catalog:
        assert maintenance.set_validity(catalog, VALID, is_valid=False)
        assert not maintenance.set_validity(catalog, VALID, is_valid=False)
        assert maintenance.set_validity(catalog, INVALID, is_valid=True)
        with pytest.raises(CatalogError, match="recording_id=2 has state DELETED: only VALID and INVALID"):
            maintenance.set_validity(catalog, DELETED, is_valid=True)
        with pytest.raises(CatalogError, match="unknown recording_id=9"):
            maintenance.set_validity(catalog, 9, is_valid=True)
        catalog.update(VALID, term_buffer_length=3)
        with pytest.raises(ArchiveFileError, match="term_buffer_length"):
            maintenance.set_validity(catalog, VALID, is_valid=True)
    again = Catalog(storage, read_only=True)
    assert [entry.state_name for entry in again.entries()][:3] == ["INVALID", "VALID", "DELETED"]
