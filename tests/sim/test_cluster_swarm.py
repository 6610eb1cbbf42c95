"""Clusters of several members under random faults, of which each seed draws its own mix and strength.

`make simulate SECONDS=60` runs new seeds; `HEADRACE_SEED` repeats one.
"""

from __future__ import annotations

import random

import pytest

from headrace.testing.cluster import ClusterWorld
from tests.sim.ledger import Ledger, Oracle
from tests.sim.ledgers import Commands, check_ledgers
from tests.sim.seeded import SECONDS, replayable, run_new_seeds

pytestmark = pytest.mark.sim

SEEDS = range(6)


def run(seed: int, faults_s: float = 20.0) -> None:
    chance = random.Random(f"{seed} swarm")
    oracle = Oracle()
    with (
        ClusterWorld(
            lambda: Ledger(oracle),
            seed=seed,
            member_count=chance.choice((3, 3, 3, 5)),
            state_of=lambda ledger: ledger.digest,
            sync_level=chance.choice((0, 1, 1, 1, 2)),
            rest_s=chance.choice((0.001, 0.01, 0.01, 0.02)),
            is_process_each=chance.random() < 0.3,
            leader_heartbeat_timeout_ns=chance.choice((400_000_000, 1_000_000_000)),
            leader_heartbeat_interval_ns=100_000_000,
            election_timeout_ns=chance.choice((200_000_000, 600_000_000)),
        ) as cluster,
        replayable(cluster.world, __file__, cluster.notes),
    ):
        for name in ("caller0", "caller1"):
            cluster.add_client(Commands(name), rate=chance.choice((2.0, 10.0, 40.0)))
        cluster.run_faults(faults_s)
        cluster.settle()
        check_ledgers(cluster)
        assert not oracle.faults, oracle.faults[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cluster_survives_its_faults(seed: int) -> None:
    run(seed, 8.0)


@pytest.mark.skipif(not SECONDS, reason="new seeds are for `make simulate`")
def test_new_seeds() -> None:
    run_new_seeds(run, "clusters of several")
