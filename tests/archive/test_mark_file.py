"""The mark file of an archive, in memory and byte for byte: who may use its directory."""

import struct
from pathlib import Path

import pytest

from headrace._agent.storage import DirectoryStorage
from headrace.archive.errors import CatalogError, MarkFileError
from headrace.archive.files.catalog import CATALOG_NAME, Catalog
from headrace.archive.files.mark_file import (
    LAYOUT,
    MARK_NAME,
    ArchiveMarkFile,
    MarkFields,
    no_archive_running,
    read_mark_fields,
)
from headrace.testing import ManualClock, SimulatedStorage

FIELDS = MarkFields(
    version=0,
    activity_timestamp=5,
    start_timestamp=5,
    pid=4711,
    control_stream_id=10,
    local_control_stream_id=11,
    events_stream_id=30,
    header_length=8192,
    error_buffer_length=1 << 20,
    archive_id=-3,
    control_channel="aeron:udp?endpoint=localhost:8010",
    local_control_channel="aeron:ipc",
    events_channel="",
    aeron_directory="/dev/shm/aeron-me",
)


def begin(mark: ArchiveMarkFile, now_ms: int) -> None:
    """Say that the archive runs."""
    mark.write_fields(FIELDS)
    mark.ready(now_ms)


def foreign_mark(storage: SimulatedStorage, activity_ms: int) -> None:
    """The mark file of an archive of another implementation, which holds no lock and says nothing of one."""
    storage.create(MARK_NAME, 8192 + (1 << 20)).write(0, LAYOUT.encode(FIELDS))
    put_mark(storage, 8, struct.pack("<i4xq", 196864, activity_ms))
    put_mark(storage, 120, bytes(16))


def test_a_lock_that_is_free_is_of_a_dead_archive_whatever_its_clock_said() -> None:
    """A killed archive locks no one out, and a clock that was set back needs no person."""
    storage, clock = SimulatedStorage(), ManualClock()
    mark = ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms())
    begin(mark, clock.epoch_ms())
    assert bytes(storage.files[MARK_NAME][:8]) == struct.pack("<HHHH", 128, 200, 100, 2)
    assert struct.unpack_from("<qq", storage.files[MARK_NAME], 120) == (4711, 5)
    fields = read_mark_fields(storage)
    assert (fields.version, fields.pid, fields.archive_id) == (196864, 4711, -3)
    assert (fields.events_stream_id, fields.events_channel) == (
        FIELDS.events_stream_id,
        FIELDS.events_channel,
    )
    assert fields.aeron_directory == "/dev/shm/aeron-me"
    with pytest.raises(MarkFileError, match="is locked"):
        ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms() + 3_600_000)
    for now_ms in (clock.epoch_ms(), clock.epoch_ms() - 3_600_000, clock.epoch_ms() + 3_600_000):
        storage.crash(keeps_writes=True)
        with no_archive_running(storage, now_ms):
            pass
        mark = ArchiveMarkFile(storage, 1 << 20, now_ms)
        begin(mark, now_ms)
    mark.close()
    assert read_mark_fields(storage).activity_timestamp == -1


def test_the_time_tells_of_an_archive_that_holds_no_lock() -> None:
    """Ten seconds after its last sign of life; at once after a stop in order; and what is to come is told as that."""
    storage, clock = SimulatedStorage(), ManualClock()
    foreign_mark(storage, clock.epoch_ms())
    with pytest.raises(MarkFileError, match=r"active 9999 ms ago, pid=4711"):
        ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms() + 9_999)
    with pytest.raises(MarkFileError, match="active 0 ms ago"):
        ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms() - 10_000)
    with pytest.raises(MarkFileError, match=r"active 10001 ms in the future.*then delete the file"):
        ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms() - 10_001)
    ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms() + 10_000).close()
    foreign_mark_again = SimulatedStorage()
    foreign_mark(foreign_mark_again, -1)
    ArchiveMarkFile(foreign_mark_again, 1 << 20, clock.epoch_ms()).close()


@pytest.mark.parametrize(("offset", "value"), [(24, 6), (32, 4712), (16, (1 << 63) - 1)])
def test_a_foreign_archive_on_a_directory_that_was_ours_is_not_taken_for_dead(
    offset: int, value: int
) -> None:
    """It writes its start timestamp and process id, and before them the end of time, and holds no lock."""
    storage, clock = SimulatedStorage(), ManualClock()
    begin(ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms()), clock.epoch_ms())
    storage.crash(keeps_writes=True)
    put_mark(storage, offset, struct.pack("<q", value))
    storage.modified[MARK_NAME] = clock.epoch_ms()
    with pytest.raises(MarkFileError, match="active 0 ms ago"):
        ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms())


def test_a_kill_while_an_archive_starts_does_not_lock_its_directory() -> None:
    """Ours has the time there; the reference has the end of time, which counts by when it was written."""
    storage, clock = SimulatedStorage(), ManualClock()
    foreign_mark(storage, clock.epoch_ms())
    clock.advance(10)
    ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms())
    assert read_mark_fields(storage).activity_timestamp == clock.epoch_ms()
    storage.crash(keeps_writes=True)  # while it started
    clock.advance(10)
    ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms()).forget()
    storage.crash(keeps_writes=True)
    storage.modified[MARK_NAME] = clock.epoch_ms()
    put_mark(storage, 16, struct.pack("<q", (1 << 63) - 1))
    with (
        pytest.raises(MarkFileError, match="active 9999 ms ago"),
        no_archive_running(storage, clock.epoch_ms() + 9_999),
    ):
        pytest.fail("an archive may be starting")
    with pytest.raises(MarkFileError, match="active 0 ms ago"):
        ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms())
    clock.advance(10)
    ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms()).close()


def test_a_file_of_another_version_is_told_with_both_versions_and_what_to_do() -> None:
    """Of the mark file and of the catalog."""
    storage = SimulatedStorage()
    foreign_mark(storage, -1)
    put_mark(storage, 8, struct.pack("<i", 4 << 16 | 2 << 8 | 1))
    with pytest.raises(
        MarkFileError, match=r"has version 4\.2\.1, and this archive reads 3\.x: use an archive of"
    ):
        ArchiveMarkFile(storage, 1 << 20, 0)
    Catalog(storage).close()
    storage.files[CATALOG_NAME][:4] = struct.pack("<i", 2 << 16)
    with pytest.raises(CatalogError, match=r"has version 2\.0\.0, .* 3\.x: `headrace archive migrate`"):
        Catalog(storage)


def test_a_header_of_the_mark_file_that_was_written_in_part_locks_nothing() -> None:
    """Its texts may lie in two pages."""
    storage, clock = SimulatedStorage(), ManualClock()
    begin(ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms()), clock.epoch_ms())
    storage.crash(keeps_writes=True)
    put_mark(storage, 136, struct.pack("<I", 1 << 20))
    clock.advance(10)
    ArchiveMarkFile(storage, 1 << 20, clock.epoch_ms()).close()


def put_mark(storage: SimulatedStorage, offset: int, data: bytes) -> None:
    """Write into the mark file."""
    storage.files[MARK_NAME][offset : offset + len(data)] = data


@pytest.mark.parametrize("length", [-5, -(1 << 31), (1 << 31) - 1])
def test_a_damaged_length_of_the_error_buffer_keeps_no_archive_away(tmp_path: Path, length: int) -> None:
    """The errors that are there are saved, if the length allows."""
    storage = DirectoryStorage(tmp_path)
    mark = ArchiveMarkFile(storage, 1 << 20, 5)
    begin(mark, 5)
    mark.write_errors(0, b"error")
    mark.forget()
    with (tmp_path / MARK_NAME).open("r+b") as file:
        file.seek(56)
        file.write(struct.pack("<i", length))
    again = ArchiveMarkFile(storage, 1 << 20, 6)
    assert again.old_errors.rstrip(b"\0") == (b"error" if length > 0 else b"")
    again.close()


@pytest.mark.parametrize("places", [("", "marks"), ("marks", ""), ("marks", "other")])
def test_what_runs_is_seen_from_wherever_a_second_one_has_its_file(
    tmp_path: Path, places: tuple[str, str]
) -> None:
    files, now_ms = DirectoryStorage(tmp_path / "files"), 1_700_000_000_000
    elsewhere = [tmp_path / one if one else None for one in places]
    # Where files of a start before are, they are free, and say nothing of what runs now.
    for place in (*elsewhere, elsewhere[0]):
        ArchiveMarkFile(files, 1 << 20, now_ms, elsewhere=place).close()
    first = ArchiveMarkFile(files, 1 << 20, now_ms, elsewhere=elsewhere[0])
    before = files.names()
    with pytest.raises(MarkFileError, match="another archive is running on the directory"):
        ArchiveMarkFile(files, 1 << 20, now_ms, elsewhere=elsewhere[1])
    assert files.names() == before
    begin(first, now_ms)
    assert read_mark_fields(files).pid == FIELDS.pid
    first.close()
    ArchiveMarkFile(files, 1 << 20, now_ms, elsewhere=elsewhere[1]).close()


@pytest.mark.parametrize("link", [b"", b"/some\0where"])
def test_a_link_that_leads_nowhere_is_told(tmp_path: Path, link: bytes) -> None:
    """An empty path would be the directory that the program happens to be in."""
    (tmp_path / "archive-mark.lnk").write_bytes(link)
    with pytest.raises(MarkFileError, match=r"archive-mark.lnk: .* is not the path of a directory"):
        read_mark_fields(DirectoryStorage(tmp_path))
