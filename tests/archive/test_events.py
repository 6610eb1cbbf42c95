"""The event log of an archive."""

from __future__ import annotations

from pathlib import Path

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
        assert states(tmp_path, "replay") == ["Init", "Connecting", "Replaying", "Done"]
        assert states(tmp_path, "control-session") == ["Init", "Connecting", "Connected", "Active", "Done"]
        assert states(tmp_path, "archive") == ["Running", "Closed"]
        (last,) = [event for event in read_events(tmp_path) if event.new == "Stopped"]
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
