"""Archives in processes of their own, killed at random moments of random operations, over and over.

Each life records, extends, truncates or purges, and is killed while it does. The next must start by itself, and every
recording must be what was acknowledged of it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive, ArchiveError, Catalog, DirectoryStorage, RecordingSignal
from headrace.archive.client.extension import extension_channel
from headrace.archive.files.verify import verify
from headrace.channel import ChannelUri
from tests.helpers import TIMEOUT_S, rounds

pytestmark = [pytest.mark.faults, pytest.mark.slow]

KILLS = 5
KIB = 1024
POSITION_COUNTER = 100

ARCHIVE = """
import sys, threading, headrace
from headrace._agent import storage

if sys.argv[4] == "without holes":
    storage._File.has_hole = lambda self, offset, length: False
    storage._File.next_data = lambda self, offset: offset if offset < self.length() else None
headrace.ArchiveServer(
    aeron_directory=sys.argv[1], archive_directory=sys.argv[2], control_channel_enabled=False,
    segment_file_length=int(sys.argv[3]), mark_file_liveness_timeout_ms=0, low_storage_space_threshold=0,
)
print("READY", flush=True)
threading.Event().wait()
"""


@dataclass(slots=True)
class Model:
    """What a recording may have: messages by where they end, and where it may stop."""

    stream_id: int
    channel: str
    acknowledged: int = 0
    truncated_at: int | None = None
    may_be_purged: bool = False
    messages: list[tuple[int, bytes]] = field(default_factory=list)

    def stopped(self, position: int) -> None:
        """The next life has found its end."""
        if self.truncated_at is None:
            assert position >= self.acknowledged
        else:
            assert position in (self.truncated_at, self.acknowledged)
        self.truncated_at, self.acknowledged = None, position
        self.messages = [one for one in self.messages if one[0] <= position]


class Lives:
    """One archive's directory, and all that was done to it."""

    def __init__(
        self, driver: headrace.MediaDriver, directory: Path, choose: random.Random, file_system: str
    ) -> None:
        self._driver = driver
        self._directory = directory
        self._choose = choose
        self._file_system = file_system
        self._client = driver.connect()
        self.models: dict[int, Model] = {}

    @contextlib.contextmanager
    def life(self) -> Iterator[Archive]:
        """An archive that starts, knows everything, and is killed at the end."""
        segment_length = self._choose.choice((64, 128, 256)) * KIB
        arguments = [self._driver.directory, str(self._directory), str(segment_length), self._file_system]
        process = subprocess.Popen(
            [sys.executable, "-c", ARCHIVE, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "READY\n", "it must start without a person"
            archive = Archive.connect(self._client, message_timeout_s=TIMEOUT_S)
            self._compare(archive)
            self._process = process
            yield archive
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        archive._publication.close()
        archive._subscription.close()

    def _compare(self, archive: Archive) -> None:
        found = {one.recording_id: one.stop_position for one in archive.list_recordings()}
        for recording_id, model in list(self.models.items()):
            if recording_id not in found:
                assert model.may_be_purged
                del self.models[recording_id]
                continue
            model.may_be_purged = False
            model.stopped(found[recording_id])
        assert found.keys() == self.models.keys()
        for recording_id in self._choose.sample(sorted(found), min(3, len(found))):
            model = self.models[recording_id]
            if found[recording_id] > 0:
                with archive.replay(recording_id, stream_id=5000 + recording_id) as replay:
                    assert [one.payload for one in replay] == [data for _, data in model.messages]

    def kill_soon(self) -> threading.Thread:
        """Kill the archive in some milliseconds, whatever it does then."""
        delay_s = self._choose.uniform(0, 0.02)

        def kill() -> None:
            time.sleep(delay_s)
            self._process.send_signal(signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        return thread

    def record(self, archive: Archive) -> None:
        """A new recording of a random shape."""
        choose, number = self._choose, 1001 + len(self.models) + choose_id(self._choose)
        term, mtu = choose.choice((64, 128)) * KIB, choose.choice((1408, 4096, 6016, 8192))
        channel = f"aeron:ipc?term-length={term}|mtu={mtu}"
        publication = archive.add_recorded_publication(channel, number)
        recording_id = archive.await_signal(RecordingSignal.START).recording_id
        model = self.models[recording_id] = Model(number, channel)
        self._publish(publication, recording_id, model, mtu)

    def extend(self, archive: Archive, recording_id: int) -> None:
        """Go on with one."""
        model, found = self.models[recording_id], archive.find_recording(recording_id)
        assert found is not None
        # A session of its own: the publication before may still linger on the stream.
        session_id = choose_id(self._choose)
        channel = ChannelUri(extension_channel(model.channel, found)).with_parameters(session_id=session_id)
        archive.extend_recording(recording_id, channel, model.stream_id)
        publication = self._client.add_exclusive_publication(channel, model.stream_id)
        assert archive.await_signal(RecordingSignal.EXTEND).recording_id == recording_id
        self._publish(publication, recording_id, model, found.mtu_length)

    def _publish(
        self,
        publication: headrace.Publication | headrace.ExclusivePublication,
        recording_id: int,
        model: Model,
        mtu: int,
    ) -> None:
        """Messages of one frame each until the archive is killed."""
        choose, counters = self._choose, self._client.counters
        key = recording_id.to_bytes(8, "little") + publication.session_id.to_bytes(4, "little", signed=True)
        (counter_id,) = (
            one.counter_id for one in counters if one.type_id == POSITION_COUNTER and one.key[:12] == key
        )
        lengths = [choose.randint(0, mtu - 32) for _ in range(4)] + [mtu - 32]
        end = time.monotonic() + choose.uniform(0.001, 0.06)
        while time.monotonic() < end:
            length = choose.choice(lengths)
            data = bytes(length) if choose.random() < 0.3 else choose.randbytes(length)
            position = publication.offer(data)
            if position:
                model.messages.append((publication.position, data))
        model.acknowledged = counters.value(counter_id)
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        publication.close()

    def truncate(self, archive: Archive, recording_id: int) -> None:
        """Cut one after a message, and be killed meanwhile."""
        model = self.models[recording_id]
        model.truncated_at = self._choose.choice([0, *(end for end, _ in model.messages)])
        killer = self.kill_soon()
        with contextlib.suppress(ArchiveError):
            archive._timeout_s = 0.2
            archive.truncate_recording(recording_id, model.truncated_at)
        killer.join()

    def purge(self, archive: Archive, recording_id: int) -> None:
        """Delete one, and be killed meanwhile."""
        self.models[recording_id].may_be_purged = True
        killer = self.kill_soon()
        with contextlib.suppress(ArchiveError):
            archive._timeout_s = 0.2
            archive.purge_recording(recording_id)
        killer.join()

    def step(self, archive: Archive) -> None:
        """Something that an archive does."""
        choose = self._choose
        known = sorted(self.models)
        kind = (
            choose.choices(("record", "extend", "truncate", "purge"), (4, 4, 3, 1))[0] if known else "record"
        )
        if kind == "record":
            self.record(archive)
        else:
            getattr(self, kind)(archive, choose.choice(known))

    def close(self) -> None:
        """Give the client back."""
        self._client.close()


def choose_id(choose: random.Random) -> int:
    """Streams of gone archives may still be connected, so each recording has one of its own."""
    return choose.randint(1, 1 << 30)


@contextlib.contextmanager
def place(file_system: str, tmp_path: Path) -> Iterator[Path]:
    """A directory on it."""
    if file_system == "tmpfs":
        with tempfile.TemporaryDirectory(prefix="headrace-kills-", dir="/dev/shm") as parent:
            yield Path(parent) / "archive"
    else:
        yield tmp_path / "archive"


@pytest.mark.parametrize("file_system", ["disk", "tmpfs", "without holes"])
def test_an_archive_that_is_killed_starts_again_without_a_person(file_system: str, tmp_path: Path) -> None:
    """Whatever it did, and whatever the file system can tell."""
    seed = int(os.environ.get("HEADRACE_SEED", "20265"))
    print(f"seed={seed}; again with HEADRACE_SEED={seed}")
    choose = random.Random(f"{seed} {file_system}")
    with (
        place(file_system, tmp_path) as directory,
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
    ):
        lives = Lives(driver, directory, choose, file_system)
        for _ in range(rounds(KILLS)):
            with lives.life() as archive:
                lives.step(archive)
        with lives.life():
            pass
        lives.close()
        storage = DirectoryStorage(directory)
        checked = list(verify(Catalog(storage, read_only=True), storage, is_thorough=True))
        assert [one.text for one in checked if not one.is_ok] == []
        assert [name for name in storage.names() if name.endswith(".begun")] == []
