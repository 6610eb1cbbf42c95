"""The rows of the archive: recording, replaying, the latency of a recorded stream, memory.

The same publisher and subscriber, in a process of their own, play against our archive and the reference's.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benches.figures import rates
from benches.processes import background, fresh_directory, java_peer, native, output, python_peer
from benches.report import Measurement, Row
from benches.used_memory import dd_command, used_directory
from headrace import Archive, HeadraceError
from headrace.archive import RecordingSignal
from headrace.archive.protocol.counters import MAX_CYCLE_TIME

ROUNDS = 5
RECORDED = 2 << 30
REPLAYED = 1 << 30
RECOVERED = 1 << 30
MEMORY_RECORDED = 10_000_000_000
LATENCY_ROUNDS = 15
LATENCY_SAMPLES = 20_000
SMALL, LARGE = 32, 1024
IPC = "aeron:ipc"
LONG_TERMS = "aeron:ipc?term-length=1g"
UDP = "aeron:udp?endpoint=127.0.0.1:24992"
MANY = 200
MANY_REPLAYS = 50
MANY_CHANNEL = "aeron:ipc?term-length=1m"
MANY_WINDOWS = (6, 1.0)
STREAM_ID = 1005
REPLAY_STREAM_ID = 1006
THEIR_CONTROL = "aeron:udp?endpoint=127.0.0.1:24991"
SOURCE_CONTROL = "aeron:udp?endpoint=127.0.0.1:24992"
STANDBY_CONTROL = "aeron:udp?endpoint=127.0.0.1:24993"
ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0"
SAMPLE_INTERVAL_S = 0.05
STOP_TIMEOUT_S = 10.0
JAVA = "Aeron's Java archive"
BESIDE = (
    "driver and archive in one process, both in SHARED mode with their default idle strategies, segment files of 128 "
    "MiB on the file system of temporary files, sync level 0"
)


@dataclass(frozen=True)
class Running:
    """A driver with an archive, and a session with it."""

    process: subprocess.Popen[str]
    directory: Path
    archive: Archive


@dataclass(frozen=True)
class Recording:
    """A recording, and how fast it was made."""

    recording_id: int
    end: int
    messages: int
    duration_s: float


@contextmanager
def _files() -> Iterator[Path]:
    """A directory for an archive, where no peer has an advantage."""
    with used_directory(RECORDED) as base:
        yield base / "archive"


@contextmanager
def our_archive(control: str | None = None) -> Iterator[Running]:
    """Our archive; with a control channel if another archive is to reach it."""
    directory = fresh_directory("archive-source" if control == SOURCE_CONTROL else "archive")
    with (
        _files() as files,
        background(
            python_peer("archive_peer.py", directory, files, *([] if control is None else [control])),
            ready="READY",
        ) as process,
        Archive.connect(directory=directory) as archive,
    ):
        yield Running(process, directory, archive)


def _their_properties(directory: Path, files: Path, control: str = THEIR_CONTROL) -> dict[str, str]:
    return {
        "aeron.dir": str(directory),
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(files),
        "aeron.archive.max.concurrent.recordings": "256",
        "aeron.archive.control.channel": control,
        "aeron.archive.replication.channel": ANY_PORT,
    }


@contextmanager
def _theirs(control: str = THEIR_CONTROL) -> Iterator[Running]:
    directory = fresh_directory("java-archive" if control == THEIR_CONTROL else "java-archive-source")
    with _files() as files:
        properties = _their_properties(directory, files, control)
        command = java_peer().command("io.aeron.archive.ArchivingMediaDriver", properties=properties)
        with (
            background(command, ready=files / "archive-mark.dat") as process,
            Archive.connect(directory=directory) as archive,
        ):
            yield Running(process, directory, archive)


@contextmanager
def _recorded(running: Running, channel: str) -> Iterator[None]:
    subscription = running.archive.start_recording(channel, STREAM_ID)
    try:
        yield
    finally:
        running.archive.stop_recording_subscription(subscription)


def _record(running: Running, length: int, byte_count: int) -> Recording:
    with _recorded(running, IPC):
        command = native("record", running.directory, IPC, STREAM_ID, length, byte_count)
        recording = _recording(output(command))
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while running.archive.stop_position(recording.recording_id) != recording.end:
        if time.monotonic() > deadline:
            raise RuntimeError(f"recording {recording.recording_id} did not stop at {recording.end}")
        time.sleep(0.01)
    return recording


def _recording(lines: list[str]) -> Recording:
    messages, duration_ns, recording_id, end = map(int, lines[-1].split())
    return Recording(recording_id, end, messages, duration_ns / 1e9)


def _unrecorded_rate(running: Running) -> float:
    """Messages a second of a stream that no archive records; the first window warms up."""
    command = native("throughput", running.directory, IPC, SMALL, SMALL, 2, 1000)
    count, duration_ns = map(int, output(command)[-1].split())
    return count * 1e9 / duration_ns


def archive_record_small() -> Row:
    """Recording a stream of 32-byte messages, against the stream alone and the reference's archive."""
    unrecorded, ours, theirs = [], [], []
    for _ in range(ROUNDS):
        with our_archive() as running:
            unrecorded.append(_unrecorded_rate(running))
            recording = _record(running, SMALL, RECORDED)
            ours.append(recording.messages / recording.duration_s)
        with _theirs() as running:
            recording = _record(running, SMALL, RECORDED)
            theirs.append(recording.messages / recording.duration_s)
    alone, recorded = Measurement(observations=unrecorded), Measurement(observations=ours)
    return Row(
        name="archive-record-small",
        unit="msg/s",
        ours=recorded,
        peer_name=JAVA,
        peer=Measurement(observations=theirs),
        target=">= 1.0 x; >= 0.7 of unrecorded",
        configuration=(
            f"{IPC}, {SMALL} byte messages until {RECORDED >> 30} GiB of stream are recorded, from the first offer to "
            "the recorded position at the end; the archive is the only subscriber; unrecorded: a subscriber thread "
            f"in its place; {BESIDE}"
        ),
        notes={
            "unrecorded, msg/s": alone.value,
            "unrecorded spread": f"{min(unrecorded) / 1e6:.1f} M .. {max(unrecorded) / 1e6:.1f} M",
            "recorded / unrecorded": recorded.value / alone.value,
        },
    )


def _dd() -> float:
    """Bytes a second that `dd` writes in blocks of 1 MiB."""
    with _files() as files:
        start = time.perf_counter()
        subprocess.run(dd_command(files, RECORDED), check=True)
        return RECORDED / (time.perf_counter() - start)


def archive_record_bytes() -> Row:
    """Recording 1 KiB messages, against `dd`."""
    ours, dd = [], []
    for _ in range(ROUNDS):
        dd.append(_dd())
        with our_archive() as running:
            recording = _record(running, LARGE, RECORDED)
            ours.append(recording.end / recording.duration_s)
    return Row(
        name="archive-record-bytes",
        unit="B/s",
        ours=Measurement(observations=ours),
        peer_name="dd bs=1M to the same file system",
        peer=Measurement(observations=dd),
        target=">= 0.75 x",
        configuration=(
            f"{IPC}, {LARGE} byte messages until {RECORDED >> 30} GiB of stream are recorded, bytes as written; dd "
            f"from /dev/zero, as long, without syncing; {BESIDE}"
        ),
    )


def _replay_rate(running: Running, recording: Recording) -> float:
    receiver = native("receive", running.directory, IPC, REPLAY_STREAM_ID, recording.end)
    with background(receiver, ready="READY") as process:
        running.archive.start_replay(recording.recording_id, IPC, REPLAY_STREAM_ID, length=recording.end)
        process.wait(timeout=60)
        assert process.stdout is not None
        count, duration_ns = map(int, process.stdout.readline().split())
    return count * 1e9 / duration_ns


def archive_replay() -> Row:
    """Replaying a finished recording to a subscriber on the same machine, against the reference's archive."""
    rates: dict[tuple[str, int], list[float]] = {}
    sides: dict[str, Callable[[], AbstractContextManager[Running]]] = {"ours": our_archive, "theirs": _theirs}
    for _ in range(ROUNDS):
        for side, start in sides.items():
            with start() as running:
                for length in (SMALL, LARGE):
                    recording = _record(running, length, REPLAYED)
                    rates.setdefault((side, length), []).append(_replay_rate(running, recording))
    large = {side: Measurement(observations=rates[side, LARGE]) for side in sides}
    return Row(
        name="archive-replay",
        unit="msg/s",
        ours=Measurement(observations=rates["ours", SMALL]),
        peer_name=JAVA,
        peer=Measurement(observations=rates["theirs", SMALL]),
        target=">= 1.0 x",
        configuration=(
            f"a recording of {SMALL} byte messages, {REPLAYED >> 30} GiB of stream and just made, to a native "
            f"subscriber on {IPC}, from its first message to its last; {BESIDE}"
        ),
        notes={
            f"ours with {LARGE} byte messages, msg/s": large["ours"].value,
            f"peer with {LARGE} byte messages, msg/s": large["theirs"].value,
            f"ratio with {LARGE} byte messages": large["ours"].value / large["theirs"].value,
        },
    )


def _copy_rate(source: Running, control: str, standby: Running) -> float:
    """Bytes a second, from the request until the copy is as long as the recording."""
    recording = _record(source, LARGE, REPLAYED)
    start = time.perf_counter()
    replication = standby.archive.replicate(recording.recording_id, control)
    replication.wait_for(RecordingSignal.SYNC, timeout_s=120)
    duration_s = time.perf_counter() - start
    assert replication.wait(timeout_s=60) == recording.end
    return recording.end / duration_s


def archive_replicate() -> Row:
    """Copying a finished recording to a second archive on the same machine, against two of the reference's archives."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        with our_archive(SOURCE_CONTROL) as source, our_archive(STANDBY_CONTROL) as standby:
            ours.append(_copy_rate(source, SOURCE_CONTROL, standby))
        with _theirs(SOURCE_CONTROL) as source, _theirs() as standby:
            theirs.append(_copy_rate(source, SOURCE_CONTROL, standby))
    return Row(
        name="archive-replicate",
        unit="B/s",
        ours=Measurement(observations=ours),
        peer_name="two of Aeron's Java archives",
        peer=Measurement(observations=theirs),
        target=">= 1.0 x",
        configuration=(
            f"a recording of {LARGE} byte messages, {REPLAYED >> 30} GiB of stream and just made, from the request to "
            f"the signal SYNC, over UDP on loopback with the MTU of the recording; each archive: {BESIDE}"
        ),
    )


def _latencies(running: Running) -> np.ndarray:
    lines = output(native("latency", running.directory, UDP, STREAM_ID, LATENCY_SAMPLES))
    return np.array([int(line) for line in lines], dtype=np.int64)


def archive_live_latency() -> Row:
    """What a spy that records adds to the latency of a live stream."""
    alone, recorded = [], []
    with our_archive() as running:
        for _ in range(LATENCY_ROUNDS):
            alone.append(_latencies(running))
            with _recorded(running, UDP):
                recorded.append(_latencies(running))
        assert len(running.archive.list_recordings()) == LATENCY_ROUNDS, "each stream was recorded"
    p99 = [
        Measurement(observations=[float(np.percentile(run, 99)) / 1e3 for run in runs])
        for runs in (recorded, alone)
    ]
    points = (50, 90, 99, 99.9)
    together = {"recorded": np.concatenate(recorded), "unrecorded": np.concatenate(alone)}
    return Row(
        name="archive-live-latency",
        unit="us (p99)",
        ours=p99[0],
        peer_name="the stream unrecorded",
        peer=p99[1],
        target="p99 <= 1.3 x (ratio >= 0.77)",
        configuration=(
            f"{UDP}, 32 byte messages, about 10,000 a second, publisher and subscriber thread in one process, recorded "
            f"by a spy on the publication; {BESIDE}"
        ),
        higher_is_better=False,
        notes={
            f"{name} p{point:g} us": float(np.percentile(runs, point)) / 1e3
            for name, runs in together.items()
            for point in points
        },
    )


def _resident_mib(process_id: int) -> tuple[float, float]:
    """All resident memory, and the part that belongs to no file."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{process_id}/status").read_text().splitlines())
    return tuple(int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))


def archive_memory() -> Row:
    """Memory of driver and archive while 10 GB are recorded."""
    samples = []
    with our_archive() as running, _recorded(running, IPC):
        command = native("record", running.directory, IPC, STREAM_ID, LARGE, MEMORY_RECORDED)
        with background(command) as publisher:
            while publisher.poll() is None:
                samples.append(_resident_mib(running.process.pid))
                time.sleep(SAMPLE_INTERVAL_S)
            assert publisher.stdout is not None
            recording = _recording(publisher.stdout.readlines())
    warm = samples[len(samples) // 10 :]
    quarter = len(warm) // 4
    return Row(
        name="archive-memory",
        unit="MiB",
        ours=Measurement(observations=[own for _, own in warm]),
        peer_name="none",
        peer=None,
        target="flat",
        configuration=(
            f"{recording.end / 1e9:.1f} GB of {IPC} recorded in {recording.duration_s:.1f} s, {LARGE} byte messages; "
            f"resident memory without mapped files, which are term buffers, after the first tenth of the time; {BESIDE}"
        ),
        higher_is_better=False,
        notes={
            "first quarter, MiB": float(np.median([own for _, own in warm[:quarter]])),
            "last quarter, MiB": float(np.median([own for _, own in warm[-quarter:]])),
            "with mapped files, first quarter, MiB": float(np.median([total for total, _ in warm[:quarter]])),
            "with mapped files, last quarter, MiB": float(np.median([total for total, _ in warm[-quarter:]])),
        },
    )


def _kill_while_it_records(files: Path) -> None:
    """Fills almost one segment file with small messages, and kills the archive while their publisher lives."""
    directory = fresh_directory("recovery")
    full = RECOVERED - (1 << 20)
    block = [b"x" * SMALL] * 1_000
    with (
        background(python_peer("archive_peer.py", directory, files), ready="READY") as process,
        Archive.connect(directory=directory) as archive,
    ):
        publication = archive.add_recorded_publication(LONG_TERMS, STREAM_ID)
        while (publication.position or 0) < full:
            publication.offer_batch(block)
        recording_id = archive.list_recordings()[-1].recording_id
        while (archive.recording_position(recording_id) or 0) < full:
            time.sleep(0.01)
        process.kill()
        process.wait()
    shutil.rmtree(directory)


def _start_s(command: Callable[[Path, Path], list[str]], unclean: Path | None) -> float:
    """Seconds from the start of a program until its archive serves a client, on a copy of files or on none."""
    directory = fresh_directory("recovery")
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as base:
        files = Path(base) / "archive"
        if unclean is not None:
            # Without the mark file, in which Aeron's archive would look for one that runs.
            shutil.copytree(unclean, files, ignore=shutil.ignore_patterns("archive-mark.dat"))
        start = time.perf_counter()
        with background(command(directory, files)):
            while True:
                try:
                    Archive.connect(directory=directory, message_timeout_s=STOP_TIMEOUT_S).close()
                except HeadraceError:
                    time.sleep(0.002)
                else:
                    return time.perf_counter() - start


def archive_recovery() -> Row:
    """Starting on a segment file whose recording was cut short by a kill."""

    def their_command(directory: Path, files: Path) -> list[str]:
        return java_peer().command(
            "io.aeron.archive.ArchivingMediaDriver", properties=_their_properties(directory, files)
        )

    def our_command(directory: Path, files: Path) -> list[str]:
        return python_peer("archive_peer.py", directory, files)

    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as base:
        unclean = Path(base) / "unclean"
        _kill_while_it_records(unclean)
        recovery = {}
        for name, command in (("ours", our_command), ("theirs", their_command)):
            without = sorted(_start_s(command, None) for _ in range(ROUNDS))[ROUNDS // 2]
            recovery[name] = [1e3 * (_start_s(command, unclean) - without) for _ in range(ROUNDS)]
    return Row(
        name="archive-recovery",
        unit="ms",
        ours=Measurement(observations=recovery["ours"]),
        peer_name=JAVA,
        peer=Measurement(observations=recovery["theirs"]),
        target=">= 1.0 x",
        configuration=(
            f"one segment file of 1 GiB, full of {SMALL} byte messages, whose archive was killed; how much later an "
            "archive serves its first client than one that starts without files"
        ),
        higher_is_better=False,
    )


def _many(running: Running) -> tuple[Measurement, float]:
    """Messages a second of all streams together, and the archive's longest turn in milliseconds."""
    publisher = python_peer(
        "many_peer.py", running.directory, MANY_CHANNEL, STREAM_ID, MANY, 0, *MANY_WINDOWS
    )
    measured = rates(output(publisher))
    longest = max(one.value for one in running.archive.client.counters if one.type_id == MAX_CYCLE_TIME)
    return measured, longest / 1e6


def _turns_ms() -> list[float]:
    """Percentiles of our archive's turns while it records many streams and replays some of them."""
    directory = fresh_directory("archive")
    with (
        _files() as files,
        background(python_peer("turns_peer.py", directory, files), ready="READY") as process,
    ):
        output(
            python_peer("many_peer.py", directory, MANY_CHANNEL, STREAM_ID, MANY, MANY_REPLAYS, *MANY_WINDOWS)
        )
        process.terminate()
        assert process.stdout is not None
        return [int(value) / 1e6 for value in process.stdout.readline().split()]


def archive_many() -> Row:
    """Many streams recorded at once."""
    with our_archive() as running:
        own, longest = _many(running)
    with _theirs() as running:
        theirs, their_longest = _many(running)
    turns = zip(("p50", "p99", "p99.9", "longest"), _turns_ms(), strict=True)
    return Row(
        name="archive-many",
        unit="msg/s",
        ours=own,
        peer_name=JAVA,
        peer=theirs,
        target=">= 1.0 x",
        configuration=(
            f"{MANY} streams of {SMALL} byte messages over {MANY_CHANNEL}, a Python publisher that offers 64 to one "
            f"after the other, all recorded, counted by the recorded positions; {BESIDE}; turns: in another run, of an "
            f"archive that a program steps, with {MANY_REPLAYS} of the recordings replayed to the publisher's program"
        ),
        notes={
            "longest turn, ms": longest,
            "Java's longest turn, ms": their_longest,
            **{f"turns that did work, {name} ms": value for name, value in turns},
        },
    )
