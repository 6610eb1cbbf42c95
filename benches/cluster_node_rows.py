"""The rows of a cluster of one member: a client's messages through ingress, log, archive and service, and back.

The same client, in a process of its own, plays against our node and the reference's. Both run on our driver.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from benches.figures import percentiles, rates, samples, thrice
from benches.processes import (
    background,
    fresh_directory,
    headrace_driver,
    java_peer,
    native,
    output,
    python_peer,
)
from benches.report import Measurement, Row
from benches.used_memory import used_directory

INGRESS = "aeron:ipc"
# Small enough for several to stay in the memory that a machine has used before.
STREAM = "aeron:ipc?term-length=16m"
ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0"
PACES = (1_000, 10_000)
SECONDS = 10
IN_FLIGHT = 10_000
WINDOWS = 6
WINDOW_MS = 1000
ROUNDS = 3
# More than a node writes in a run.
FILES = 4 << 30
JAVA = "Aeron's Java cluster"
CONFIGURATION = (
    "100-byte messages of one native client, which yields between polls, over IPC to a node of one member with a "
    f"service that sends each back; ingress, log and egress {STREAM}; ours: a ClusterNode in one process, its driver "
    "embedded, its service in Python; peer: Archive, ConsensusModule and ClusteredServiceContainer in one JVM, on the "
    "same driver in a process beside, archive in mode SHARED; the driver in mode SHARED with its defaults; idle "
    "strategy of all agents backoff, the default of both, which in ours a message to the node ends early; files on the "
    "file system of temporary files, in memory that has been used before, sync level 0"
)


@contextmanager
def _ours(name: str, service: str = "single") -> Iterator[Path]:
    """Our node; gives its driver's directory."""
    directory = fresh_directory(name)
    with (
        used_directory(FILES) as files,
        background(python_peer("cluster_peer.py", directory, files, INGRESS, STREAM, service), ready="READY"),
    ):
        yield directory


def _their_properties(driver: Path, files: Path) -> dict[str, str]:
    endpoints = ",".join(f"127.0.0.1:{port}" for port in _free_ports(5))
    return {
        "aeron.dir": str(driver),
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(files / "archive"),
        "aeron.archive.control.channel": f"aeron:udp?endpoint={endpoints.rpartition(',')[2]}",
        "aeron.archive.replication.channel": ANY_PORT,
        "aeron.cluster.dir": str(files / "cluster"),
        "aeron.cluster.member.id": "0",
        "aeron.cluster.members": f"0,{endpoints}",
        "aeron.cluster.ingress.channel": INGRESS,
        "aeron.cluster.log.channel": STREAM,
        "aeron.cluster.replication.channel": ANY_PORT,
    }


def _free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        bound = [sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(count)]
        for one in bound:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in bound]


@contextmanager
def _theirs(name: str) -> Iterator[Path]:
    java = java_peer()
    with (
        used_directory(FILES) as files,
        headrace_driver(f"java-{name}", "SHARED") as directory,
        background(java.command("EchoNode", properties=_their_properties(directory, files)), ready="READY"),
    ):
        yield directory


Node = Callable[[str], AbstractContextManager[Path]]


def _paced(node: Node, rate: int) -> list[np.ndarray]:
    """Durations in nanoseconds from when a message was to be sent until its answer came, of three sessions."""
    with node("cluster-paced") as directory:
        command = native("cluster-paced", directory, STREAM, STREAM, rate, rate * SECONDS)
        return thrice(lambda: samples(output(command)))


def cluster_rtt_one() -> Row:
    """Round trips through a cluster of one member at two paces."""
    runs = {
        (name, rate): _paced(node, rate)
        for rate in PACES
        for name, node in (("ours", _ours), ("Java's", _theirs))
    }
    notes: dict[str, float | str] = {}
    for rate in PACES:
        points = {name: percentiles(np.concatenate(runs[name, rate])) for name in ("ours", "Java's")}
        for name, of in points.items():
            notes |= {f"{name} {point} at {rate:,} a second": value for point, value in of.items()}
        for point in ("p50 us", "p99 us"):
            theirs, own = float(points["Java's"][point]), float(points["ours"][point])
            notes[f"{point.split()[0]} at {rate:,} a second, x Java"] = theirs / own

    def worst(name: str) -> Measurement:
        return Measurement(
            observations=[float(np.percentile(run, 99)) / 1e3 for run in runs[name, PACES[-1]]]
        )

    return Row(
        name="cluster-rtt-one",
        unit=f"us (p99 at {PACES[-1]:,}/s)",
        ours=worst("ours"),
        peer_name=JAVA,
        peer=worst("Java's"),
        target=">= 1.0 x in p50 and p99 at both paces, see the notes",
        configuration=f"{CONFIGURATION}; {SECONDS} s at a pace, three sessions; from the intended time of each message",
        higher_is_better=False,
        notes=notes,
    )


def _answered(node: Node) -> list[float]:
    with node("cluster-throughput") as directory:
        command = native("cluster-throughput", directory, STREAM, STREAM, IN_FLIGHT, WINDOWS, WINDOW_MS)
        return [float(rate) for rate in rates(output(command)).observations]


def cluster_throughput_one() -> Row:
    """Messages a second that a cluster of one member commits and answers."""
    # Turn by turn, so that all meet the same machine.
    nodes = (_ours, _theirs, partial(_ours, service="batches"))
    turns = [[_answered(node) for node in nodes] for _ in range(ROUNDS)]
    ours, theirs, batches = (
        Measurement(observations=[rate for rates in side for rate in rates])
        for side in zip(*turns, strict=True)
    )
    return Row(
        name="cluster-throughput-one",
        unit="msg/s",
        ours=ours,
        peer_name=JAVA,
        peer=theirs,
        target=">= 1.0 x",
        configuration=(
            f"{CONFIGURATION}; {IN_FLIGHT:,} messages unanswered at a time; a handler for each message, and in the "
            "notes one of ours that takes and answers batches"
        ),
        notes={
            "ours in batches, msg/s": batches.value,
            "the same, x Java": batches.value / theirs.value,
        },
    )
