"""The event log of an archive."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

import headrace
from headrace.archive import ArchiveServer
from headrace.event_log import EVENT_FILE, EventFilter, read_events
from tests.helpers import TIMEOUT_S, await_true

CHANNEL = "aeron:ipc?term-length=64k"


def states(directory: Path, kind: str) -> list[str]:
    return [event.new for event in read_events(directory, EventFilter(kinds=(kind,)))]


def test_recordings_replays_and_clients_tell_how_they_came_to_their_end(tmp_path: Path) -> None:
    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
        with (
            ArchiveServer(driver=driver, archive_directory=tmp_path, control_channel_enabled=False) as server,
            headrace.Archive.connect(client) as archive,
        ):
            archive.start_recording(CHANNEL, 1010)
            publication = client.add_publication(CHANNEL, 1010)
            await_true(lambda: "Recording" in states(tmp_path, "recording"))
            position = publication.offer_blocking(b"hello", timeout_s=TIMEOUT_S)
            publication.close()
            await_true(lambda: states(tmp_path, "recording")[-1:] == ["Stopped"])
            with archive.replay(0, length=position) as replay:
                assert [bytes(message.payload) for message in replay] == [b"hello"]
            await_true(lambda: states(tmp_path, "replay")[-1:] == ["Done"])
            assert server.error_count == 0
        assert states(tmp_path, "recording") == ["Init", "Recording", "Inactive", "Stopped"]
        assert states(tmp_path, "replay") == ["Init", "Connecting", "Replaying", "Sent", "Done"]
        assert states(tmp_path, "control-session") == [
            "Init",
            "Connecting",
            "Connected",
            "Authenticated",
            "Active",
            "Closed",
        ]
        assert states(tmp_path, "recording-subscription") == [
            "Adding",
            "Waiting",
            "Recording",
        ]
        assert states(tmp_path, "archive") == ["Running", "Closed"]
        (last,) = read_events(tmp_path, EventFilter(kinds=("recording",)))[-1:]
        assert (last.id, last.stream_id, last.session_id) == (0, 1010, publication.session_id)
        assert last.detail == CHANNEL


def test_an_archive_may_have_no_event_log(tmp_path: Path) -> None:
    with (
        headrace.MediaDriver.embedded(event_limit=0) as driver,
        ArchiveServer(
            driver=driver, archive_directory=tmp_path, control_channel_enabled=False, event_limit=0
        ),
    ):
        assert not (tmp_path / EVENT_FILE).exists()
        assert not (Path(driver.directory) / EVENT_FILE).exists()


def changes(directory: Path, recording_id: int = 0) -> list[tuple[str, str, bool]]:
    events = read_events(directory, EventFilter(kinds=("stored-recording",), ids=(recording_id,)))
    return [(event.old, event.new, event.is_fault) for event in events]


def test_a_stored_recording_tells_of_its_whole_life(tmp_path: Path) -> None:
    """Begun, stopped, extended, truncated, purged; and what a killed archive left stops when the next one starts."""
    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:

        def serve() -> ArchiveServer:
            return ArchiveServer(driver=driver, archive_directory=tmp_path, control_channel_enabled=False)

        with serve(), headrace.Archive.connect(client) as archive:
            archive.start_recording(CHANNEL, 1010, auto_stop=True)
            with client.add_exclusive_publication(CHANNEL, 1010) as publication:
                await_true(lambda: "Recording" in states(tmp_path, "recording"))
                position = publication.offer_blocking(b"hello", timeout_s=TIMEOUT_S)
                publication.offer_blocking(b"world", timeout_s=TIMEOUT_S)
            await_true(lambda: changes(tmp_path)[-1:] == [("Active", "Stopped", False)])
            archive.truncate_recording(0, position)
            await_true(lambda: changes(tmp_path)[-1:] == [("Truncating", "Stopped", False)])
            archive.purge_recording(0)
            await_true(lambda: changes(tmp_path)[-1:] == [("Purging", "Deleted", False)])
            assert [new for _, new, _ in changes(tmp_path)] == [
                "Active",
                "Stopped",
                "Truncating",
                "Stopped",
                "Purging",
                "Deleted",
            ]
            await_true(lambda: states(tmp_path, "recording-subscription")[-1:] == ["Closed"])
            archive.start_recording(CHANNEL, 1011)
            with client.add_publication(CHANNEL, 1011):
                await_true(lambda: changes(tmp_path, 1)[-1:] == [("", "Active", False)])
                killed = archive_copy(tmp_path)
        shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
        with serve():
            assert changes(tmp_path, 1) == [("Active", "Stopped", False)]


def archive_copy(directory: Path) -> Path:
    """What a kill at this moment would leave, without what the processes of the archive hold."""
    copy = directory.with_name("killed")
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns(EVENT_FILE, "archive-mark.dat"))
    return copy


def test_a_recording_whose_image_is_lost_is_a_fault_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "headrace.archive")
    with (
        headrace.MediaDriver.embedded() as driver,
        driver.connect() as client,
        ArchiveServer(driver=driver, archive_directory=tmp_path, control_channel_enabled=False),
        headrace.Archive.connect(client) as archive,
    ):
        archive.start_recording(CHANNEL, 1012)
        publication = client.add_publication(CHANNEL, 1012)
        reader = client.add_subscription(CHANNEL, 1012)
        await_true(lambda: "Recording" in states(tmp_path, "recording") and reader.is_connected)
        await_true(lambda: publication.is_connected)
        # One reader's rejection turns all of them away.
        reader.images[0].reject("no more")
        await_true(lambda: changes(tmp_path)[-1:] == [("Active", "Stopped", False)])
    (lost,) = [event for event in read_events(tmp_path) if event.is_fault]
    assert (lost.kind, lost.old, lost.new) == ("recording", "Recording", "Inactive")
    assert lost.reason == "the image was lost before the end of its stream"
    assert any("its image was lost" in record.getMessage() for record in caplog.records)
