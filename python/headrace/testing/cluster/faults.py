"""Faults at random: each seed draws its own mix of them, and how strong they are."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from headrace.cluster.member.states import Toggle
from headrace.testing.cluster.member import DISKS, PARTS
from headrace.testing.world import Link

if TYPE_CHECKING:
    from headrace.testing.cluster.member import ClusterMember
    from headrace.testing.cluster.world import ClusterWorld

__all__ = ["FAULT_KINDS", "ClusterFaults"]

_GOOD = Link()
_NEVER_S = float("inf")


class ClusterFaults:
    """What goes wrong in a cluster, and how often. Each fault is over after a while, before others or after them.

    Args:
        cluster: Where.
        kinds: Only these, of :data:`FAULT_KINDS`; without them about half of all.

    Attributes:
        counts: How often each kind has come.
    """

    def __init__(self, cluster: ClusterWorld, kinds: Iterable[str] = ()) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._chance = chance = random.Random(f"{self._world.seed} faults")
        self.counts: Counter[str] = Counter()
        wanted = tuple(kinds)
        self._weights = dict.fromkeys(wanted, 1.0)
        if not wanted:
            self._weights = {kind: chance.choice((0.0, 0.0, 0.2, 1.0, 1.0)) for kind in FAULT_KINDS}
        self._mean_s = chance.choice((0.1, 0.4, 1.0, 2.5)) * cluster.time_scale
        # How long a fault is there, at most, in time-outs of a leader.
        self._strength = chance.choice((0.5, 2.0, 6.0))
        self._repairs: list[tuple[float, int, Callable[[], object]]] = []
        self._repair_count = 0

    def run(self, duration_s: float) -> None:
        """Have things go wrong for so many virtual seconds; then stop, and leave what is wrong."""
        chance, world = self._chance, self._world
        end_s = world.now_s + duration_s
        next_s = world.now_s
        while world.now_s < end_s:
            repair_s = self._repairs[0][0] if self._repairs else _NEVER_S
            world.run_for(max(1e-6, min(next_s, repair_s, end_s) - world.now_s))
            if world.now_s >= repair_s:
                heapq.heappop(self._repairs)[2]()
            elif world.now_s >= next_s:
                next_s = world.now_s + chance.expovariate(1 / self._mean_s)
                self._act()

    def _act(self) -> None:
        (kind,) = self._chance.choices(tuple(self._weights), tuple(self._weights.values()))
        self.counts[kind] += 1
        self._cluster.note(f"fault: {kind}")
        FAULT_KINDS[kind](self)

    def _then(self, repair: Callable[[], object]) -> None:
        """Repair something after a while."""
        self._repair_count += 1
        at_s = self._world.now_s + self._chance.random() * self._strength * self._cluster.leader_timeout_s
        heapq.heappush(self._repairs, (at_s, self._repair_count, repair))

    # --- processes and machines ------------------------------------------------------------------------------------

    def _member(self) -> ClusterMember:
        """Any, and the leader more often than others."""
        leader = self._cluster.leader
        if leader is not None and self._chance.random() < 0.3:
            return leader
        return self._chance.choice(self._cluster.members)

    def _kill(self) -> None:
        member = self._member()
        if self._chance.random() < 0.5:
            member.crash()
        else:
            member.node.disk(self._chance.choice(DISKS)).kill_before(self._chance.randint(0, 40))

    def _kill_part(self) -> None:
        self._member().kill(self._chance.choice(PARTS))

    def _cut_power(self) -> None:
        """Without syncs the machine comes back with new disks: what is left of the old ones is not to be used."""
        if self._cluster.sync_level == 0:
            self._empty()
        else:
            self._member().cut_power()

    def _kill_all(self) -> None:
        for member in self._cluster.members:
            member.crash()

    def _cut_all_power(self) -> None:
        """Without syncs nothing is promised after that, so it is a kill of all."""
        for member in self._cluster.members:
            if self._cluster.sync_level == 0:
                member.crash()
            else:
                member.cut_power()

    def _stop(self) -> None:
        """In good order, as a supervisor does that updates the member."""
        member = self._member()
        member.stop()
        member.crash()

    def _pause(self) -> None:
        node = self._member().node
        if node.is_up and not node.is_paused:
            node.pause()
            self._then(node.resume)

    def _stall(self) -> None:
        timeout_s = self._strength * self._cluster.leader_timeout_s
        self._member().stall(self._chance.choice(PARTS), self._chance.random() * timeout_s)

    def _empty(self) -> None:
        """Not another before it has all again: what a member has voted for is gone with its disk."""
        cluster = self._cluster
        end = cluster.rules.committed_position
        if all(one.is_elected and one.commit_position >= end for one in cluster.members):
            self._member().empty()

    # --- network -----------------------------------------------------------------------------------------------------

    def _partition(self) -> None:
        nodes = [one.node for one in self._cluster.members]
        self._chance.shuffle(nodes)
        size = self._chance.randint(1, len(nodes) - 1)
        self._world.partition(nodes[:size], nodes[size:])
        self._then(self._world.heal)

    def _cut(self) -> None:
        left, right = self._chance.sample(list(self._world.nodes.values()), 2)
        left.cut(right)
        self._then(lambda: left.mend(right))

    def _isolate(self) -> None:
        self._cluster.isolate(self._member())
        self._then(self._world.heal)

    def _deafen(self) -> None:
        """A member that hears nobody, or that nobody hears."""
        one = self._member().node
        hears = self._chance.random() < 0.5
        for other in self._world.nodes.values():
            if other is not one:
                (one if hears else other).cut(other if hears else one)
        self._then(self._world.heal)

    def _spoil_links(self) -> None:
        chance = self._chance
        self._world.set_links(
            Link(
                loss=chance.choice((0.0, 0.02, 0.2)),
                duplicate=chance.choice((0.0, 0.05)),
                reorder=chance.choice((0.0, 0.1)),
                delay_s=chance.choice((20e-6, 1e-3, 20e-3)),
                jitter_s=chance.choice((30e-6, 3e-3, 50e-3)),
                bytes_per_second=chance.choice((None, None, 200_000)),
            )
        )
        self._then(lambda: self._world.set_links(_GOOD))

    # --- clocks and disks --------------------------------------------------------------------------------------------

    def _jump_clock(self) -> None:
        jump_s = self._chance.choice((0.1, 2.0, 20.0, -0.1, -2.0, -20.0))
        self._member().node.jump_clock(jump_s * self._cluster.time_scale)

    def _fail_disk(self) -> None:
        disk = self._member().node.disk(self._chance.choice(DISKS))
        kind = self._chance.choice(("read", "write", "sync", "create", "delete", "rename"))
        disk.fail(kind, after=self._chance.randint(0, 10), times=self._chance.choice((1, 20)))
        self._then(disk.mend)

    def _fill_disk(self) -> None:
        disk, space = self._member().node.disk(self._chance.choice(DISKS)), self._cluster.disk_space
        disk.space = self._chance.choice((0, 100_000))
        self._then(lambda: setattr(disk, "space", space))

    # --- clients and operators ---------------------------------------------------------------------------------------

    def _lose_client(self) -> None:
        if self._cluster.clients:
            client = self._chance.choice(self._cluster.clients)
            self._chance.choice((client.disconnect, client.crash))()

    def _slow_client(self) -> None:
        if self._cluster.clients:
            self._chance.choice(self._cluster.clients).sleep(
                self._chance.choice((0.05, 1.0, 7.0)) * self._cluster.time_scale
            )

    def _snapshot(self) -> None:
        self._cluster.request(Toggle.SNAPSHOT)

    def _suspend(self) -> None:
        self._cluster.request(Toggle.SUSPEND)
        self._then(lambda: self._cluster.request(Toggle.RESUME))

    def _transfer(self) -> None:
        """Have another member lead: any, or one that may be behind, or down."""
        successor = self._chance.choice((None, *self._cluster.members))
        self._cluster.request(Toggle.TRANSFER_LEADERSHIP, successor)

    def _change_settings(self) -> None:
        """A member ends in good order, and starts with other settings."""
        member, chance, timeout_ns = self._member(), self._chance, round(self._cluster.leader_timeout_s * 1e9)
        member.settings = {
            "leader_heartbeat_interval_ns": round(timeout_ns * chance.choice((0.05, 0.1, 0.3))),
            "election_timeout_ns": round(timeout_ns * chance.choice((0.3, 0.6, 1.2))),
            "election_status_interval_ns": round(timeout_ns * chance.choice((0.05, 0.1, 0.3))),
            "session_timeout_ns": round(timeout_ns * chance.choice((3, 5, 10))),
            "log_channel": f"aeron:udp?term-length=64k|mtu={chance.choice((1408, 4096))}",
        }
        member.stop()
        member.crash()

    def _shut_down(self) -> None:
        self._cluster.request(self._chance.choice((Toggle.SHUTDOWN, Toggle.ABORT)))


FAULT_KINDS: dict[str, Callable[[ClusterFaults], None]] = {
    "kill": ClusterFaults._kill,
    "kill of a part": ClusterFaults._kill_part,
    "power cut": ClusterFaults._cut_power,
    "kill of all": ClusterFaults._kill_all,
    "power cut of all": ClusterFaults._cut_all_power,
    "stop": ClusterFaults._stop,
    "pause": ClusterFaults._pause,
    "stall": ClusterFaults._stall,
    "empty disks": ClusterFaults._empty,
    "partition": ClusterFaults._partition,
    "one-way cut": ClusterFaults._cut,
    "isolation": ClusterFaults._isolate,
    "deafness": ClusterFaults._deafen,
    "bad links": ClusterFaults._spoil_links,
    "clock": ClusterFaults._jump_clock,
    "failing disk": ClusterFaults._fail_disk,
    "full disk": ClusterFaults._fill_disk,
    "lost client": ClusterFaults._lose_client,
    "slow client": ClusterFaults._slow_client,
    "snapshot": ClusterFaults._snapshot,
    "suspension": ClusterFaults._suspend,
    "shutdown": ClusterFaults._shut_down,
    "transfer": ClusterFaults._transfer,
    "other settings": ClusterFaults._change_settings,
}
"""All kinds of faults."""
