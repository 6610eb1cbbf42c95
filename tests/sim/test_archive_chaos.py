"""Random actions on an archive, its clients, its disk and its network: the seed decides them all.

`make simulate SECONDS=60` runs new seeds; `HEADRACE_SEED` repeats one.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from headrace.testing import Link, World, choose_seed, replay_note
from tests.sim.archives import GONE, Library, Recorded, local, remote

pytestmark = pytest.mark.sim

SEEDS = range(6)
ACTIONS = 25
RECORDINGS_MAX = 3
SECONDS = float(os.environ.get("SIMULATE_SECONDS", "0"))
SPACE = 1 << 30


class Chaos:
    """One run. What is refused while something is broken is no defect; what is then not as it must be is one."""

    def __init__(self, world: World) -> None:
        self.chance = random.Random(f"{world.seed} actions")
        self.library: Library = self.chance.choice((local, remote))(world)
        self.world = world
        self.is_broken = False
        self.done: list[str] = []

    def run(self) -> None:
        for _ in range(ACTIONS):
            act = self.chance.choice(ACTS)
            self.done.append(act.__name__)
            try:
                act(self)
            except GONE:
                if not self.is_broken:
                    raise
                self.recover()
        self.recover()

    def recover(self) -> None:
        library = self.library
        # Whatever is left of what broke: a crash that waits for its step, a full disk, a bad network.
        if self.chance.random() < 0.5:
            library.crash(keeps_writes=self.chance.random() < 0.5)
        library.disk.space = SPACE
        library.disk.mend()
        library.disk.kill_before(self.chance.choice((0, 3, 20, 1 << 60)))
        self.world.set_links(Link())
        library.recover()
        self.is_broken = False

    def one(self, *, is_active: bool) -> Recorded | None:
        """A recording, being published to or stopped."""
        found = [one for one in self.library.recordings if (one.publication is not None) == is_active]
        return self.chance.choice(found) if found else None

    # --- actions -----------------------------------------------------------------------------------------------------

    def record(self) -> None:
        if len(self.library.recordings) < RECORDINGS_MAX:
            self.library.record()

    def publish(self) -> None:
        if one := self.one(is_active=True):
            self.library.publish(one, self.chance.randint(1, 15))
            self.library.look(one)

    def stop(self) -> None:
        if one := self.one(is_active=True):
            self.library.stop(one)

    def extend(self) -> None:
        if one := self.one(is_active=False):
            self.library.extend(one)

    def truncate(self) -> None:
        one = self.one(is_active=False)
        if one is not None and one.messages:
            found = self.library.archive.find_recording(one.recording_id)
            ends = [end for end, _ in one.messages if found is not None and end <= found.stop_position]
            if ends:
                self.library.truncate(one, self.chance.choice(ends))

    def purge(self) -> None:
        if one := self.one(is_active=False):
            self.library.purge(one)
            self.library.recordings.remove(one)

    def check(self) -> None:
        self.library.check()

    def crash_at_a_step(self) -> None:
        self.is_broken = True
        kind = self.chance.choice((None, "sync", "create", "delete"))
        self.library.disk.kill_before(self.chance.randint(0, 60 if kind is None else 5), kind)

    def fill_the_disk(self) -> None:
        self.is_broken = True
        self.library.disk.space = self.chance.randint(0, 20) * 4096

    def spoil_the_disk(self) -> None:
        self.is_broken = True
        kind = self.chance.choice(("read", "write", "sync", "create", "delete", "rename"))
        self.library.disk.fail(kind, times=self.chance.randint(1, 3), chance=0.5)

    def lose_the_client(self) -> None:
        self.is_broken = True
        if self.library.desk.is_up:
            self.library.desk.crash()

    def spoil_the_network(self) -> None:
        self.world.set_links(Link(loss=0.05, duplicate=0.02, reorder=0.1, jitter_s=500e-6))


ACTS = (
    *(Chaos.record,) * 3,
    *(Chaos.publish,) * 8,
    *(Chaos.stop,) * 3,
    *(Chaos.extend,) * 3,
    *(Chaos.truncate,) * 3,
    Chaos.purge,
    Chaos.check,
    *(Chaos.crash_at_a_step,) * 2,
    Chaos.fill_the_disk,
    Chaos.spoil_the_disk,
    Chaos.lose_the_client,
    Chaos.spoil_the_network,
)


def run(seed: int) -> tuple[tuple[int, int], int]:
    """One run under a seed; gives what tells runs apart."""
    with World(seed) as world:
        chaos = None
        try:
            chaos = Chaos(world)
            chaos.run()
        except BaseException as failure:
            failure.add_note(replay_note("the world", seed))
            failure.add_note(f"actions: {chaos.done if chaos else []}\n{world.trace(40)}")
            raise
        return world.digest, world.now_ns


@pytest.mark.parametrize("seed", SEEDS)
def test_an_archive_keeps_its_promises_whatever_happens(seed: int) -> None:
    run(seed)


def test_the_same_seed_gives_the_same_run_of_random_actions() -> None:
    assert run(20) == run(20)


@pytest.mark.skipif(not SECONDS, reason="for `make simulate`: SIMULATE_SECONDS says for how long")
@pytest.mark.timeout(0)
def test_new_seeds() -> None:
    end, seed, count = time.monotonic() + SECONDS, choose_seed(), 0
    while count == 0 or time.monotonic() < end:
        run(seed + count)
        count += 1
    print(f"{count} seeds of archives from {seed} on")
