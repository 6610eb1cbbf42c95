"""One run of a cluster of several members under random faults, of which each seed draws its own mix and strength."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from headrace.testing.cluster import ClusterFaults, ClusterWorld
from tests.sim.ledger import Ledger, Oracle
from tests.sim.ledgers import Commands, check_ledgers
from tests.sim.seeded import replayable

__all__ = ["FAULTS_S", "TIME_SCALE", "run"]

# Elections, restarts and time-outs take a quarter of their default time: so much more fits into a virtual second.
TIME_SCALE = 0.25
FAULTS_S = 20.0 * TIME_SCALE
_TEST_FILE = "test_cluster_swarm.py"
_PARTITIONS = ("partition", "isolation", "deafness", "one-way cut")
_CRASHES = (
    "kill",
    "kill of a part",
    "power cut",
    "kill of all",
    "power cut of all",
    "stop",
    "empty disks",
    "other settings",
)


def run(
    seed: int, member_count: int | None = None, faults_s: float = FAULTS_S, kinds: Iterable[str] = ()
) -> Counter[str]:
    """Run one seed.

    Args:
        seed: Decides everything.
        member_count: How many members; by default the seed decides.
        faults_s: For how long things go wrong, in virtual seconds.
        kinds: Only these kinds of faults; by default the seed decides.

    Returns:
        How many elections, crashes, partitions and commands there were, and virtual seconds.

    Raises:
        AssertionError: A rule was broken.
        WorldTimeoutError: There was no progress, though nothing hindered it.
    """
    chance = random.Random(f"{seed} swarm")
    oracle = Oracle()
    drawn_count = chance.choice((3, 3, 3, 5))
    with (
        ClusterWorld(
            lambda: Ledger(oracle),
            seed=seed,
            member_count=member_count or drawn_count,
            state_of=lambda ledger: ledger.digest,
            sync_level=chance.choice((0, 1, 1, 1, 2)),
            time_scale=TIME_SCALE,
            rest_s=TIME_SCALE * chance.choice((0.01, 0.02, 0.04, 0.04)),
            is_process_each=chance.random() < 0.3,
            leader_heartbeat_timeout_ns=round(TIME_SCALE * chance.choice((400_000_000, 1_000_000_000))),
            leader_heartbeat_interval_ns=round(TIME_SCALE * 100_000_000),
            election_timeout_ns=round(TIME_SCALE * chance.choice((200_000_000, 600_000_000))),
        ) as cluster,
        replayable(cluster.world, _TEST_FILE, cluster.notes),
    ):
        for name in ("caller0", "caller1"):
            cluster.add_client(Commands(name), rate=chance.choice((2.0, 10.0, 40.0)) / TIME_SCALE)
        faults = cluster.run_faults(faults_s, kinds)
        cluster.settle()
        check_ledgers(cluster)
        assert not oracle.faults, oracle.faults[0]
        return _counted(cluster, faults)


def _counted(cluster: ClusterWorld, faults: ClusterFaults) -> Counter[str]:
    counts = faults.counts
    return Counter(
        {
            "elections": cluster.rules.leader_count,
            "crashes": sum(counts[kind] for kind in _CRASHES),
            "partitions": sum(counts[kind] for kind in _PARTITIONS),
            "faults": counts.total(),
            "commands": sum(len(client.sent) for client in cluster.clients),
            "answers": sum(len(client.answers) for client in cluster.clients),
            "virtual seconds": round(cluster.world.now_s),
        }
    )
