"""Clusters of several members under random faults.

`make simulate SECONDS=60` runs new seeds, `make simulate-cluster SEEDS=0:1000` many of them with totals;
`HEADRACE_SEED` repeats one.
"""

from __future__ import annotations

import pytest

from tests.sim.seeded import SECONDS, run_new_seeds
from tests.sim.swarm import FAULTS_S, run

pytestmark = pytest.mark.sim


@pytest.mark.parametrize("seed", range(6))
def test_a_cluster_survives_its_faults(seed: int) -> None:
    run(seed, faults_s=FAULTS_S / 2)


@pytest.mark.skipif(not SECONDS, reason="new seeds are for `make simulate`")
def test_new_seeds() -> None:
    run_new_seeds(run, "clusters of several")
