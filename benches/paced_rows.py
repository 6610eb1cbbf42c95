"""A slow stream: how late a message comes to a waiting receiver, and how much of a core all processes take."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benches.processes import background, headrace_driver, processor_s, python_peer
from benches.report import Measurement, Row

SAMPLES = 1000
RUNS = 3
# Where the CnC file has the process id of its driver.
DRIVER_PID = slice(40, 48)


@dataclass(frozen=True)
class Paced:
    """One run."""

    latencies_us: np.ndarray
    cores: float


def _measure(library: str, way: str, address: str, *others: int) -> Paced:
    """`others` are the processes that work for the two that send and receive."""
    with ExitStack() as running:
        pull = python_peer("paced.py", library, way, "pull", address, SAMPLES)
        receiver = running.enter_context(subprocess.Popen(pull, stdout=subprocess.PIPE, text=True))
        running.callback(receiver.kill)
        assert receiver.stdout is not None
        sender = running.enter_context(background(python_peer("paced.py", library, way, "push", address)))
        if receiver.stdout.readline() != "READY\n":
            raise RuntimeError(f"{library} receiver did not start")
        pids = [receiver.pid, sender.pid, *others]
        start, start_s = [processor_s(pid) for pid in pids], time.monotonic()
        # The first line comes when all have been received; the process's record stays until it is waited for.
        first = receiver.stdout.readline()
        used_s = sum(map(processor_s, pids)) - sum(start)
        elapsed_s = time.monotonic() - start_s
        lines = [first, *receiver.stdout]
    return Paced(np.array([int(line) for line in lines]) / 1e3, used_s / elapsed_s)


def _driver_pid(directory: Path) -> int:
    """Asked for before anything is measured.

    For two seconds after a program opened the CnC file, the conductor looks a thousand times a second whether it sends
    commands without ringing for them.
    """
    return int.from_bytes((directory / "cnc.dat").read_bytes()[DRIVER_PID], "little")


def _headrace(way: str = "receive") -> Paced:
    with headrace_driver("paced", "SHARED") as directory:
        return _measure("headrace", way, str(directory), _driver_pid(directory))


def _pyzmq(way: str = "receive") -> Paced:
    with tempfile.TemporaryDirectory() as directory:
        return _measure("pyzmq", way, f"ipc://{directory}/zmq")


def _pipe(way: str = "receive") -> Paced:
    """What the machine itself takes."""
    with tempfile.TemporaryDirectory() as directory:
        os.mkfifo(f"{directory}/pipe")
        return _measure("pipe", way, f"{directory}/pipe")


def _relayed_pipe() -> Paced:
    """What the machine itself takes when a third process stands between the two, as a driver does with UDP."""
    with tempfile.TemporaryDirectory() as directory:
        pipe = f"{directory}/pipe"
        os.mkfifo(pipe)
        os.mkfifo(f"{pipe}.first")
        with background(python_peer("paced.py", "pipe", "relayed", "relay", pipe)) as relay:
            return _measure("pipe", "relayed", pipe, relay.pid)


# Other ways of waiting, one run each.
OTHERS: dict[str, Callable[[], Paced]] = {
    "ours, async for,": lambda: _headrace("async"),
    "pyzmq, asyncio,": lambda: _pyzmq("async"),
    "bare pipe, asyncio reader,": lambda: _pipe("async"),
    "ours, receive over UDP,": lambda: _headrace("udp"),
    "two bare pipes in a row,": _relayed_pipe,
    "ours, offer_blocking until there is room,": lambda: _headrace("room"),
}


def _notes(name: str, runs: Sequence[Paced]) -> dict[str, float | str]:
    latencies_us = np.concatenate([run.latencies_us for run in runs])
    return {
        f"{name} p50 us": float(np.percentile(latencies_us, 50)),
        f"{name} p99 us": float(np.percentile(latencies_us, 99)),
        f"{name} % of a core": 100 * float(np.median([run.cores for run in runs])),
    }


def _medians(runs: Sequence[Paced]) -> Measurement:
    return Measurement(observations=[float(np.median(run.latencies_us)) for run in runs])


def paced_latency_python() -> Row:
    """A message every 3 ms to a receiver that waits in `receive`, against pyzmq's blocking `recv`."""
    measures: dict[str, Callable[[], Paced]] = {"ours": _headrace, "pyzmq": _pyzmq, "bare pipe": _pipe}
    # Turn by turn, so that all meet the same machine.
    turns = [{name: measure() for name, measure in measures.items()} for _ in range(RUNS)]
    runs = {name: [turn[name] for turn in turns] for name in measures}
    notes: dict[str, float | str] = {}
    for name in measures:
        notes |= _notes(name, runs[name])
    for name, measure in OTHERS.items():
        notes |= _notes(name, [measure()])
    return Row(
        name="paced-latency-python",
        unit="us (p50)",
        ours=_medians(runs["ours"]),
        peer_name="pyzmq PUSH/PULL over ipc, blocking",
        peer=_medians(runs["pyzmq"]),
        target="<= pyzmq in p50 and processor time",
        configuration=(
            "aeron:ipc, a message every 3 ms, offer_blocking and receive with the default idle strategy in two Python "
            "processes, driver process beside in SHARED mode with default settings; one way, by the monotonic clock; "
            "processor time of all processes together; the notes have a bare pipe between two Python processes at the "
            "same pace, which is what the machine itself takes, and other ways of waiting, one run each"
        ),
        higher_is_better=False,
        notes=notes,
    )
