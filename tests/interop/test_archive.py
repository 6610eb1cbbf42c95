"""The reference's unmodified archive client and tool on our archive, and our client on the reference's archive."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benches.processes import JavaPeer, background, fresh_directory

import headrace
from headrace.archive import (
    Archive,
    Catalog,
    DirectoryStorage,
    ErrorCode,
    RecordingSignal,
    Retention,
    files,
)
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.interop

LIVE = "aeron:ipc?term-length=64k"
SPIED = f"aeron:udp?endpoint={free_endpoint()}|term-length=64k|ssc=true"
OUR_CONTROL = f"aeron:udp?endpoint={free_endpoint()}"
THEIR_CONTROL = f"aeron:udp?endpoint={free_endpoint()}"
ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0"
MESSAGES = [b"message %d " % index * (1 + index % 400) for index in range(1000)]


def run_java(java: JavaPeer, main: str, *args: object, answer: str | None = None) -> str:
    """Runs a Java program to its end and gives what it printed."""
    finished = subprocess.run(
        java.command(main, *args),
        input=answer,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.mark.parametrize(
    ("request_channel", "response_channel", "live_channel", "replay_channel"),
    [
        ("aeron:ipc", "aeron:ipc", LIVE, "aeron:ipc"),
        (OUR_CONTROL, ANY_PORT, LIVE, f"aeron:udp?endpoint={free_endpoint()}"),
        ("aeron:ipc", "aeron:ipc", SPIED, "aeron:ipc"),
    ],
    ids=["ipc", "udp", "spied"],
)
def test_java_client_and_tool_on_our_archive(
    java: JavaPeer,
    tmp_path: Path,
    request_channel: str,
    response_channel: str,
    live_channel: str,
    replay_channel: str,
) -> None:
    """The client records, replays live and finished, lists, extends, truncates; then the tool verifies our files."""
    directory = tmp_path / "archive"
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=directory, control_channel=OUR_CONTROL, segment_file_length=128 * 1024
    ) as archiving:
        args = archiving.directory, request_channel, response_channel, live_channel, replay_channel, 500
        assert "DONE" in run_java(java, "ArchivePeer", *args)
    described = run_java(java, "io.aeron.archive.ArchiveTool", directory, "describe")
    assert "recordingId=0" in described
    assert "stopPosition=793536" in described
    assert "(recordingId=0) OK" in run_java(java, "io.aeron.archive.ArchiveTool", directory, "verify", "-a")


REFUSALS = {
    "replicate": (ErrorCode.GENERIC, "no replication channel: give one"),
    "stop replication": (ErrorCode.UNKNOWN_REPLICATION, "unknown replication id 7"),
    "detach": (ErrorCode.GENERIC, "newStartPosition=0 is in the first segment file"),
    "purge segments": (ErrorCode.GENERIC, "newStartPosition=0 is in the first segment file"),
    "migrate": (ErrorCode.UNKNOWN_RECORDING, "unknown recording id: 1"),
    "purge active": (ErrorCode.ACTIVE_RECORDING, "cannot purge active recording 0"),
    "truncate active": (ErrorCode.ACTIVE_RECORDING, "cannot truncate active recording 0"),
    "extend active": (ErrorCode.ACTIVE_RECORDING, "cannot extend active recording"),
    "unknown recording": (ErrorCode.UNKNOWN_RECORDING, "unknown recording id: 4711"),
    "position off the grid": (ErrorCode.GENERIC, "position=33 is not a multiple of FRAME_ALIGNMENT (32)"),
    "position within a frame": (
        ErrorCode.INVALID_POSITION,
        "replayPosition=32 does not point to a valid frame",
    ),
    "position at the end": (ErrorCode.INVALID_POSITION, "is not below stop="),
    "negative length": (ErrorCode.GENERIC, "replay length must be positive: length=-7"),
    "truncate within a frame": (
        ErrorCode.INVALID_POSITION,
        "32 position not aligned to a data header",
    ),
    "extend other stream": (ErrorCode.UNKNOWN_RECORDING, "streamId=9"),
    "malformed channel": (ErrorCode.GENERIC, "starts with aeron:"),
    "purge unknown": (ErrorCode.UNKNOWN_RECORDING, "4711"),
    "truncate unknown": (ErrorCode.UNKNOWN_RECORDING, "4711"),
    "stop unknown": (ErrorCode.UNKNOWN_SUBSCRIPTION, "streamId=4711"),
    "find below 0": (ErrorCode.UNKNOWN_RECORDING, "minRecordingId=-1"),
    "update unknown": (ErrorCode.GENERIC, "RECORDING_UNKNOWN"),
    "purged": (ErrorCode.UNKNOWN_RECORDING, "unknown recording id"),
}


def test_java_client_is_refused_by_our_archive_with_code_and_reason(java: JavaPeer, tmp_path: Path) -> None:
    """For what is not built and for what is wrong; and the reference's code finds our counters."""
    with headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as archiving:
        printed = run_java(java, "ArchiveRefusals", archiving.directory, "aeron:ipc")
        archive_id = archiving.archive.archive_id
    lines = [line.split("\t") for line in printed.splitlines()]
    told = {name: (code, text) for name, code, text in (line for line in lines if len(line) == 3)}
    for name, (code, words) in REFUSALS.items():
        assert told[name][0] == str(int(code)), (name, told[name])
        assert words in told[name][1], (name, told[name])
    done = ("update channel", "purge", "delete detached", "attach")
    assert [told[name][0] for name in done] == ["none"] * len(done)
    assert told["position"][0] == "true"
    assert told["position"][1].startswith("aeron:ipc rec-pos: 0 ")
    labels = {int(line[1]): line[2] for line in lines if line[0] == "counter"}
    assert sorted(labels) == list(range(101, 113))
    assert all(f" - archiveId={archive_id}" in label for label in labels.values())
    assert told["archive"][0] == str(archive_id)


@contextmanager
def running_java_archive(java: JavaPeer, archive_directory: Path) -> Iterator[Path]:
    """Driver directory of an unmodified Java archive that runs on a directory."""
    directory = fresh_directory("interop-archive")
    properties = {
        "aeron.dir": str(directory),
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(archive_directory),
        "aeron.archive.control.channel": THEIR_CONTROL,
        "aeron.archive.replication.channel": ANY_PORT,
        "aeron.archive.segment.file.length": "128k",
    }
    command = java.command("io.aeron.archive.ArchivingMediaDriver", properties=properties)
    with background(command, ready=archive_directory / "archive-mark.dat"):
        yield directory


@pytest.fixture
def java_archive(java: JavaPeer, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Driver directory and archive directory of a running, unmodified Java archive."""
    archive_directory = tmp_path / "java-archive"
    with running_java_archive(java, archive_directory) as directory:
        yield directory, archive_directory


@pytest.mark.parametrize("transport", ["ipc", "udp"])
def test_our_client_on_the_java_archive(java_archive: tuple[Path, Path], transport: str) -> None:
    """Records, lists, replays, gets errors by their codes, truncates; then our archive serves their files."""
    directory, archive_directory = java_archive
    settings, replay_channel = {}, "aeron:ipc"
    if transport == "udp":
        settings = {"control_channel": THEIR_CONTROL, "response_channel": ANY_PORT}
        replay_channel = f"aeron:udp?endpoint={free_endpoint()}"
    with (
        headrace.Client.connect(directory=directory) as client,
        Archive.connect(client, **settings) as archive,  # type: ignore[arg-type]
    ):
        with archive.add_recorded_publication(LIVE, 1001) as publication:
            for message in MESSAGES:
                publication.offer_blocking(message)
            position = publication.position
        started = archive.await_signal(RecordingSignal.START)
        stopped = archive.await_signal(RecordingSignal.STOP)
        assert stopped.position == position
        recording_id = started.recording_id
        recording = archive.find_recording(recording_id)
        assert recording is not None
        assert recording.stop_position == position
        assert [one.recording_id for one in archive.list_recordings(recording_id)] == [recording_id]
        with archive.replay(recording_id, channel=replay_channel) as replay:
            assert [message.payload for message in replay] == MESSAGES
        with pytest.raises(headrace.ArchiveError) as refusal:
            archive.start_position(4711)
        assert refusal.value.code_name == "UNKNOWN_RECORDING"
        with pytest.raises(headrace.ArchiveError) as refusal:
            archive.truncate_recording(recording_id, 33)
        assert refusal.value.code_name == "INVALID_POSITION"
        half = position // 2 // 65536 * 65536
        assert archive.truncate_recording(recording_id, half) > 0
        archive.await_signal(RecordingSignal.DELETE)
        assert archive.stop_position(recording_id) == half
        with archive.replay(recording_id, channel=replay_channel) as replay:
            before = [message.payload for message in replay]
        assert before == MESSAGES[: len(before)]
        assert before
    catalog = Catalog(DirectoryStorage(archive_directory), read_only=True)
    assert [entry.descriptor.stop_position for entry in catalog] == [half]
    catalog.close()


@pytest.mark.usefixtures("no_kept_session")
@pytest.mark.parametrize("source", ["files", "replays"])
def test_our_spark_source_reads_a_recording_while_the_java_archive_writes_it(
    java_archive: tuple[Path, Path], source: str
) -> None:
    """What is recorded so far, by the reference's own counter; fragmented messages are whole."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")
    from headrace.spark._options import ReadOptions
    from headrace.spark._ranges import RecordingRange
    from headrace.spark._reading import opened
    from headrace.spark._recordings import select

    directory, archive_directory = java_archive
    place = {
        "files": {"path": str(archive_directory)},
        "replays": {"controlChannel": THEIR_CONTROL, "timeoutMs": "10000"},
    }[source]
    options = ReadOptions.parse({**place, "bytesPerPartition": "40k"})
    with (
        headrace.Client.connect(directory=directory) as client,
        Archive.connect(client) as archive,
        archive.add_recorded_publication(LIVE, 1001) as publication,
    ):
        for message in MESSAGES:
            publication.offer_blocking(message)
        await_true(lambda: [each.end for each in select(options)] == [publication.position])
        (selected,) = select(options)
        assert selected.descriptor.is_active
        assert selected.end is not None
        part = RecordingRange.of(
            selected.descriptor, selected.descriptor.start_position, selected.end, selected.end
        )
        payloads = []
        for piece in part.pieces(options.bytes_per_partition):
            with opened(piece, options) as reader:
                payloads += [row for batch in reader.batches(5000) for row in batch]
    assert payloads == MESSAGES


@pytest.mark.parametrize("checksum", ["Crc32", "Crc32c"])
def test_our_archive_serves_the_files_of_the_java_archive(
    java: JavaPeer, tmp_path: Path, checksum: str
) -> None:
    """A directory written by the reference is opened, replayed and extended here, and the reference's tool agrees."""
    directory, archive_directory = fresh_directory("interop-files"), tmp_path / "files"
    properties = {
        "aeron.dir": str(directory),
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(archive_directory),
        "aeron.archive.control.channel": THEIR_CONTROL,
        "aeron.archive.replication.channel": ANY_PORT,
        "aeron.archive.segment.file.length": "128k",
        "aeron.archive.record.checksum": f"io.aeron.archive.checksum.{checksum}",
    }
    command = java.command("io.aeron.archive.ArchivingMediaDriver", properties=properties)
    with (
        background(command, ready=archive_directory / "archive-mark.dat"),
        headrace.Client.connect(directory=directory) as client,
        Archive.connect(client) as archive,
    ):
        with archive.add_recorded_publication(LIVE, 1001) as publication:
            for message in MESSAGES:
                publication.offer_blocking(message)
        archive.await_signal(RecordingSignal.STOP)
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=archive_directory,
            record_checksum=f"org.agrona.checksum.{checksum}",
            replay_checksum=f"org.agrona.checksum.{checksum}",
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        (recording,) = archive.list_recordings()
        with archive.replay(recording.recording_id) as replay:
            assert [message.payload for message in replay] == MESSAGES
        with archive.add_recorded_publication(LIVE, 1002) as publication:
            for message in MESSAGES:
                publication.offer_blocking(message)
        archive.await_signal(RecordingSignal.STOP)
    tool = "io.aeron.archive.ArchiveTool"
    verified = run_java(
        java, tool, archive_directory, "verify", "-a", "-checksum", f"org.agrona.checksum.{checksum}"
    )
    assert "(recordingId=0) OK" in verified
    assert "(recordingId=1) OK" in verified


def our_tool(directory: Path, *args: object, status: int = 0) -> str:
    """What our command says of a directory, on both streams."""
    command = [sys.executable, "-m", "headrace", "archive", *map(str, args), "-a", str(directory)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    said = finished.stdout + finished.stderr
    assert finished.returncode == status, (args, finished.returncode, said)
    return said


def test_our_tool_looks_after_the_directory_of_the_java_archive(java: JavaPeer, tmp_path: Path) -> None:
    """What changes files is refused while that archive runs; afterwards the reference's tool agrees with all of it."""
    directory = tmp_path / "java-archive"
    changes: list[tuple[object, ...]] = [
        ("mark-invalid", 0),
        ("compact", "-y"),
        ("delete-orphaned-segments", "-y"),
        ("checksum", "CRC-32", "--thorough"),
        ("capacity", 2_000_000),
    ]
    with (
        running_java_archive(java, directory) as aeron_directory,
        headrace.Client.connect(directory=aeron_directory) as client,
        Archive.connect(client) as archive,
    ):
        for stream_id in (1, 2, 3):
            with archive.add_recorded_publication(LIVE, stream_id) as publication:
                for message in MESSAGES:
                    publication.offer_blocking(message)
            archive.await_signal(RecordingSignal.STOP)
        archive.detach_segments(2, 128 * 1024)
        assert "stream_id" in our_tool(directory, "describe", 1)
        before = sorted(path.name for path in directory.iterdir())
        our_tool(directory, "mark-invalid", 0, status=1)
        assert sorted(path.name for path in directory.iterdir()) == before
    for change in changes:
        our_tool(directory, *change)
    left = {path.name for path in directory.iterdir()}
    assert not {name for name in left if name.startswith("0-")}
    assert "2-0.rec" not in left
    assert "2-131072.rec" in left
    assert our_tool(directory, "count").split()[-1] == "2"
    tool = "io.aeron.archive.ArchiveTool"
    checksum = "org.agrona.checksum.Crc32"
    verified = run_java(java, tool, directory, "verify", "-a", "-checksum", checksum)
    assert "(recordingId=1) OK" in verified
    assert "(recordingId=2) OK" in verified


def test_the_reference_s_tool_agrees_with_our_files_after_each_change(java: JavaPeer, tmp_path: Path) -> None:
    """After truncation, purge and retention, and after our tool's repair, with files of ours beside the recordings."""
    tool = "io.aeron.archive.ArchiveTool"
    directory = tmp_path / "files"
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=directory, segment_file_length=128 << 10
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        for stream_id in range(4):
            with archive.add_recorded_publication(
                LIVE, stream_id, retention=Retention(bytes=1 << 20) if stream_id == 3 else None
            ) as publication:
                for message in MESSAGES:
                    publication.offer_blocking(message)
            archive.await_signal(RecordingSignal.STOP)
        archive.detach_segments(0, 128 << 10)
        with archive.replay(1, stream_id=77) as replay:
            positions = [message.position for message in replay]
        archive.stop_all_replays()
        archive.truncate_recording(1, positions[100])
        archive.await_signal(RecordingSignal.DELETE)
        archive.purge_recording(2)
        archive.await_signal(RecordingSignal.DELETE)
        files.hold(directory, "reader", 3, 128 << 10)
    assert any(path.suffix == ".hold" for path in directory.iterdir())
    verified = run_java(java, tool, directory, "verify", "-a")
    for recording_id in (0, 1, 3):
        assert f"(recordingId={recording_id}) OK" in verified
    assert "(recordingId=2) skipping: DELETED" in verified
    our_tool(directory, "delete-orphaned-segments", "-y")
    our_tool(directory, "capacity", 3_000_000)
    our_tool(directory, "verify", "--repair")
    assert run_java(java, tool, directory, "verify", "-a").count(") OK") == 3
    with files.ArchiveDirectory(directory) as archive_files:
        assert all(finding.is_ok for finding in archive_files.verify(is_thorough=True))


def test_our_tool_and_the_reference_s_tool_on_one_directory(java: JavaPeer, tmp_path: Path) -> None:
    """Each agrees with what the other changed, on a directory of either archive."""
    tool = "io.aeron.archive.ArchiveTool"
    directory = tmp_path / "files"
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=directory, segment_file_length=128 << 10
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        for stream_id in (1, 2, 3):
            with archive.add_recorded_publication(LIVE, stream_id) as publication:
                for message in MESSAGES:
                    publication.offer_blocking(message)
            archive.await_signal(RecordingSignal.STOP)
    run_java(java, tool, directory, "mark-invalid", 0)
    assert files.mark_invalid(directory, 2)
    assert "|INVALID" in run_java(java, tool, directory, "describe-all")
    assert files.mark_valid(directory, 2)
    deletion = files.compact(directory)
    assert deletion.recording_ids == (0,)
    assert len(deletion.files) > 1
    assert run_java(java, tool, directory, "count-entries").split()[-1] == "2"
    verified = run_java(java, tool, directory, "verify", "-a")
    assert "(recordingId=1) OK" in verified
    assert "(recordingId=2) OK" in verified
    assert all(finding.is_ok for finding in files.write_checksums(directory, "CRC-32", is_thorough=True))
    verified = run_java(java, tool, directory, "verify", "-a", "-checksum", "org.agrona.checksum.Crc32")
    assert "(recordingId=2) OK" in verified
    run_java(java, tool, directory, "checksum", "org.agrona.checksum.Crc32c", "-a")
    with files.ArchiveDirectory(directory) as archive_files:
        findings = list(archive_files.verify(is_thorough=True, checksum="CRC-32C"))
    assert [(finding.recording_id, finding.is_ok) for finding in findings] == [(1, True), (2, True)]
    run_java(java, tool, directory, "mark-invalid", 1)
    run_java(java, tool, directory, "compact", answer="y\n")
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=directory) as archiving,
        archiving.connect_archive() as archive,
    ):
        assert [recording.recording_id for recording in archive.list_recordings()] == [2]
        with archive.replay(2) as replay:
            assert [message.payload for message in replay] == MESSAGES
