"""Each fault ends in a clear error or in recovery, never in silent loss."""

import errno
import logging
import os
import random
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import fresh_directory

import headrace
from headrace.archive import (
    Archive,
    Catalog,
    CatalogError,
    DirectoryStorage,
    MarkFileError,
    RecordingSignal,
    extension_channel,
)
from headrace.archive.files.catalog import CATALOG_NAME
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.mark_file import MARK_NAME
from headrace.archive.files.stop_position import recovered_stop_position
from headrace.archive.files.verify import frames_of, verify
from headrace.testing import ManualClock, SimulatedStorage
from tests.helpers import TIMEOUT_S, await_true, rounds

pytestmark = pytest.mark.faults

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 1001
SEGMENT = 128 * 1024


def message(index: int) -> bytes:
    """The message of a number; a third of them are zeros but for it, some are longer than a page."""
    filler = b"\0" if index % 3 == 0 else b"x"
    return index.to_bytes(8, "little") + filler * (index * 37 % 5000)


def record(archive: Archive, count: int) -> tuple[int, int]:
    """Records messages; gives the recording's id and where it ended."""
    with archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
        for index in range(count):
            publication.offer_blocking(message(index))
    stopped = archive.await_signal(RecordingSignal.STOP)
    return stopped.recording_id, stopped.position


def segment(directory: Path, recording_id: int, number: int = 0) -> Path:
    """One of the files."""
    return directory / f"{recording_id}-{number * SEGMENT}.rec"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the archive keeps its files."""
    return tmp_path / "archive"


@pytest.fixture
def driver() -> Iterator[headrace.MediaDriver]:
    """A driver that outlives archives."""
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        yield driver


def serve(driver: headrace.MediaDriver, directory: Path, **settings: object) -> headrace.ArchiveServer:
    """An archive on the driver, for local clients."""
    return headrace.ArchiveServer(
        driver=driver,
        archive_directory=directory,
        control_channel_enabled=False,
        segment_file_length=SEGMENT,
        **settings,  # type: ignore[arg-type]
    )


def test_two_archives_cannot_have_one_directory(driver: headrace.MediaDriver, directory: Path) -> None:
    """Neither in one process nor in two; the first goes on."""
    with serve(driver, directory), Archive.connect(driver=driver) as archive:
        with pytest.raises(MarkFileError, match="another archive is running") as refusal:
            serve(driver, directory)
        assert str(directory) in str(refusal.value)
        assert f"is locked by pid={os.getpid()}; stop that archive first, or use another" in str(
            refusal.value
        )
        # Neither does one that takes every directory for that of a dead one: the file is locked.
        with pytest.raises(MarkFileError, match="is locked"):
            serve(driver, directory, mark_file_liveness_timeout_ms=0)
        command = [
            sys.executable,
            "-m",
            "headrace",
            "archive",
            "--dir",
            driver.directory,
            "-a",
            str(directory),
        ]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert finished.returncode == 1
        assert "another archive is running" in finished.stderr
        recording_id, _ = record(archive, 20)
        with archive.replay(recording_id) as replay:
            assert len(list(replay)) == 20
    serve(driver, directory).close()


def test_a_damaged_catalog_stops_the_archive_from_starting(
    driver: headrace.MediaDriver, directory: Path
) -> None:
    """With the place; and once it is restored, everything is there."""
    with serve(driver, directory), Archive.connect(driver=driver) as archive:
        recording_id, _ = record(archive, 20)
    catalog = directory / CATALOG_NAME
    good = catalog.read_bytes()
    catalog.write_bytes(good[:32] + b"\0\0\0\0" + good[36:])
    with pytest.raises(CatalogError, match=r"archive\.catalog: damaged entry at offset=32"):
        serve(driver, directory)
    catalog.write_bytes(good)
    with (
        serve(driver, directory),
        Archive.connect(driver=driver) as archive,
        archive.replay(recording_id) as replay,
    ):
        assert [one.payload for one in replay] == [message(index) for index in range(20)]


def damaged_replay(
    driver: headrace.MediaDriver, directory: Path, damage: str, **settings: object
) -> tuple[headrace.ArchiveError, list[bytes], int]:
    """Records, damages, replays: the error, and what came before it."""
    with serve(driver, directory, **settings), Archive.connect(driver=driver) as archive:
        recording_id, end = record(archive, 300)
    path = segment(directory, recording_id, 1)
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        os.truncate(path, 50_000)
    elif damage == "zeroed":
        path.write_bytes(path.read_bytes()[: 50_016 // 32 * 32] + bytes(SEGMENT - 50_016 // 32 * 32))
    else:
        data = bytearray(path.read_bytes())
        data[50_000] ^= 0xFF
        path.write_bytes(data)
    found: list[bytes] = []
    with serve(driver, directory, **settings), Archive.connect(driver=driver) as archive:
        with archive.replay(recording_id) as replay, pytest.raises(headrace.ArchiveError) as failure:
            found.extend(one.payload for one in replay)
        assert found == [message(index) for index in range(len(found))], "what comes is right"
        assert archive.list_recordings(), "the archive goes on"
    return failure.value, found, end


@pytest.mark.parametrize("damage", ["missing", "truncated", "zeroed"])
def test_a_damaged_segment_ends_a_replay_with_the_files_name(
    driver: headrace.MediaDriver, directory: Path, damage: str
) -> None:
    """After everything before the damage; `verify` finds it as well."""
    error, found, _ = damaged_replay(driver, directory, damage)
    assert f"0-{SEGMENT}.rec" in str(error)
    assert 0 < len(found) < 300
    storage = DirectoryStorage(directory)
    catalog = Catalog(storage, read_only=True)
    (finding,) = verify(catalog, storage, is_thorough=True)
    assert not finding.is_ok
    assert f"0-{SEGMENT}.rec" in finding.text


def test_a_wrong_checksum_ends_a_replay_with_the_frames_position(
    driver: headrace.MediaDriver, directory: Path
) -> None:
    """And not with a wrong byte delivered."""
    error, found, _ = damaged_replay(
        driver, directory, "flipped", record_checksum="CRC-32", replay_checksum="CRC-32"
    )
    assert "checksum mismatch at position=" in str(error)
    assert f"0-{SEGMENT}.rec" in str(error)
    assert 0 < len(found) < 300


FULL_DISK = """
import sys, headrace
from headrace.archive import Archive, RecordingSignal
directory, channel = sys.argv[1] + "/archive", "aeron:ipc?term-length=64k"
with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
    settings = dict(
        driver=driver, archive_directory=directory, control_channel_enabled=False, segment_file_length=128 * 1024,
        low_storage_space_threshold=0,
    )
    with headrace.ArchiveServer(**settings), Archive.connect(driver=driver) as archive:
        publication = archive.add_recorded_publication(channel, 1001)
        count, stopped = 0, None
        while stopped is None:
            if publication.offer(count.to_bytes(8, "little") * 100):
                count += 1
            stopped = next((one for one in archive.take_signals() if one.signal == RecordingSignal.STOP), None)
        (error,) = archive._signals._errors.values()
        print("ERROR", error.code_name, error)
        with archive.replay(stopped.recording_id) as replay:
            found = [one.payload for one in replay]
        assert found == [index.to_bytes(8, "little") * 100 for index in range(len(found))]
        assert archive.stop_position(stopped.recording_id) == stopped.position
        print("REPLAYED", len(found), count)
    with headrace.ArchiveServer(**settings), Archive.connect(driver=driver) as archive:
        archive.truncate_recording(stopped.recording_id, 0)
        archive.await_signal(RecordingSignal.DELETE)
        with archive.add_recorded_publication(channel, 1001) as publication:
            publication.offer_blocking(b"there is room again")
        archive.await_signal(RecordingSignal.STOP)
        print("AGAIN")
"""


def test_a_full_disk_stops_the_recording_with_the_protocols_code(tmp_path: Path) -> None:
    """What was acknowledged can be replayed, and when there is room again the archive records again."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small file system needs root and `unshare` (package util-linux)")
    mount_and_run = f'mount -t tmpfs -o size=5m none "{tmp_path}" && exec "$0" -c "$1" "{tmp_path}"'
    command = ["unshare", "--mount", "sh", "-c", mount_and_run, sys.executable, FULL_DISK]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    lines = finished.stdout.splitlines()
    assert lines[0].startswith("ERROR STORAGE_SPACE")
    assert "No space left on device" in lines[0]
    assert int(lines[1].split()[1]) > 3000
    assert lines[-1] == "AGAIN"


def test_a_catalog_that_cannot_be_written_stops_nothing_but_what_needs_it(
    driver: headrace.MediaDriver, caplog: pytest.LogCaptureFixture
) -> None:
    """A new recording is refused by its code. One that stops has stopped when the catalog has its end, which is tried
    until there is room; until then it is replayed as far as it goes.
    """
    storage = SimulatedStorage()
    settings = {
        "driver": driver,
        "storage": storage,
        "control_channel_enabled": False,
        "segment_file_length": SEGMENT,
    }
    noted: list[str] = []
    with (
        headrace.ArchiveServer(**settings, on_error=noted.append) as server,  # type: ignore[arg-type]
        Archive.connect(driver=driver) as archive,
    ):
        with archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
            for index in range(20):
                publication.offer_blocking(message(index))
            end = publication.position
            storage.fail("write", CATALOG_NAME, error=errno.ENOSPC)
            with pytest.raises(headrace.ArchiveError, match="STORAGE_SPACE"):
                archive.add_recorded_publication(CHANNEL, STREAM_ID + 1)
        await_true(lambda: any("recording_id=0 cannot be noted as stopped" in text for text in noted))
        assert archive.stop_position(0) is None
        for position in (0, 64):
            with archive.replay(0, position=position) as replay:
                assert [one.payload for one in replay][-1] == message(19)
        with pytest.raises(headrace.ArchiveError, match="ACTIVE_RECORDING"):
            archive.purge_recording(0)
        storage.mend()
        assert archive.await_signal(RecordingSignal.STOP).position == end == archive.stop_position(0)
        assert record(archive, 5)[0] == 1
        with archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
            publication.offer_blocking(b"last")
            last = publication.position
            await_true(lambda: archive.recording_position(2) == last)
            storage.fail("write", CATALOG_NAME, error=errno.ENOSPC)
        await_true(lambda: any("recording_id=2 cannot be noted as stopped" in text for text in noted))
        assert server.failure is None
    storage.mend()
    again = headrace.ArchiveServer(**settings)  # type: ignore[arg-type]
    with again, Archive.connect(driver=driver) as archive:
        assert [archive.stop_position(one) for one in (0, 2)] == [end, last]
        assert again.error_count == 0
    assert f"WARN - recovered recording_id=2 stop_position={last}" in caplog.messages


def test_an_extension_that_the_catalog_cannot_take_changes_nothing(driver: headrace.MediaDriver) -> None:
    """The recording stays stopped, can be replayed from anywhere, and extended when there is room."""
    storage = SimulatedStorage()
    with (
        headrace.ArchiveServer(
            driver=driver, storage=storage, control_channel_enabled=False, segment_file_length=SEGMENT
        ) as server,
        Archive.connect(driver=driver) as archive,
    ):
        recording_id, end = record(archive, 10)
        recording = archive.find_recording(recording_id)
        assert recording is not None
        channel = extension_channel(CHANNEL, recording)
        storage.fail("write", CATALOG_NAME, error=errno.ENOSPC)
        subscription_id = archive.extend_recording(recording_id, channel, STREAM_ID)
        with archive.client.add_exclusive_publication(channel, STREAM_ID):
            await_true(lambda: server.error_count == 1)
        assert archive.stop_position(recording_id) == end
        for position in (0, 64):
            with archive.replay(recording_id, position=position) as replay:
                assert [one.payload for one in replay][-1] == message(9)
        archive.stop_recording_subscription(subscription_id)
        storage.mend()
        archive.extend_recording(recording_id, channel, STREAM_ID, auto_stop=True)
        with archive.client.add_exclusive_publication(channel, STREAM_ID) as publication:
            publication.offer_blocking(b"more")
        assert archive.await_signal(RecordingSignal.STOP, recording_id).position > end
        with archive.replay(recording_id) as replay:
            assert [one.payload for one in replay][9:] == [message(9), b"more"]
        assert server.failure is None


def test_an_archive_starts_without_room_for_the_errors_of_the_one_before(
    driver: headrace.MediaDriver, caplog: pytest.LogCaptureFixture
) -> None:
    """Which has most likely noted that there was no room; they are told to the program's log instead."""
    caplog.set_level(logging.INFO, "headrace.archive")
    storage = SimulatedStorage()
    storage.fail("write", "*error.log", error=errno.ENOSPC)
    settings = {"driver": driver, "storage": storage, "control_channel_enabled": False}
    with headrace.ArchiveServer(**settings) as server:  # type: ignore[arg-type]
        server._log.error("no room for anything")
    caplog.clear()
    with headrace.ArchiveServer(**settings) as server:  # type: ignore[arg-type]
        assert server.error_count == 1
    assert "cannot save the errors of the previous archive" in caplog.messages[0]
    assert "1 observations" in caplog.messages[1]
    assert "no room for anything" in caplog.messages[1]
    assert not any(name.endswith("error.log") for name in storage.names())


def test_a_mark_file_that_cannot_be_written_is_noted_and_ends_nothing(driver: headrace.MediaDriver) -> None:
    """Neither the sign of life in it nor the errors, which the program hears of all the same."""
    storage, clock, noted = SimulatedStorage(), ManualClock(), []
    with headrace.ArchiveServer(
        driver=driver,
        storage=storage,
        clock=clock,
        is_invoked=True,
        control_channel_enabled=False,
        on_error=noted.append,
    ) as server:
        storage.fail("write", MARK_NAME, error=errno.ENOSPC)
        for _ in range(2):
            clock.advance(1.001)
            server.do_work()
        assert len(noted) == server.error_count == 2
        assert "cannot say in the mark file that this archive runs" in noted[0]
        storage.mend()
        clock.advance(1.001)
        server.do_work()
        assert len(noted) == 2


DYING_CLIENT = """
import os, sys, headrace
from headrace.archive import Archive
archive = Archive.connect(directory=sys.argv[1])
replay = archive.replay(0)
next(replay)
print("READY", flush=True)
sys.stdin.readline()
"""


def test_a_client_that_dies_during_a_replay_leaves_nothing(
    driver: headrace.MediaDriver, directory: Path
) -> None:
    """Its session and its replay end; others go on."""
    with serve(driver, directory) as server, Archive.connect(driver=driver) as archive:
        record(archive, 300)
        process = subprocess.Popen(
            [sys.executable, "-c", DYING_CLIENT, driver.directory],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "READY\n"
        values = {record.type_id: record.counter_id for record in archive.client.counters}
        counters = archive.client.counters
        assert (counters.value(values[102]), counters.value(values[112])) == (2, 1)
        process.kill()
        process.communicate()
        await_true(lambda: (counters.value(values[102]), counters.value(values[112])) == (1, 0))
        with archive.replay(0) as replay:
            assert len(list(replay)) == 300
        assert server.failure is None


ARCHIVE_PROCESS = """
import sys, threading, headrace
sync_level, checksum = int(sys.argv[3]), sys.argv[4] or None
headrace.ArchiveServer(
    aeron_directory=sys.argv[1], archive_directory=sys.argv[2], control_channel_enabled=False,
    segment_file_length=128 * 1024, mark_file_liveness_timeout_ms=0,
    file_sync_level=sync_level, catalog_file_sync_level=sync_level,
    record_checksum=checksum, replay_checksum=checksum,
)
print("READY", flush=True)
threading.Event().wait()
"""


def start_archive(
    driver_directory: str, directory: Path, sync_level: int = 0, checksum: str = ""
) -> subprocess.Popen[str]:
    """An archive in a process that can be killed; takes the directory of a dead one at once."""
    process = subprocess.Popen(
        [sys.executable, "-c", ARCHIVE_PROCESS, driver_directory, str(directory), str(sync_level), checksum],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "READY\n"
    return process


def test_a_replay_whose_archive_dies_is_an_error_and_not_an_early_end(
    driver: headrace.MediaDriver, directory: Path
) -> None:
    """The driver ends the stream of a dead client as it ends that of one which has finished."""
    process = start_archive(driver.directory, directory)
    try:
        with headrace.Client.connect(driver=driver) as client:
            archive = Archive.connect(client)
            recording_id, end = record(archive, 300)
            replay = archive.replay(recording_id)
            found = [next(replay).payload]
            process.kill()
            process.wait()
            archive._timeout_s = 1.0  # what is waited for does not come
            with pytest.raises(
                headrace.ArchiveError, match="perhaps early: no archive confirms it: the archive is gone"
            ):
                found.extend(one.payload for one in replay)
            assert found == [message(index) for index in range(len(found))]
            assert replay.position is not None
            assert 0 < replay.position < end
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "sync_level", "checksum"), [(12, 0, ""), (4, 1, "CRC-32C"), (4, 2, "")])
def test_an_archive_killed_many_times_keeps_what_it_acknowledged(
    driver: headrace.MediaDriver, directory: Path, kills: int, sync_level: int, checksum: str
) -> None:
    """At random moments, with messages of zeros across pages among them; no torn frame is ever replayed.

    Each life records some messages and is killed while the archive writes the last of them. The next one must start,
    with every recording stopped at or after the last position that its counter showed, and with frames that are whole
    up to there.
    """
    seed = int(os.environ.get("HEADRACE_SEED", "20260"))
    print(f"seed={seed}; again with HEADRACE_SEED={seed}")
    choose = random.Random(seed)
    acknowledged: dict[int, int] = {}
    client = headrace.Client.connect(driver=driver)
    for _ in range(rounds(kills)):
        process = start_archive(driver.directory, directory, sync_level, checksum)
        try:
            archive = Archive.connect(client)
            publication = archive.add_recorded_publication(CHANNEL, STREAM_ID)
            recording_id = archive.await_signal(RecordingSignal.START).recording_id
            (counter_id,) = (
                one.counter_id
                for one in client.counters
                if one.type_id == 100 and one.key[:8] == recording_id.to_bytes(8, "little")
            )
            for index in range(choose.randint(1, 400)):
                publication.offer_blocking(message(index), timeout_s=TIMEOUT_S)
            acknowledged[recording_id] = client.counters.value(counter_id)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        publication.close()
        archive._publication.close()
        archive._subscription.close()
    with (
        serve(
            driver,
            directory,
            mark_file_liveness_timeout_ms=0,
            record_checksum=checksum,
            replay_checksum=checksum,
        ) as server,
        Archive.connect(client) as archive,
    ):
        recordings = archive.list_recordings()
        assert [one.recording_id for one in recordings] == sorted(acknowledged)
        for one in recordings:
            assert one.stop_position >= acknowledged[one.recording_id], one
            if one.stop_position > 0:
                with archive.replay(one.recording_id, stream_id=5000 + one.recording_id) as replay:
                    found = [received.payload for received in replay]
                assert found == [message(index) for index in range(len(found))]
        assert server.failure is None
    client.close()
    storage = DirectoryStorage(directory)
    catalog = Catalog(storage, read_only=True)
    found_by = verify(catalog, storage, is_thorough=True, checksum=checksum_named(checksum))
    assert [finding.text for finding in found_by if not finding.is_ok] == []
    assert max(acknowledged.values()) > SEGMENT, "some lives were long enough to fill a segment"


def test_a_torn_frame_is_cut_off_and_one_of_zeros_is_kept(tmp_path: Path) -> None:
    """What tells them apart is whether the file system was ever given their pages."""
    from tests.archive.streams import descriptor, frame

    storage = DirectoryStorage(tmp_path)
    zeros = frame(0, bytes(6000))
    for recording_id, written in ((0, zeros), (1, zeros[:4096])):
        file = storage.create(f"{recording_id}-0.rec", SEGMENT)
        file.write(0, written)
        file.close()
    if not storage.open("1-0.rec").has_hole(4096, 4096):
        pytest.skip("the file system does not tell holes from data")
    notes: list[str] = []
    stops = [
        recovered_stop_position(storage, descriptor(recording_id=number), None, notes.append)
        for number in (0, 1)
    ]
    assert stops == [len(zeros), 0]
    assert len(notes) == 1
    assert "moved to 1-0.cut" in notes[0]
    assert not any((tmp_path / "1-0.rec").read_bytes())
    assert list(frames_of(storage, descriptor(recording_id=0), 0, stops[0]))


def test_the_archive_ends_when_its_driver_does(directory: Path) -> None:
    """Saying so; what was recorded is kept."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "headrace",
            "driver",
            "--dir",
            str(where := fresh_directory("archive-driver")),
        ],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], TIMEOUT_S)[0]
    server = headrace.ArchiveServer(
        aeron_directory=where, archive_directory=directory, control_channel_enabled=False
    )
    client = headrace.Client.connect(directory=where)
    archive = Archive.connect(client)
    publication = archive.add_recorded_publication(CHANNEL, STREAM_ID)
    archive.await_signal(RecordingSignal.START)
    publication.offer_blocking(b"kept")
    while archive.max_recorded_position(0) != publication.position:
        pass
    end = publication.position
    process.kill()
    process.communicate()
    await_true(lambda: server.failure is not None)
    server.close()
    client.close()
    shutil.rmtree(where, ignore_errors=True)
    catalog = Catalog(DirectoryStorage(directory), read_only=True)
    assert [entry.descriptor.stop_position for entry in catalog] == [end]


FORKING = """
import os, sys, headrace
from headrace.archive import Catalog, DirectoryStorage, RecordingSignal
from headrace.archive.files.mark_file import read_mark_fields

def on_disk():
    catalog = Catalog(DirectoryStorage(directory), read_only=True)
    return [one.descriptor.stop_position for one in catalog], read_mark_fields(DirectoryStorage(directory)).pid

directory, lives_on = sys.argv[1], len(sys.argv) > 2
with (
    headrace.ArchivingMediaDriver.embedded(archive_directory=directory) as both,
    both.connect_archive() as archive,
    archive.add_recorded_publication("aeron:ipc?term-length=64k", 1) as publication,
):
    publication.offer_blocking(b"before")
    archive.await_signal(RecordingSignal.START)
    with archive.replay(0) as replay:
        assert next(replay).payload == b"before"
        before = on_disk()
        assert before == ([-1], os.getpid())
        child = os.fork()
        if child == 0:
            if lives_on:
                print(os.getpid(), flush=True)
                sys.stdin.readline()
                os._exit(0)
            assert both.archive.is_closed
            try:
                both.archive.do_work()
            except headrace.ForkError:
                sys.exit(0)
            sys.exit("a child has worked for its parent's archive")
        if lives_on:
            os.kill(os.getpid(), 9)
        _, status = os.waitpid(child, 0)
        assert on_disk() == before, on_disk()
        publication.offer_blocking(b"after")
        assert next(replay).payload == b"after"
assert on_disk()[0] == [128], on_disk()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_that_exits_leaves_its_parents_archive_alone(directory: Path) -> None:
    """Its `with` blocks and exit hooks run, and stop nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, directory],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_that_lives_on_does_not_hold_its_parents_directory(
    driver: headrace.MediaDriver, directory: Path
) -> None:
    """The lock on it ends with the archive's process."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, directory, "lives on"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Killed, it leaves its driver's directory: among the files of this test.
        env={**os.environ, "AERON_DIR": str(directory.parent / "aeron")},
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.wait(TIMEOUT_S) == -signal.SIGKILL
        os.kill(child, 0)
        with serve(driver, directory, mark_file_liveness_timeout_ms=0) as server:
            assert server.failure is None
        os.kill(child, 0)
        assert parent.stdin is not None
        parent.stdin.close()
