"""The row of the pause that a client sees while a cluster of three takes a snapshot of a large state."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from benches import members
from benches.cluster_node_rows import JAVA
from benches.members import Member
from benches.processes import headrace_driver
from benches.report import Measurement, Row
from headrace.cluster import ClusterClient
from headrace.cluster.node.running_member import Command, RunningMember, Toggle

STATE_MIB = int(os.environ.get("HEADRACE_STATE_MIB", "1024"))
RATE = 500
BEFORE_S, AFTER_S = 2.0, 2.0
_WAIT_S = 300.0
_SNAPSHOT_CHANNEL = {"aeron.cluster.snapshot.channel": "aeron:ipc?alias=snapshot|term-length=16m"}


def _our_command(member: Member, settings: Mapping[str, str]) -> list[str]:
    os.environ["HEADRACE_STATE_MIB"] = str(STATE_MIB)
    return members.our_command(member, settings, service="benches.peers.echoing:Large")


def _their_command(member: Member, settings: Mapping[str, str]) -> list[str]:
    return members.their_command(member, {**settings, "headrace.state.mib": str(STATE_MIB)})


def _toggled(leader: Member) -> None:
    """A snapshot of all members, until the leader has taken it."""
    running = RunningMember(leader.place / "cluster")
    running.check_can(Toggle.SNAPSHOT, 5.0)
    before = running.status().snapshots or 0
    running.ask(Toggle.SNAPSHOT, wait_s=_WAIT_S)
    assert (running.status().snapshots or 0) > before, "it is taken"


def _on_follower(leader: Member) -> None:
    """A snapshot of one follower, until the leader has copied it."""
    RunningMember(leader.place / "cluster").command(Command.SNAPSHOT_ON_FOLLOWER, -1, "", _WAIT_S)


class _Paced:
    """A client that sends at a pace, and notes when each answer came after the time at which its message was due."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._due_ns: list[int] = []
        self.took_ns: list[tuple[int, int]] = []

    def run(self, is_over: Callable[[], bool]) -> None:
        """Send and receive until it is over, and all is answered."""
        interval_ns = 1_000_000_000 // RATE
        due_ns = time.monotonic_ns()
        while True:
            now_ns = time.monotonic_ns()
            ends = is_over()
            if ends and len(self.took_ns) == len(self._due_ns):
                return
            if (
                not ends
                and now_ns >= due_ns
                and self._cluster.offer(len(self._due_ns).to_bytes(8, "little") + bytes(92)) > 0
            ):
                self._due_ns.append(due_ns)
                due_ns += interval_ns
                continue
            if not self._take():
                time.sleep(0.0001)

    def _take(self) -> int:
        return self._cluster.poll(self._note, 64)

    def _note(self, message: object) -> None:
        number = int.from_bytes(message.payload[:8], "little")  # type: ignore[attr-defined]
        due_ns = self._due_ns[number]
        self.took_ns.append((due_ns, time.monotonic_ns() - due_ns))


def _latencies(
    command: Callable[[Member, Mapping[str, str]], list[str]], take: Callable[[Member], None]
) -> dict[str, float]:
    """What a client sees before and while a snapshot is taken, in milliseconds."""
    with _served(command) as (cluster, leader):
        paced = _Paced(cluster)
        begin_ns = end_ns = 0
        failures: list[BaseException] = []

        def snapshot() -> None:
            nonlocal begin_ns, end_ns
            time.sleep(BEFORE_S)
            begin_ns = time.monotonic_ns()
            try:
                take(leader)
            except BaseException as failure:
                failures.append(failure)
            end_ns = time.monotonic_ns()
            time.sleep(AFTER_S)

        taking = threading.Thread(target=snapshot)
        taking.start()
        paced.run(lambda: not taking.is_alive())
        taking.join()
        if failures:
            raise failures[0]
        took = np.array(paced.took_ns, dtype=np.int64)
        before = took[took[:, 0] < begin_ns][:, 1] / 1e6
        during = took[(took[:, 0] >= begin_ns) & (took[:, 0] <= end_ns)][:, 1] / 1e6
        return {
            "snapshot takes s": (end_ns - begin_ns) / 1e9,
            "before p50 ms": float(np.percentile(before, 50)),
            "before worst ms": float(before.max()),
            "during p50 ms": float(np.percentile(during, 50)),
            "during p99 ms": float(np.percentile(during, 99)),
            "during worst ms": float(during.max()),
        }


@contextmanager
def _served(
    command: Callable[[Member, Mapping[str, str]], list[str]],
) -> Iterator[tuple[ClusterClient, Member]]:
    with (
        members.cluster(command, {**members.PATIENT, **_SNAPSHOT_CHANNEL}, members.USED) as served,
        headrace_driver("cluster-client", "SHARED") as directory,
    ):
        leader = served.await_ready()
        with ClusterClient.connect(
            directory=directory,
            ingress_endpoints=served.ingress,
            ingress_channel=members.CHANNEL,
            message_timeout_ns=60_000_000_000,
        ) as cluster:
            yield cluster, leader


def cluster_snapshot() -> Row:
    """The worst answer while a snapshot is taken: on a follower, on all members, and on all members of Java's."""
    sides = {
        "ours on a follower": (_our_command, _on_follower),
        "ours on all": (_our_command, _toggled),
        "Java's on all": (_their_command, _toggled),
    }
    found = {name: _latencies(*side) for name, side in sides.items()}
    worst = "during worst ms"
    return Row(
        name="cluster-snapshot",
        unit="ms (worst answer)",
        ours=Measurement(observations=[found["ours on a follower"][worst]]),
        peer_name=JAVA,
        peer=Measurement(observations=[found["Java's on all"][worst]]),
        target="none: the pause of an ordinary snapshot, and of one that a follower takes",
        configuration=(
            f"three members on this machine, as in cluster-rtt; a state of {STATE_MIB} MiB; 100-byte "
            f"messages of one client in Python at {RATE:,} a second, timed from when each was due"
        ),
        higher_is_better=False,
        notes={f"{name} {key}": value for name, of in found.items() for key, value in of.items()},
    )


def main() -> None:
    """Measure, and print the figures."""
    row = cluster_snapshot()
    for key, value in row.notes.items():
        print(f"{key}: {value}")


if __name__ == "__main__":
    main()
