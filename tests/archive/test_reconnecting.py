"""Sessions and recorded publications of a client that outlives its driver: with the next one they go on."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive, ArchiveServer, Retention
from headrace.client import ConnectionState, ReconnectingClient
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 1001


class Site:
    """A directory in which one driver after another runs, each with an archive."""

    def __init__(self, root: Path) -> None:
        self.directory = headrace.default_directory() + "-archive-reconnecting"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.root = root
        self.start("first")
        self.client: ReconnectingClient = headrace.connect(
            self.directory, reconnect=True, driver_timeout_ms=2000
        )

    def start(self, name: str) -> None:
        self.driver = headrace.MediaDriver(directory=self.directory, threading_mode="SHARED")
        self.start_archive(name)

    def start_archive(self, name: str) -> None:
        self.server = ArchiveServer(
            driver=self.driver, archive_directory=self.root / name, control_channel_enabled=False
        )

    def restart(self, name: str) -> None:
        before = self.client.reconnect_count
        self.server.close()
        self.driver.close()
        await_true(lambda: self.client.state is ConnectionState.DISCONNECTED)
        self.start(name)
        await_true(lambda: self.client.reconnect_count > before)

    def close(self) -> None:
        self.client.close()
        self.server.close()
        self.driver.close()
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with contextlib.closing(Site(tmp_path)) as site:
        yield site


def publish(archive: Archive, publication: headrace.Publication, recording_id: int, *messages: bytes) -> None:
    """Send messages, and wait until they are recorded."""
    for message in messages:
        position = publication.offer_blocking(message, timeout_s=TIMEOUT_S)
    await_true(lambda: archive.recording_position(recording_id) == position)


def replayed(archive: Archive, recording_id: int) -> list[bytes]:
    length = archive.recording_position(recording_id)
    assert length is not None
    with archive.replay(recording_id, length=length - archive.start_position(recording_id)) as replay:
        return [message.payload for message in replay]


def test_a_recorded_publication_goes_on_with_its_recording_or_begins_another(site: Site) -> None:
    """With the archive that has the recording, or with one that does not."""
    archive = Archive.connect(site.client)
    publication = archive.add_recorded_publication(CHANNEL, STREAM_ID, retention=Retention(hours=1))
    publish(archive, publication, 0, b"one", b"two")
    site.restart("first")
    publish(archive, publication, 0, b"three")
    assert replayed(archive, 0) == [b"one", b"two", b"three"]
    site.restart("first")
    publish(archive, publication, 0, b"four")
    assert replayed(archive, 0) == [b"one", b"two", b"three", b"four"]
    site.restart("second")
    publish(archive, publication, 0, b"five")
    (recording,) = archive.list_recordings()
    assert replayed(archive, 0) == [b"five"]
    assert recording.retention == Retention(hours=1)
    publication.close()
    await_true(lambda: archive.stop_position(0) is not None)
    site.restart("first")
    (recording,) = archive.list_recordings()
    assert not recording.is_active


def test_a_session_is_opened_again_when_its_archive_alone_has_ended(site: Site) -> None:
    """A request in between raises; one of a closed session or client says that it is closed."""
    with Archive.connect(site.client, message_timeout_s=TIMEOUT_S) as archive:
        assert archive.list_recordings() == []
        first = archive.current
        site.server.close()
        await_true(lambda: not archive.is_connected)
        site.start_archive("first")
        assert archive.list_recordings() == []
        assert archive.current is not first
        assert archive.is_connected
    with pytest.raises(headrace.ClosedError, match="the session with the archive is closed"):
        archive.list_recordings()
    another = Archive.connect(site.client)
    site.client.close()
    with pytest.raises(headrace.ClosedError, match="client is closed"):
        another.list_recordings()
    assert another.is_closed


def test_without_an_archive_a_session_says_so_and_the_client_goes_on(site: Site) -> None:
    archive = Archive.connect(site.client, message_timeout_s=0.2)
    site.server.close()
    await_true(lambda: not archive.is_connected)
    with pytest.raises(headrace.ArchiveTimeoutError, match="no archive takes requests"):
        archive.list_recordings()
    assert site.client.state is ConnectionState.CONNECTED
