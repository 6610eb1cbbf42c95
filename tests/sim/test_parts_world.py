"""Random kills of single parts of a cluster's member, and power cuts at each sync level: the seed decides them all.

`make simulate SECONDS=60` runs new seeds; `HEADRACE_SEED` repeats one.
"""

from __future__ import annotations

import random

import pytest

from headrace.cluster.member.states import ModuleState, Toggle
from headrace.testing import World
from tests.sim.seeded import SECONDS, replayable, run_new_seeds
from tests.sim.supervised import PARTS, SupervisedWorld

pytestmark = pytest.mark.sim

SEEDS = range(12)
ACTIONS = 14
# What happens between two actions is often a few steps of a start.
_PAUSES_S = (0.0, 0.0002, 0.001, 0.003, 0.01, 0.05)


class Chaos:
    """One run."""

    def __init__(self, world: World, done: list[str]) -> None:
        self.world = world
        self.done = done
        self.chance = random.Random(f"{world.seed} actions")
        self.cluster = SupervisedWorld(world, sync_level=self.chance.choice((0, 1, 2)))

    def run(self) -> None:
        for _ in range(ACTIONS):
            act = self.chance.choice(ACTS)
            self.done.append(act.__name__)
            act(self)
            for _ in range(self.chance.randint(0, 10)):
                self.world.run_for(self.chance.choice(_PAUSES_S))
        self.done.append("answer")
        self.cluster.answer()
        self.done.append("check")
        self.cluster.check()

    def send(self) -> None:
        for caller in self.cluster.callers:
            caller.wanted += self.chance.randint(1, 20)

    def kill(self) -> None:
        name = self.chance.choice(PARTS)
        self.done[-1] += f" {name}"
        self.cluster.kill(name)

    def kill_two(self) -> None:
        for name in self.chance.sample(PARTS, 2):
            self.done[-1] += f" {name}"
            self.cluster.kill(name)

    def kill_before(self) -> None:
        """Before a step of its disk."""
        name = self.chance.choice(PARTS)
        self.done[-1] += f" {name}"
        self.cluster.kill_before(name, self.chance.randint(0, 20))
        self.send()

    def crash(self) -> None:
        """Driver and all parts at once."""
        self.cluster.crash(keeps_writes=True)
        self.cluster.start()

    def cut_power(self) -> None:
        self.cluster.crash(keeps_writes=False)
        self.cluster.start()

    def close(self) -> None:
        """A part ends in good order."""
        name = self.chance.choice(PARTS)
        self.done[-1] += f" {name}"
        self.cluster.close(name)

    def slow_down(self) -> None:
        """A part has no time for a while."""
        slow = self.cluster.slow.get(self.chance.choice(PARTS))
        if slow is not None:
            slow.until_ns = self.world.now_ns + self.chance.choice((2_000_000, 60_000_000, 300_000_000))

    def ask(self, toggle: Toggle) -> None:
        module = self.cluster.module
        if self.cluster.is_running and module.is_leader and module.state is ModuleState.ACTIVE:
            module._context.counters.toggle.value = toggle

    def snapshot(self) -> None:
        self.cluster.recover()
        self.ask(Toggle.SNAPSHOT)

    def shut_down(self) -> None:
        self.ask(self.chance.choice((Toggle.SHUTDOWN, Toggle.ABORT)))

    def recover(self) -> None:
        self.cluster.recover()

    def check(self) -> None:
        self.cluster.check()


ACTS = (
    Chaos.send,
    Chaos.send,
    Chaos.send,
    Chaos.kill,
    Chaos.kill,
    Chaos.kill,
    Chaos.kill_two,
    Chaos.kill_before,
    Chaos.kill_before,
    Chaos.crash,
    Chaos.cut_power,
    Chaos.cut_power,
    Chaos.close,
    Chaos.slow_down,
    Chaos.snapshot,
    Chaos.snapshot,
    Chaos.snapshot,
    Chaos.shut_down,
    Chaos.recover,
    Chaos.check,
)


def run(seed: int) -> None:
    done: list[str] = []
    with World(seed, checks=False) as world, replayable(world, __file__, done):
        Chaos(world, done).run()


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_that_die_alone(seed: int) -> None:
    run(seed)


@pytest.mark.skipif(not SECONDS, reason="new seeds are for `make simulate`")
def test_new_seeds() -> None:
    run_new_seeds(run, "parts that die alone")
