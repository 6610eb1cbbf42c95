"""Random actions on a cluster of one, its disks, its network and its clients: the seed decides them all.

`make simulate SECONDS=60` runs new seeds; `HEADRACE_SEED` repeats one.
"""

from __future__ import annotations

import random

import pytest

from headrace.cluster.member.states import ModuleState, Toggle
from headrace.testing import Link, World
from tests.sim.clusters import ClusterWorld
from tests.sim.seeded import SECONDS, replayable, run_new_seeds

pytestmark = pytest.mark.sim

SEEDS = range(8)
ACTIONS = 14
GOOD = Link()
BAD = Link(loss=0.03, duplicate=0.02, reorder=0.05, jitter_s=300e-6)


class Chaos:
    """One run."""

    def __init__(self, world: World, done: list[str]) -> None:
        self.world = world
        self.done = done
        self.chance = random.Random(f"{world.seed} actions")
        self.cluster = ClusterWorld(world)

    def run(self) -> None:
        for _ in range(ACTIONS):
            act = self.chance.choice(ACTS)
            self.done.append(act.__name__)
            act(self)
            self.world.run_for(self.chance.choice((0.0, 0.001, 0.02, 0.3, 2.0)))
        self.world.set_links(GOOD)
        self.done.append("check")
        self.resume()
        self.cluster.check()

    # --- actions -----------------------------------------------------------------------------------------------------

    def send(self) -> None:
        for caller in self.cluster.callers:
            caller.wanted += self.chance.randint(1, 20)
        self.world.run_for(self.chance.choice((0.01, 0.1, 1.0)))

    def kill(self) -> None:
        """Of all processes of the member, now or before a step of one of its disks."""
        if self.chance.random() < 0.5:
            self.cluster.crash(keeps_writes=True)
        else:
            self.cluster.recover()
            name = self.chance.choice(("archive", "cluster", "service"))
            self.cluster.node.disk(name).kill_before(self.chance.randint(0, 30))
            self.send()

    def cut_power(self) -> None:
        self.cluster.crash(keeps_writes=False)

    def recover(self) -> None:
        self.cluster.recover()

    def check(self) -> None:
        self.resume()
        self.cluster.check()

    def lose_packets(self) -> None:
        self.world.set_links(self.chance.choice((GOOD, BAD)))

    def toggle(self, toggle: Toggle, state: ModuleState) -> None:
        self.cluster.recover()
        module = self.cluster.module
        if module.state is state:
            module._context.counters.toggle.value = toggle

    def snapshot(self) -> None:
        self.toggle(Toggle.SNAPSHOT, ModuleState.ACTIVE)

    def suspend(self) -> None:
        self.toggle(Toggle.SUSPEND, ModuleState.ACTIVE)

    def resume(self) -> None:
        self.cluster.recover()
        module = self.cluster.module
        self.world.run_for(0.05)
        if module.state is ModuleState.SUSPENDED:
            module._context.counters.toggle.value = Toggle.RESUME
            self.world.run_until(
                lambda: module.state is not ModuleState.SUSPENDED or not self.cluster.is_running, within_s=30
            )

    def shut_down(self) -> None:
        self.toggle(self.chance.choice((Toggle.SHUTDOWN, Toggle.ABORT)), ModuleState.ACTIVE)

    def stop_recording(self) -> None:
        """The archive stops to record the log; the member stands again."""
        self.cluster.recover()
        archive = self.cluster.archive
        term = self.cluster.module._context.recording_log.last_term
        if archive is not None and term is not None:
            archive._recordings.stop_recording(term.recording_id)

    def lose_client(self) -> None:
        caller = self.chance.choice(self.cluster.callers)
        if caller.cluster is not None:
            caller.cluster.close()
            caller.cluster = None

    def jump_clock(self) -> None:
        """Of the member: its time is the cluster's time, in which timers and time-outs are."""
        self.cluster.node.jump_clock(self.chance.choice((0.1, 1.0, 20.0)))

    def fill_disk(self) -> None:
        self.cluster.recover()
        self.cluster.node.disk(self.chance.choice(("archive", "cluster", "service"))).space = 0
        self.send()


ACTS = (
    Chaos.send,
    Chaos.send,
    Chaos.send,
    Chaos.kill,
    Chaos.kill,
    Chaos.cut_power,
    Chaos.recover,
    Chaos.check,
    Chaos.lose_packets,
    Chaos.snapshot,
    Chaos.snapshot,
    Chaos.suspend,
    Chaos.resume,
    Chaos.shut_down,
    Chaos.stop_recording,
    Chaos.lose_client,
    Chaos.jump_clock,
    Chaos.fill_disk,
)


def run(seed: int) -> None:
    done: list[str] = []
    with World(seed, checks=False) as world, replayable(world, __file__, done):
        Chaos(world, done).run()


@pytest.mark.parametrize("seed", SEEDS)
def test_chaos(seed: int) -> None:
    run(seed)


@pytest.mark.skipif(not SECONDS, reason="new seeds are for `make simulate`")
def test_new_seeds() -> None:
    run_new_seeds(run, "a cluster of one")
