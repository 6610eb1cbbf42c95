"""The rows of a cluster of three members on this machine, without a fault: how late, how much, and who comes after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np

import headrace
from benches import members
from benches.cluster_node_rows import JAVA
from benches.figures import percentiles, rates, samples
from benches.members import Members
from benches.processes import headrace_driver, native, output
from benches.report import Measurement, Row
from benches.syncobj import answered_by_syncobj
from headrace.cluster import ClusterClient, ClusterMessage
from headrace.cluster.aio import AsyncClusterClient

EGRESS = "aeron:udp?endpoint=127.0.0.1:24990"
PACES = (1_000, 10_000)
SECONDS = 3
SESSIONS = 2
IN_FLIGHT = 10_000
WINDOWS = 4
WINDOW_MS = 1000
ROUNDS = 2
BEHIND = 256 << 20
BLOCK = bytes(1024)
PAYLOAD = bytes(92)
GATHERED = 256
READ_ROUNDS = 30
SIDES = {"ours": members.ours, "Java's": members.theirs}
CONFIGURATION = (
    "three members on this machine, each a process with an embedded driver in mode SHARED, archive and a service that "
    "sends each message back; ours: `headrace cluster node` with a service in Python; peer: ClusteredMediaDriver and "
    f"ClusteredServiceContainer in one JVM, its own driver, archive in mode SHARED; ingress and log {members.CHANNEL}; "
    "idle strategy of all agents backoff, the default of both; leader.heartbeat.timeout=10s for both, all other times "
    "the default of both; sync level 0; the client on our driver in a process of its own, in mode SHARED"
)
NATIVE = "100-byte messages of one native client, which yields between polls"

Side = Callable[[dict[str, str], int], AbstractContextManager[Members]]


@contextmanager
def _served(side: Side) -> Iterator[tuple[Path, str]]:
    """A cluster; gives the driver of its client, and the leader's channel."""
    with (
        side(members.PATIENT, members.USED) as cluster,
        headrace_driver("cluster-client", "SHARED") as directory,
    ):
        leader = cluster.await_ready()
        yield directory, f"aeron:udp?endpoint={leader.endpoints['ingress']}|term-length=16m"


def _paced(side: Side) -> dict[int, list[np.ndarray]]:
    """Durations in nanoseconds from when a message was to be sent until its answer came, of the sessions of a pace."""
    with _served(side) as (directory, ingress):
        return {
            rate: [
                samples(output(native("cluster-paced", directory, ingress, EGRESS, rate, rate * SECONDS)))
                for _ in range(SESSIONS)
            ]
            for rate in PACES
        }


def cluster_rtt() -> Row:
    """Round trips through a cluster of three at two paces."""
    runs = {name: _paced(side) for name, side in SIDES.items()}
    notes: dict[str, float | str] = {}
    for rate in PACES:
        points = {name: percentiles(np.concatenate(runs[name][rate])) for name in SIDES}
        for name, of in points.items():
            notes |= {f"{name} {point} at {rate:,} a second": value for point, value in of.items()}
        for point in ("p50 us", "p99 us"):
            theirs, own = float(points["Java's"][point]), float(points["ours"][point])
            notes[f"{point.split()[0]} at {rate:,} a second, x Java"] = theirs / own

    def worst(name: str) -> Measurement:
        return Measurement(
            observations=[float(np.percentile(run, 99)) / 1e3 for run in runs[name][PACES[-1]]]
        )

    return Row(
        name="cluster-rtt",
        unit=f"us (p99 at {PACES[-1]:,}/s)",
        ours=worst("ours"),
        peer_name=JAVA,
        peer=worst("Java's"),
        target=">= 2.0 x in p50, 1.0 x in p99 at both paces, see the notes",
        configuration=(
            f"{NATIVE}; {SECONDS} s at a pace, {SESSIONS} sessions; from the intended time of each message; "
            f"{CONFIGURATION}"
        ),
        higher_is_better=False,
        notes=notes,
    )


def _answered(side: Side) -> list[float]:
    with _served(side) as (directory, ingress):
        words = (directory, ingress, EGRESS, IN_FLIGHT, WINDOWS, WINDOW_MS)
        return list(rates(output(native("cluster-throughput", *words))).observations)


def cluster_throughput() -> Row:
    """Messages a second that a cluster of three commits and answers."""
    # Turn by turn, so that both meet the same machine.
    turns = [[_answered(side) for side in SIDES.values()] for _ in range(ROUNDS)]
    ours, theirs = (
        Measurement(observations=[rate for rates in side for rate in rates])
        for side in zip(*turns, strict=True)
    )
    syncobj = answered_by_syncobj()
    notes: dict[str, float | str] = {"etcd": "not measured"}
    if isinstance(syncobj, str):
        notes["pysyncobj"] = syncobj
    else:
        notes |= {"pysyncobj, msg/s": syncobj, "the same, x pysyncobj": ours.value / syncobj}
    return Row(
        name="cluster-throughput",
        unit="msg/s",
        ours=ours,
        peer_name=JAVA,
        peer=theirs,
        target=">= 1.0 x; 20 x pysyncobj",
        configuration=f"{NATIVE}; {IN_FLIGHT:,} messages unanswered at a time; {CONFIGURATION}",
        notes=notes,
    )


def _write(client: ClusterClient, length: int) -> None:
    """So many bytes of messages, each answered."""
    count, answered = length // len(BLOCK), 0

    def take(_: ClusterMessage) -> None:
        nonlocal answered
        answered += 1

    sent = 0
    while answered < count:
        if sent < count and client.offer(BLOCK) > 0:
            sent += 1
        elif client.poll(take, 256) == 0:
            time.sleep(0)


def _caught_up(side: Side) -> tuple[float, float]:
    """Seconds from the start of a follower that is so far behind until it has all; and from its first entry on."""
    with (
        side(members.PATIENT, members.USED) as cluster,
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
    ):
        leader = cluster.await_ready()
        follower = next(one for one in cluster.all if one is not leader)
        with ClusterClient.connect(
            driver=driver, ingress_endpoints=cluster.ingress, egress_channel=EGRESS
        ) as client:
            follower.stop()
            _write(client, BEHIND)
        wanted = leader.commit_position

        def has(position: int) -> bool:
            return follower.commit_position >= position

        start = time.perf_counter()
        follower.start()
        # It replays the little that it has before it asks for more.
        cluster.until(lambda: has(len(BLOCK) * 1024), "the follower's first entry")
        begin = time.perf_counter()
        cluster.until(lambda: has(wanted) and follower.is_ready, "the follower to have all")
        end = time.perf_counter()
        return end - start, end - begin


def cluster_catch_up() -> Row:
    """A follower that was stopped while the log grew."""
    runs = {name: _caught_up(side) for name, side in SIDES.items()}
    notes: dict[str, float | str] = {
        f"{name}, seconds from its first MiB on": run[1] for name, run in runs.items()
    }
    return Row(
        name="cluster-catch-up",
        unit="s",
        ours=Measurement(observations=[runs["ours"][0]]),
        peer_name=JAVA,
        peer=Measurement(observations=[runs["Java's"][0]]),
        target=">= 1.0 x",
        configuration=(
            f"a follower stopped, {BEHIND >> 20} MiB of 1 KiB messages committed, the follower started; from the start "
            f"of its process until its module has committed all of them, files in the page cache; {CONFIGURATION}"
        ),
        higher_is_better=False,
        notes=notes,
    )


async def _each_way(cluster: Members, directory: Path) -> tuple[list[float], list[float]]:
    """Reads, and commands, a second; in turns."""
    client = await AsyncClusterClient.connect(
        directory=directory, ingress_endpoints=cluster.ingress, egress_channel=EGRESS
    )
    async with client:

        async def read() -> None:
            await asyncio.gather(*(client.read(PAYLOAD) for _ in range(GATHERED)))

        async def command() -> None:
            for _ in range(GATHERED):
                await client.offer_async(PAYLOAD)
            for _ in range(GATHERED):
                await client.receive()

        turns = [[await _rate(each) for each in (read, command)] for _ in range(READ_ROUNDS)]
    # The first warm up.
    reads, commands = (list(side[2:]) for side in zip(*turns, strict=True))
    return reads, commands


async def _rate(step: Callable[[], Awaitable[None]]) -> float:
    start = time.perf_counter()
    await step()
    return GATHERED / (time.perf_counter() - start)


def cluster_read() -> Row:
    """Reads that enter no log, beside commands of the same client."""
    with members.ours(members.PATIENT) as cluster, headrace_driver("cluster-client", "SHARED") as directory:
        cluster.await_ready()
        reads, commands = asyncio.run(_each_way(cluster, directory))
    return Row(
        name="cluster-read",
        unit="reads/s",
        ours=Measurement(observations=reads),
        peer_name="commands of the same client",
        peer=Measurement(observations=commands),
        target=">= 3 x",
        configuration=(
            f"{GATHERED} calls of AsyncClusterClient.read gathered, {len(PAYLOAD)} bytes each and answered by the "
            f"leader, beside {GATHERED} commands sent and answered; {CONFIGURATION}"
        ),
    )
