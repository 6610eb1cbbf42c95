"""An archive's directory, read by another program: while the archive runs, after it stopped, and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
from headrace.archive import CatalogError, MarkFileError, RecordingSignal
from headrace.archive.files import ArchiveDirectory, repair
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

CHANNEL = "aeron:ipc?term-length=64k"
SEGMENT = 64 * 1024
MESSAGES = [b"%6d" % number * 100 for number in range(300)]


def record(archiving: headrace.ArchivingMediaDriver) -> int:
    """The id of a recording of all messages, which has stopped."""
    with archiving.connect_archive() as archive:
        with archive.add_recorded_publication(CHANNEL, 1001) as publication:
            for message in MESSAGES:
                publication.offer_blocking(message, timeout_s=TIMEOUT_S)
        return archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S).recording_id


def test_recordings_are_read_while_the_archive_runs_and_after_it(tmp_path: Path) -> None:
    """Entries, segments, frames, the mark file; nothing is changed."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path, segment_file_length=SEGMENT, archive_id=7
    ) as archiving:
        recording_id = record(archiving)
        with ArchiveDirectory(tmp_path) as archive:
            assert archive.mark().archive_id == 7
            assert list(archive.verify()) != []
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with ArchiveDirectory(tmp_path) as archive:
        (entry,) = archive.entries()
        (recording,) = archive.recordings()
        assert entry.descriptor == recording == archive.find(recording_id)
        assert archive.find(99) is None
        end = archive.end(recording_id)
        assert end == recording.stop_position > 2 * SEGMENT
        segments = archive.segments(recording_id)
        assert [one.base for one in segments] == list(range(0, end, SEGMENT))
        assert all(one.path.stat().st_size == one.length == SEGMENT for one in segments)
        frames = list(archive.frames(recording_id))
        assert [one.payload for one in frames if not one.header.is_padding] == MESSAGES
        assert frames[0].position == 0
        assert frames[-1].position + frames[-1].header.span == end
        assert [one.position for one in archive.frames(recording_id, start=frames[9].position)][:1] == [
            frames[9].position
        ]
        assert [one.is_ok for one in archive.verify(is_thorough=True)] == [True]
        for call in (archive.end, archive.segments, lambda one: next(archive.frames(one))):
            with pytest.raises(CatalogError, match="unknown recording_id=99"):
                call(99)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_end_of_a_recording_is_known_while_it_is_active(tmp_path: Path) -> None:
    """By the archive's counter while it runs, and by the files when it is gone."""
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path) as archiving,
        archiving.connect_archive() as archive,
        archive.add_recorded_publication(CHANNEL, 1001) as publication,
    ):
        position = publication.offer_blocking(b"hello")
        await_true(lambda: archive.recording_position(0) == position)
        with ArchiveDirectory(tmp_path) as directory:
            (recording,) = directory.recordings()
            assert recording.is_active
            assert directory.live_ends([0]) == {0: position}
            assert directory.end(0) == position
            with pytest.raises(MarkFileError, match="another archive is running"):
                list(repair(tmp_path))


def test_a_damaged_recording_is_found_and_repaired(tmp_path: Path) -> None:
    """Verifying changes nothing; repairing keeps what it cuts off."""
    with headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path) as archiving:
        recording_id = record(archiving)
    with ArchiveDirectory(tmp_path) as archive:
        frames = list(archive.frames(recording_id))
        segment = archive.segments(recording_id)[-1]
        damaged = frames[-5].position
    with segment.path.open("r+b") as file:
        file.seek(damaged - segment.base)
        file.write(bytes(4))
    with ArchiveDirectory(tmp_path) as archive:
        assert [one.is_ok for one in archive.verify()] == [False]
    assert [one.is_ok for one in repair(tmp_path)] == [True]
    with ArchiveDirectory(tmp_path) as archive:
        assert archive.end(recording_id) == damaged
        assert [one.is_ok for one in archive.verify(is_thorough=True)] == [True]
    assert list(tmp_path.glob("*.cut"))


def test_a_directory_without_an_archive_is_refused(tmp_path: Path) -> None:
    """By name, and with what to do."""
    for read in (lambda: ArchiveDirectory(tmp_path), lambda: next(repair(tmp_path))):
        with pytest.raises(
            CatalogError, match=r"no catalog: .*archive\.catalog; name the archive's directory"
        ):
            read()
