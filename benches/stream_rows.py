"""Many slow streams beside each other."""

import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from benches.figures import percentiles
from benches.processes import headrace_driver, java_peer, native, processor_s
from benches.report import Measurement, Row
from headrace.cnc.cnc_file import CncFile

CHANNEL = "aeron:udp?endpoint=127.0.0.1:24969|term-length=64k"
MANY, FEW = 1000, 10
SAMPLES = 15_000
RUNS = 3
# Room for the counters of a thousand streams.
PROPERTIES = {"aeron.counters.buffer.length": str(4 << 20)}


class _Driver(Protocol):
    """Ours, or the reference's."""

    def __call__(
        self, name: str, threading_mode: str, properties: dict[str, str], /
    ) -> AbstractContextManager[Path]: ...


@dataclass(frozen=True)
class Turn:
    """One run."""

    latencies_ns: np.ndarray
    processor_us_a_message: float
    cores: float
    longest_cycle_ms: float
    resident_mib: float


def _longest_cycle_ms(directory: Path) -> float:
    with CncFile.open(directory) as cnc:
        return max(counter.value for counter in cnc.counters if "max cycle time" in counter.label) / 1e6


def _anonymous_mib(pid: int) -> float:
    """Resident memory that belongs to no file: logs and counters are not in it."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1024


def _turn(driver: _Driver, streams: int) -> Turn:
    with driver("streams", "SHARED", PROPERTIES) as directory:
        with CncFile.open(directory) as cnc:
            pid = cnc.header.pid
        command = native("streams", directory, CHANNEL, streams, SAMPLES)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as rig:
            assert rig.stdout is not None
            if rig.stdout.readline() != "READY\n":
                raise RuntimeError(f"not all of {streams} streams connected")
            used_s, start_s = processor_s(pid), time.monotonic()
            # The first line comes when all messages have been received.
            first = rig.stdout.readline()
            if not first:
                raise RuntimeError(f"one of {streams} streams lost its connection")
            used_s, elapsed_s = processor_s(pid) - used_s, time.monotonic() - start_s
            longest_ms, resident_mib = _longest_cycle_ms(directory), _anonymous_mib(pid)
            latencies_ns = np.array([int(line) for line in (first, *rig.stdout)])
    return Turn(
        latencies_ns, used_s * 1e6 / (len(latencies_ns) * 1.1), used_s / elapsed_s, longest_ms, resident_mib
    )


def _notes(name: str, turns: Iterable[Turn]) -> Iterator[tuple[str, float]]:
    turns = list(turns)
    of_latency = percentiles(np.concatenate([turn.latencies_ns for turn in turns]))
    yield from ((f"{name} {point}", value) for point, value in of_latency.items())
    yield (
        f"{name} driver's processor time a message, us",
        float(np.median([turn.processor_us_a_message for turn in turns])),
    )
    yield f"{name} driver's % of a core", 100 * float(np.median([turn.cores for turn in turns]))
    yield (
        f"{name} driver's longest duty cycle since its start, ms",
        max(turn.longest_cycle_ms for turn in turns),
    )
    yield f"{name} driver's own memory, MiB", max(turn.resident_mib for turn in turns)


def streams_1000() -> Row:
    """Latency and cost of a message among a thousand streams, against ten with as many messages."""
    # Turn by turn, so that all meet the same machine.
    turns = [(_turn(headrace_driver, MANY), _turn(headrace_driver, FEW)) for _ in range(RUNS)]
    sides = {
        f"{MANY} streams": [many for many, _ in turns],
        f"{FEW} streams": [few for _, few in turns],
    }

    notes: dict[str, float | str] = {
        key: value for name, turns in sides.items() for key, value in _notes(name, turns)
    }
    name = f"Java's driver, {MANY} streams"
    try:
        notes |= _notes(name, [_turn(java_peer().driver, MANY)])
    except RuntimeError as reason:
        notes[name] = str(reason)

    def medians(turns: Iterable[Turn]) -> Measurement:
        return Measurement(observations=[float(np.median(turn.latencies_ns)) / 1e3 for turn in turns])

    return Row(
        name="streams-1000",
        unit="us (p50)",
        ours=medians(sides[f"{MANY} streams"]),
        peer_name=f"ours, {FEW} streams",
        peer=medians(sides[f"{FEW} streams"]),
        target="stated; processor time a message flat",
        configuration=(
            f"{CHANNEL}, {MANY} streams of which each gets some three 32-byte messages a second, against {FEW} streams "
            "with as many messages together; one process with a publisher thread and a thread that polls every stream "
            "and backs off; one way, by one clock; driver process beside in SHARED mode; our client in every case"
        ),
        higher_is_better=False,
        notes=notes,
    )
