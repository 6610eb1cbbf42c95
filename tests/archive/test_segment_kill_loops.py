"""Archives in processes of their own, killed at random moments of requests for segments, and of replications.

All recordings of a directory are parts of one stream, so what a recording has is what the stream has at its positions.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import headrace
from headrace.archive import (
    Archive,
    ArchiveError,
    Catalog,
    DirectoryStorage,
    RecordingSignal,
    Retention,
    extension_channel,
)
from headrace.archive.files.verify import verify
from tests.archive.test_segments import (
    CHANNEL,
    FRAME,
    PER_SEGMENT,
    SEGMENT,
    bases,
    messages,
    record,
    replayed,
)
from tests.helpers import TIMEOUT_S, await_true, rounds

pytestmark = [pytest.mark.faults, pytest.mark.slow]

KILLS = 6
SEGMENTS_MAX = 12
STREAM_ID = 7
COPY_KILLS = 4
SOURCE_STREAM_ID = 11
STANDBY_STREAM_ID = 10
COPIED = 100 * PER_SEGMENT

ARCHIVE = """
import sys, threading, headrace
from headrace.archive.server import retention as expiry

expiry.PASS_INTERVAL_NS = 0
headrace.ArchiveServer(
    aeron_directory=sys.argv[1], archive_directory=sys.argv[2], local_control_stream_id=int(sys.argv[3]),
    control_channel_enabled=False, segment_file_length=65536, mark_file_liveness_timeout_ms=0,
    low_storage_space_threshold=0,
)
print("READY", flush=True)
threading.Event().wait()
"""


class Process:
    """An archive in a process, which is killed."""

    def __init__(self, driver: headrace.MediaDriver, directory: Path, stream_id: int) -> None:
        arguments = [driver.directory, str(directory), str(stream_id)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", ARCHIVE, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        try:
            assert self._process.stdout.readline() == "READY\n", "it must start without a person"
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """With SIGKILL; what it has done is done."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def kill_soon(self, delay_s: float) -> threading.Thread:
        """Kill it in a moment, whatever it does then."""

        def kill() -> None:
            time.sleep(delay_s)
            self._process.send_signal(signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        return thread


@contextlib.contextmanager
def session(client: headrace.Client, stream_id: int) -> Iterator[Archive]:
    """A session with an archive that is killed before the session ends."""
    archive = Archive.connect(client, control_stream_id=stream_id, message_timeout_s=TIMEOUT_S)
    try:
        yield archive
    finally:
        archive._publication.close()
        archive._subscription.close()


@dataclass(frozen=True)
class Shape:
    """Where a recording begins and ends."""

    start: int
    stop: int


Shapes = dict[int, Shape]


class Library:
    """One archive's directory, and what its recordings may be."""

    def __init__(self, driver: headrace.MediaDriver, directory: Path, choose: random.Random) -> None:
        self._driver, self._directory, self._choose = driver, directory, choose
        self._client = driver.connect()
        self.outcomes: list[Shapes] = [{}]
        """All that the recordings may be after the last request."""

    def live(self, step: Callable[[Library, Archive, Process], None]) -> None:
        """A life of the archive: it must be as it was left, then something is asked for, and it is killed."""
        process = Process(self._driver, self._directory, STANDBY_STREAM_ID)
        try:
            with session(self._client, STANDBY_STREAM_ID) as archive:
                self._compare(archive)
                step(self, archive, process)
        finally:
            process.kill()

    def _compare(self, archive: Archive) -> None:
        for one in archive.list_recordings():
            if one.retention is not None:
                # It is applied in the first turns.
                least = one.stop_position - (one.retention.bytes or 0)
                await_true(lambda: archive.start_position(one.recording_id) >= least)  # noqa: B023
        await_true(lambda: not list(self._directory.glob("*.begun")))
        found = {
            one.recording_id: Shape(one.start_position, one.stop_position)
            for one in archive.list_recordings()
        }
        assert found in self.outcomes
        self.outcomes = [found]
        for recording_id in self._choose.sample(sorted(found), min(3, len(found))):
            shape = found[recording_id]
            if shape.start < shape.stop:
                part = messages(shape.start // FRAME, (shape.stop - shape.start) // FRAME)
                assert replayed(archive, recording_id) == part

    # --- what is asked for, and what may come of it ----------------------------------------------------------------

    @property
    def shapes(self) -> Shapes:
        """What the recordings are now."""
        (shapes,) = self.outcomes
        return shapes

    def request(self, process: Process, after: list[Shapes], call: Callable[[], object]) -> None:
        """Ask, and be killed meanwhile."""
        self.outcomes = [self.shapes, *after]
        killer = process.kill_soon(self._choose.uniform(0, 0.01))
        with contextlib.suppress(ArchiveError, headrace.ClosedError):
            call()
        killer.join()

    def with_shape(self, recording_id: int, start: int, stop: int) -> Shapes:
        """What they are when one has changed."""
        return self.shapes | {recording_id: Shape(start, stop)}

    def step(self, archive: Archive, process: Process) -> None:
        """A request for a random recording."""
        archive._timeout_s = 0.5
        choose = self._choose
        recording_id = choose.choice(sorted(self.shapes))
        shape = self.shapes[recording_id]
        later = range(shape.start + SEGMENT, shape.stop + 1, SEGMENT)
        before = [base for base in bases(self._directory, recording_id) if base < shape.start]
        kinds = ["delete", "attach", "migrate"] + ["detach", "purge", "retain"] * (len(later) > 1)
        kind = choose.choice(kinds)
        if kind in ("detach", "purge"):
            start = choose.choice(later[:-1])
            ask = archive.detach_segments if kind == "detach" else archive.purge_segments
            after = [self.with_shape(recording_id, start, shape.stop)]
            self.request(process, after, lambda: ask(recording_id, start))
        elif kind == "retain":
            start = choose.choice(later[:-1])
            kept = Retention(bytes=shape.stop - start)
            after = [self.with_shape(recording_id, start, shape.stop)]
            self.request(process, after, lambda: archive.set_retention(recording_id, kept))
        elif kind == "delete":
            self.request(process, [], lambda: archive.delete_detached_segments(recording_id))
        elif kind == "attach":
            self.attach(archive, process, recording_id, before)
        else:
            self.migrate(archive, process, recording_id)

    def attach(self, archive: Archive, process: Process, recording_id: int, before: list[int]) -> None:
        """Take back as many files as there are one after the other."""
        shape = self.shapes[recording_id]
        # A retention would take them away again.
        archive.set_retention(recording_id, None)
        after, start = [], shape.start
        while start - SEGMENT in before:
            start -= SEGMENT
            after.append(self.with_shape(recording_id, start, shape.stop))
        self.request(process, after, lambda: archive.attach_segments(recording_id))

    def migrate(self, archive: Archive, process: Process, recording_id: int) -> None:
        """Record what follows a recording as another one, and make it a part of the first, or the other way round."""
        shape = self.shapes[recording_id]
        found = archive.find_recording(recording_id)
        assert found is not None
        archive._timeout_s = TIMEOUT_S
        archive.set_retention(recording_id, None)
        count = self._choose.randint(1, 3) * PER_SEGMENT
        other = record(archive, count, shape.stop // FRAME, extension_channel(CHANNEL, found))
        joined = Shape(shape.stop, shape.stop + count * FRAME)
        self.outcomes = [self.shapes | {other: joined}]
        source, destination = self._choose.choice(((recording_id, other), (other, recording_id)))
        if destination == recording_id:
            # Its empty last file, where the other's first is to be.
            archive.truncate_recording(recording_id, shape.stop)
            archive.await_signal(RecordingSignal.DELETE)
        gone = self.shapes[source]
        whole = Shape(shape.start, joined.stop)
        after = self.shapes | {source: Shape(gone.start, gone.start), destination: whole}
        archive._timeout_s = 0.5
        self.request(process, [after], lambda: archive.migrate_segments(source, destination))

    def begin(self, archive: Archive, process: Process) -> None:
        """The first recording; and others, as long as the last is long enough to lose something."""
        recording_id = record(archive, SEGMENTS_MAX * PER_SEGMENT)
        self.outcomes = [self.shapes | {recording_id: Shape(0, SEGMENTS_MAX * SEGMENT)}]

    def close(self) -> None:
        """Give the client back."""
        self._client.close()


def seeded() -> random.Random:
    """Choices that can be made again."""
    seed = int(os.environ.get("HEADRACE_SEED", "20417"))
    print(f"seed={seed}; again with HEADRACE_SEED={seed}")
    return random.Random(seed)


def test_an_archive_killed_while_segments_leave_and_join_starts_again(tmp_path: Path) -> None:
    """Each request is done or undone then, and every recording has the frames of its positions."""
    choose, directory = seeded(), tmp_path / "archive"
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        library = Library(driver, directory, choose)
        for number in range(rounds(KILLS)):
            if number % KILLS == 0:
                library.live(Library.begin)
            library.live(Library.step)
        library.live(lambda *_: None)
        library.close()
    storage = DirectoryStorage(directory)
    findings = list(verify(Catalog(storage, read_only=True), storage, is_thorough=True))
    assert [one.text for one in findings if not one.is_ok] == []


def copied(archive: Archive) -> int | None:
    """Where the copy ends, which must be a part of the source; ``None`` before there is one."""
    found = archive.find_recording(0)
    if found is None:
        return None
    assert len(archive.list_recordings()) == 1
    if found.stop_position > 0:
        assert replayed(archive, 0) == messages(0, found.stop_position // FRAME)
    return found.stop_position


def replicated(archive: Archive, *, is_begun: bool) -> headrace.archive.Replication:
    """What the standby brings of the source, into the copy that it has."""
    return archive.replicate(
        0,
        "aeron:ipc",
        source_stream_id=SOURCE_STREAM_ID,
        destination_id=0 if is_begun else None,
        replication_channel="aeron:ipc",
        source_response_channel="aeron:ipc",
    )


def test_archives_killed_while_one_replicates_the_other_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """Either of them is killed; the copy is a part of the source, never gets shorter, and goes on to its end."""
    choose, source, standby = seeded(), tmp_path / "source", tmp_path / "standby"
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver, driver.connect() as client:
        first = Process(driver, source, SOURCE_STREAM_ID)
        try:
            with session(client, SOURCE_STREAM_ID) as archive:
                assert record(archive, COPIED) == 0
            acknowledged = 0
            for number in range(rounds(COPY_KILLS)):
                if number % COPY_KILLS == 0:
                    # Another copy, from the beginning.
                    shutil.rmtree(standby, ignore_errors=True)
                    acknowledged = 0
                second = Process(driver, standby, STANDBY_STREAM_ID)
                try:
                    with session(client, STANDBY_STREAM_ID) as archive:
                        end = copied(archive)
                        assert (end or 0) >= acknowledged
                        replicated(archive, is_begun=end is not None)
                        killed = choose.choice((first, second))
                        killer = killed.kill_soon(choose.uniform(0, 0.03))
                        acknowledged = max(end or 0, followed(archive, killer))
                finally:
                    second.kill()
                if killed is first:
                    first.kill()
                    first = Process(driver, source, SOURCE_STREAM_ID)
            second = Process(driver, standby, STANDBY_STREAM_ID)
            try:
                with session(client, STANDBY_STREAM_ID) as archive:
                    end = copied(archive)
                    assert (end or 0) >= acknowledged
                    replicated(archive, is_begun=end is not None).wait(TIMEOUT_S)
                    assert copied(archive) == COPIED * FRAME
            finally:
                second.kill()
            with session(client, SOURCE_STREAM_ID) as archive:
                assert replayed(archive, 0) == messages(0, COPIED)
        finally:
            first.kill()


def followed(archive: Archive, killer: threading.Thread) -> int:
    """How far the copy was recorded, as the standby has told before one of the archives was killed."""
    acknowledged, archive._timeout_s = 0, 0.5
    with contextlib.suppress(ArchiveError, headrace.ClosedError):
        while killer.is_alive():
            with contextlib.suppress(ArchiveError):
                acknowledged = max(acknowledged, archive.recording_position(0) or 0)
    killer.join()
    return acknowledged
