"""Recordings over an archive's control channel: the same as from its files, or a clear error. Without a session."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headrace
from headrace.archive import ArchiveServer
from headrace.archive.errors import ArchiveFileError
from headrace.security import Accepted, Rejected
from headrace.spark import PayloadError
from tests.helpers import await_true
from tests.spark.recordings import SEGMENT_LENGTH, RecordingFiles
from tests.spark.streams import free_udp_channel

if TYPE_CHECKING:
    import pyarrow as pa

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType, TimestampType

from headrace.spark import _source
from headrace.spark._offset import positions
from headrace.spark._options import ReadOptions
from headrace.spark._own_driver import OwnDriver
from headrace.spark._recordings import select

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("no_kept_session")]

Options = dict[str, str]
TYPES = {"bigint": LongType, "int": IntegerType, "binary": BinaryType, "timestamp": TimestampType}
ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0"


def payload_of(index: int) -> bytes:
    return bytes([index % 256]) * (index * 37 % 3000)


@pytest.fixture(scope="module")
def driver() -> Iterator[headrace.MediaDriver]:
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        yield driver


@pytest.fixture(scope="module")
def archive(
    driver: headrace.MediaDriver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Options, Options]]:
    """Options for the files and for the control channel of one archive.

    Recording 0 has mixed lengths over many terms, 1 is of another stream, 2 is empty.
    """
    directory = tmp_path_factory.mktemp("archive")
    mixed = RecordingFiles(directory, start_position=65536 + 96)
    mixed.append((payload_of(index), index) for index in range(300))
    mixed.stop()
    other = RecordingFiles(directory, stream_id=2002, session_id=-5, channel="aeron:udp?endpoint=orders:1")
    other.append((b'{"id": %d}' % index, 0) for index in range(50))
    other.stop()
    RecordingFiles(directory, stream_id=3003).stop()
    control = free_udp_channel()
    with ArchiveServer(driver=driver, archive_directory=directory, control_channel=control):
        yield {"path": str(directory)}, {"controlChannel": control, "timeoutMs": "30000"}


def schema_of(options: Options) -> StructType:
    columns = (column.split(" ") for column in _source.schema(options).split(", "))
    return StructType([StructField(name.strip("`"), TYPES[kind]()) for name, kind in columns])


def rows_of(options: Options) -> list[dict[str, Any]]:
    reader = _source.reader(options, schema_of(options))
    return table_rows(batch for part in reader.partitions() for batch in reader.read(part))


def table_rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ({}, 350),
        ({"bytesPerPartition": "64k", "rowsPerBatch": "7"}, 350),
        ({"recordings": "0", "startPosition": "100001", "endPosition": "300001"}, None),
        ({"streamId": "2002", "codec": "json", "payloadSchema": "id bigint"}, 50),
        ({"channel": "orders", "columns": "session_id,position"}, 50),
        ({"sessionId": "-5"}, 50),
        ({"recordings": "0,2", "timestamps": "reserved_value_ms", "startTime": "100", "endTime": "110"}, 10),
        ({"streamId": "3003"}, 0),
    ],
)
def test_rows_are_the_same_as_from_files(archive: tuple[Options, Options], more: Options, count: int | None):
    files, service = archive
    rows = rows_of(service | more)
    assert rows == rows_of(files | more)
    assert rows or count == 0
    assert count is None or len(rows) == count


def test_replays_are_cut_at_terms(archive: tuple[Options, Options]):
    _, service = archive
    reader = _source.reader(service | {"bytesPerPartition": "1k", "recordings": "0"}, StructType())
    parts = [part for task in reader.partitions() for part in task.ranges]
    assert len(parts) > 5
    assert all(part.first == part.start for part in parts)


def follow(options: Options) -> tuple[list[dict[str, int]], list[dict[str, Any]]]:
    """Offsets and rows of a stream up to what is there now."""
    reader = _source.stream_reader(options, schema_of(options))
    offsets, rows = [reader.initialOffset()], []
    while (latest := reader.latestOffset(offsets[-1], ReadMaxBytes(40_000))) != offsets[-1]:
        for part in reader.partitions(offsets[-1], latest):
            rows += table_rows(reader.read(part))
        offsets.append(latest)
    assert reader.reportLatestOffset().keys() >= positions(offsets[-1]).keys()
    return offsets, rows


def test_a_stream_has_the_same_offsets_and_rows_as_from_files(archive: tuple[Options, Options]):
    files, service = archive
    offsets, rows = follow(service)
    assert len(offsets) > 5
    assert len(rows) == 350
    assert (offsets, rows) == follow(files)


def test_a_live_recording_is_read_as_far_as_it_is_recorded(driver: headrace.MediaDriver, tmp_path: Path):
    control = free_udp_channel()
    options = {"controlChannel": control, "timeoutMs": "30000"}
    messages = [b"%d " % index * (index * 7 % 700) for index in range(500)]
    with (
        ArchiveServer(
            driver=driver, archive_directory=tmp_path, control_channel=control, local_control_stream_id=4712
        ),
        headrace.Archive.connect(
            driver=driver, control_channel=control, response_channel=ANY_PORT
        ) as session,
        session.add_recorded_publication("aeron:ipc?term-length=64k", 7) as publication,
    ):
        for half in (messages[:250], messages[250:]):
            for message in half:
                publication.offer_blocking(message)
            await_true(lambda: session.max_recorded_position(0) == publication.position)
            (selected,) = select(ReadOptions.parse(options))
            assert selected.descriptor.is_active
            rows = rows_of(options)
            assert rows[-1]["position"] == publication.position
        assert [row["payload"] for row in rows] == messages
        assert {row["session_id"] for row in rows} == {publication.session_id}


def test_a_driver_and_channels_can_be_named(archive: tuple[Options, Options], driver: headrace.MediaDriver):
    files, service = archive
    over_ipc = {"controlChannel": "aeron:ipc", "aeronDirectory": driver.directory}
    named = {
        **service,
        "aeronDirectory": driver.directory,
        "controlResponseChannel": ANY_PORT,
        "controlResponseStreamId": "21",
        "replayChannel": free_udp_channel(),
        "replayStreamId": "1021",
    }
    assert rows_of(over_ipc) == rows_of(named) == rows_of(files)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {},
            "which archive holds the recordings? Give its directory, here or to load(), or its controlChannel",
        ),
        ({"controlStreamId": "10", "path": "x"}, "controlStreamId=10: has no meaning without controlChannel"),
        ({"controlChannel": "localhost:8010"}, "controlChannel=localhost:8010: a channel starts with aeron:"),
        ({"controlChannel": "aeron:tcp?endpoint=a:1"}, "controlChannel=aeron:tcp?endpoint=a:1: the media is"),
        ({"controlChannel": "aeron:udp"}, "controlChannel=aeron:udp: must name the archive's address"),
        ({"controlChannel": "aeron:ipc"}, "give that driver's directory as aeronDirectory"),
        ({"controlChannel": "aeron:udp?endpoint=a:1", "path": "x"}, "leave this out, or the directory x"),
        (
            {"controlChannel": "aeron:udp?endpoint=a:1", "replayChannel": "aeron:udp?reliable=false"},
            "reliable=false would leave out what the network loses",
        ),
        ({"controlChannel": "aeron:udp?endpoint=a:1", "timeoutMs": "0"}, "timeoutMs=0: must be from 1"),
        ({"path": "x", "recordings": str(1 << 63)}, f"recordings={1 << 63}: must be at most"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_asked(options: Options, expected: str):
    with pytest.raises(headrace.ConfigError) as refused:
        ReadOptions.parse(options)
    assert expected in str(refused.value)


@pytest.mark.parametrize("endpoint", ["localhost:port", "localhost", "no.such.host.invalid:8010"])
def test_an_endpoint_that_is_no_address_is_refused(endpoint: str):
    control = f"aeron:udp?endpoint={endpoint}"
    with pytest.raises(headrace.ConfigError, match="its endpoint is not an address and a port") as refused:
        rows_of({"controlChannel": control})
    assert str(refused.value).startswith(f"controlChannel={control}: ")


def test_an_unknown_recording_and_a_start_after_the_end_are_refused(archive: tuple[Options, Options]):
    for options in archive:
        with pytest.raises(headrace.ConfigError, match=r"recordings=9: .* has no such recording"):
            rows_of(options | {"recordings": "0,9"})
        with pytest.raises(
            headrace.ConfigError, match=r"startPosition=1048576: is after the end of recording 1"
        ):
            rows_of(options | {"recordings": "1", "startPosition": "1048576"})


def test_a_channel_without_an_answer_is_an_error_with_advice():
    control = free_udp_channel()
    with pytest.raises(headrace.ArchiveTimeoutError) as failed:
        rows_of({"controlChannel": control, "timeoutMs": "300"})
    text = str(failed.value)
    assert text.startswith(
        f"cannot list recordings: the archive at {control} controlStreamId=10: no archive takes"
    )
    assert "Waited timeoutMs=300. Is an archive running with this control channel and stream" in text


def test_an_archive_that_wants_to_know_who_asks_is_told_by_a_file(
    driver: headrace.MediaDriver, archive: tuple[Options, Options], tmp_path: Path
):
    """The options have its path; the archive's other clients of this process are who they were."""

    class Gate:
        def on_connect(self, credentials: bytes) -> Accepted | Rejected:
            return Accepted() if credentials == b"spark:M4RK3D" else Rejected()

    directory = tmp_path / "archive"
    kept = RecordingFiles(directory)
    kept.append((payload_of(index), index) for index in range(10))
    kept.stop()
    control, path = free_udp_channel(), tmp_path / "credentials"
    options = {"controlChannel": control, "timeoutMs": "30000"}
    with ArchiveServer(
        driver=driver,
        archive_directory=directory,
        control_channel=control,
        local_control_stream_id=4711,
        authenticator=Gate(),
    ):
        for line in (None, "spark:other"):
            if line is not None:
                path.write_text(line)
                options["credentialsFile"] = str(path)
            with pytest.raises(headrace.ArchiveError, match="credentialsFile") as refused:
                rows_of(options)
            assert refused.value.code_name == "AUTHENTICATION_REJECTED"
            assert "other" not in str(refused.value)
        path.write_text("spark:M4RK3D\n")
        assert len(rows_of(options)) == 10
    assert len(rows_of(archive[1])) == 350


def test_a_payload_that_cannot_be_decoded_is_no_fault_of_the_archive(archive: tuple[Options, Options]):
    for options in archive:
        with pytest.raises(PayloadError, match="position=") as failed:
            rows_of(options | {"recordings": "0", "codec": "json", "payloadSchema": "id bigint"})
        assert "cannot replay" not in str(failed.value)


class Stored:
    """An archive with one stopped recording of 400 messages, of which things can go wrong."""

    def __init__(self, driver: headrace.MediaDriver, base: Path, **settings: Any) -> None:
        files = RecordingFiles(base)
        self.ends = files.append((bytes(1000), 0) for _ in range(400))
        files.stop()
        streams = {"local_control_stream_id": 4713}
        self._start = {"driver": driver, "archive_directory": base, **streams, **settings}
        self.control = free_udp_channel()
        self.options = {"controlChannel": self.control, "timeoutMs": "5000", "bytesPerPartition": "128k"}
        self.start()

    def start(self) -> None:
        self.server = ArchiveServer(control_channel=self.control, **self._start)

    def planned(self) -> tuple[Any, list[Any]]:
        """A reader and its partitions, before something happens to the recording."""
        reader = _source.reader(self.options, schema_of(self.options))
        return reader, list(reader.partitions())

    def session(self) -> headrace.Archive:
        driver, control = self._start["driver"], self.control
        return headrace.Archive.connect(driver=driver, control_channel=control, response_channel=ANY_PORT)


@pytest.fixture
def stored(driver: headrace.MediaDriver, tmp_path: Path) -> Iterator[Stored]:
    # The archive waits that long for a file that is not there.
    stored = Stored(driver, tmp_path, max_concurrent_replays=1, connect_timeout_ns=2_000_000_000)
    yield stored
    stored.server.close()


def test_a_recording_that_was_truncated_meanwhile_fails_the_task(stored: Stored):
    reader, parts = stored.planned()
    with stored.session() as session:
        session.truncate_recording(0, stored.ends[9])
    what = f"cannot replay recording_id=0 from position=0 to {stored.ends[-1]}"
    with pytest.raises(
        headrace.ArchiveError, match=f"{what}: .*: it ended at position={stored.ends[9]}, and"
    ):
        list(reader.read(parts[0]))
    with pytest.raises(headrace.ArchiveError, match=r"INVALID_POSITION"):
        list(reader.read(parts[-1]))
    with stored.session() as session:
        session.purge_recording(0)
    with pytest.raises(headrace.ArchiveError, match=f"{what}: .*UNKNOWN_RECORDING"):
        list(reader.read(parts[0]))


def test_segments_that_were_purged_meanwhile_fail_the_task_that_reads_them(stored: Stored):
    """By name, over the control channel and from the files; the task that reads what is left does not notice."""
    reader, parts = stored.planned()
    from_files = {"path": stored.server.directory, "bytesPerPartition": "128k"}
    file_reader = _source.reader(from_files, schema_of(from_files))
    file_parts = list(file_reader.partitions())
    with stored.session() as session:
        assert session.purge_segments(0, SEGMENT_LENGTH) == 1
        session.await_signal(headrace.archive.RecordingSignal.DELETE)
    with pytest.raises(headrace.ArchiveError, match=f"is below start={SEGMENT_LENGTH} for recording 0"):
        list(reader.read(parts[0]))
    with pytest.raises(ArchiveFileError, match=r"0-0\.rec"):
        list(file_reader.read(file_parts[0]))
    assert list(reader.read(parts[-1])) == list(file_reader.read(file_parts[-1]))


def test_a_recording_that_was_read_to_its_end_may_be_purged_while_no_query_runs(stored: Stored):
    reader = _source.stream_reader(stored.options, schema_of(stored.options))
    offset = json.loads(json.dumps(reader.latestOffset({}, ReadAllAvailable())))
    assert offset == {"0": stored.ends[-1], "ended": [0], "began": {"0": 0}}
    with stored.session() as session:
        session.purge_recording(0)
    with pytest.raises(ArchiveFileError, match="was to be read from position=its start"):
        reader.partitions({}, offset)
    started_again = _source.stream_reader(stored.options, schema_of(stored.options))
    for each in (reader, started_again):
        assert each.latestOffset(offset, ReadAllAvailable()) == {}


def test_a_recording_that_was_purged_before_it_was_read_to_its_end_fails_the_query(stored: Stored):
    reader = _source.stream_reader(stored.options, schema_of(stored.options))
    offset = reader.latestOffset({}, ReadMaxBytes(stored.ends[-1] // 2))
    with stored.session() as session:
        session.purge_recording(0)
    expected = f"recording_id=0 .* read up to position={offset['0']} only; where it ended is not known"
    with pytest.raises(ArchiveFileError, match=expected):
        reader.latestOffset(offset, ReadAllAvailable())


def test_a_damaged_segment_fails_the_task_with_its_name(stored: Stored, tmp_path: Path):
    reader, parts = stored.planned()
    segment = tmp_path / "0-131072.rec"
    segment.unlink()
    with pytest.raises(headrace.ArchiveError, match=str(segment)):
        [list(reader.read(part)) for part in parts]


def test_an_archive_that_ends_fails_the_task_and_the_next_attempt_finds_its_successor(stored: Stored):
    # Few, so that the archive has more to send: what the window holds, the reader has already.
    stored.options["rowsPerBatch"] = "7"
    reader, parts = stored.planned()
    batches = reader.read(parts[0])
    first = next(batches)
    stored.server.close()
    with pytest.raises(headrace.ArchiveError, match="cannot replay recording_id=0"):
        list(batches)
    assert len(first) == 7
    stored.start()
    assert len(table_rows(batch for part in parts for batch in reader.read(part))) == 400


def test_an_archive_that_sends_nothing_fails_the_task(driver: headrace.MediaDriver, tmp_path: Path):
    stored = Stored(driver, tmp_path, is_invoked=True)
    is_stalled, is_done = threading.Event(), threading.Event()

    def step() -> None:
        while not is_done.is_set():
            if is_stalled.is_set() or not stored.server.do_work():
                is_done.wait(0.001)

    agent = threading.Thread(target=step)
    agent.start()
    try:
        stored.options["rowsPerBatch"] = "1"
        reader, parts = stored.planned()
        batches = reader.read(parts[0])
        next(batches)
        is_stalled.set()
        with pytest.raises(headrace.ArchiveTimeoutError, match=r"nothing came after position=\d+ for 5 s"):
            list(batches)
    finally:
        is_done.set()
        agent.join()
        stored.server.close()


def test_a_task_waits_for_one_of_the_archives_replays(stored: Stored, monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []
    replay_really = headrace.Archive.replay

    def replay_counted(session: headrace.Archive, recording_id: int, **settings: Any) -> Any:
        asked.append(recording_id)
        return replay_really(session, recording_id, **settings)

    monkeypatch.setattr(headrace.Archive, "replay", replay_counted)
    reader, parts = stored.planned()
    with stored.session() as session, session.replay(0, channel=ANY_PORT) as replay:
        next(replay)
        with pytest.raises(headrace.ArchiveError, match=r"raise aeron\.archive\.max\.concurrent\.replays"):
            list(reader.read(parts[0]))
        asked.clear()
        rows: list[Any] = []
        task = threading.Thread(target=lambda: rows.extend(table_rows(reader.read(parts[0]))))
        task.start()
        await_true(lambda: len(asked) > 1)
    task.join()
    assert rows


KILLED_LATER = """
import time
from headrace.spark._own_driver import OwnDriver
own = OwnDriver()
print(own.driver.directory, flush=True)
time.sleep(600)
"""
KILLED_AS_IT_STARTS = """
import os, signal
from headrace.driver import MediaDriver
from headrace.spark._own_driver import OwnDriver

def killed(**settings):
    driver = MediaDriver(**settings, dir_delete_on_shutdown=True)
    print(driver.directory, flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)

MediaDriver.embedded = killed
OwnDriver()
"""


@pytest.mark.parametrize("program", [KILLED_LATER, KILLED_AS_IT_STARTS], ids=["later", "as it starts"])
def test_a_process_that_is_killed_leaves_no_driver(program: str):
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    directory = Path(process.stdout.readline().strip())
    assert (directory / "cnc.dat").exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    await_true(lambda: not directory.exists())


def test_a_driver_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("AERON_DIR", str(tmp_path / "file" / "aeron"))
    with pytest.raises(headrace.DriverError, match="file/aeron"):
        OwnDriver()
