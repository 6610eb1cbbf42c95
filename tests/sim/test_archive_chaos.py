"""Random actions on an archive, its clients, its disk and its network: the seed decides them all.

`make simulate SECONDS=60` runs new seeds; `HEADRACE_SEED` repeats one.
"""

from __future__ import annotations

import random

import pytest

from headrace.archive.files.catalog import CATALOG_NAME
from headrace.testing import Link, World
from tests.sim.archives import GONE, SEGMENT_LENGTH, Library, Recorded, local, remote
from tests.sim.seeded import SECONDS, replayable, run_new_seeds

pytestmark = pytest.mark.sim

SEEDS = range(6)
ACTIONS = 18
RECORDINGS_MAX = 3
SPACE = 1 << 30


class Chaos:
    """One run. What is refused while something is broken is no defect; what is then not as it must be is one."""

    def __init__(self, world: World, done: list[str]) -> None:
        self.chance = random.Random(f"{world.seed} actions")
        self.library: Library = self.chance.choice((local, remote))(world)
        self.library.disk.knows_holes = self.chance.random() < 0.6
        self.world = world
        self.is_broken = False
        self.done = done

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
            self.crash()
        if library.disk.knows_holes and not library.store.is_up and self.chance.random() < 0.3:
            # The power goes after the kill.
            library.disk.crash()
        library.disk.space = SPACE
        library.disk.mend()
        library.disk.kill_before(self.chance.choice((0, 3, 20, 1 << 60)))
        self.world.set_links(Link())
        library.recover()
        if library.disk.knows_holes and self.chance.random() < 0.4:
            # What a start has told of must be on the disk by then.
            library.crash()
            library.recover()
        self.is_broken = False

    def crash(self) -> None:
        """A kill or a power cut. Without holes, and without checksums, no archive knows what a power cut has torn."""
        self.is_broken = True
        self.library.crash(keeps_writes=not self.library.disk.knows_holes or self.chance.random() < 0.6)

    def active(self) -> Recorded:
        """A recording that is being published to; one of those that stopped goes on if there is none."""
        found = [one for one in self.library.recordings if one.publication is not None]
        if not found:
            if not self.library.recordings:
                return self.library.record()
            found = [self.chance.choice(self.library.recordings)]
            self.library.extend(found[0])
        return self.chance.choice(found)

    def stopped(self) -> Recorded:
        """A recording that has stopped; one with messages is made if there is none."""
        found = [one for one in self.library.recordings if one.publication is None]
        if not found:
            found = [self.active()]
            self.library.publish(found[0], 5)
            self.library.stop(found[0])
        return self.chance.choice(found)

    # --- actions -----------------------------------------------------------------------------------------------------

    def record(self) -> None:
        if len(self.library.recordings) < RECORDINGS_MAX:
            self.library.record()

    def publish(self) -> None:
        one = self.active()
        self.library.publish(one, self.chance.randint(1, 15))
        self.library.look(one)

    def fill(self) -> None:
        """To where frames and segment files end; more often than not the process ends with them."""
        one = self.active()
        self.library.fill(one)
        self.library.await_recorded(one)
        if self.chance.random() < 0.6:
            self.crash()

    def stop(self) -> None:
        self.library.stop(self.active())

    def extend(self) -> None:
        self.library.extend(self.stopped())

    def truncate(self) -> None:
        one = self.stopped()
        found = self.library.archive.find_recording(one.recording_id)
        ends = [end for end, _ in one.messages if found is not None and end <= found.stop_position]
        if ends:
            self.library.truncate(one, self.chance.choice(ends))
            self.chance.choice((self.crash, self.extend, self.extend, self.check))()

    def purge_segments(self) -> None:
        """Of a recording that goes on, or that stops now: all before a file that has begun."""
        one = self.active()
        for _ in range(self.chance.randint(1, 2)):
            self.library.fill(one)
            self.library.publish(one, 3)
        self.library.await_recorded(one)
        if self.chance.random() < 0.5:
            self.library.stop(one)
        position = self.chance.randint(0, one.acknowledged) // SEGMENT_LENGTH * SEGMENT_LENGTH
        if position > one.start:
            self.library.purge_segments(one, position)
            self.chance.choice((self.crash, self.publish, self.check))()

    def purge(self) -> None:
        one = self.stopped()
        self.library.purge(one)
        self.library.recordings.remove(one)

    def check(self) -> None:
        self.library.check()

    def crash_at_a_step(self) -> None:
        self.is_broken = True
        kind = self.chance.choice((None, "sync", "sync", "create", "delete"))
        self.library.disk.kill_before(self.chance.randint(0, 60 if kind is None else 5), kind)
        if kind == "sync":
            self.publish()

    def crash_in_a_deletion(self) -> None:
        """Between two steps of a truncation, or of a purge."""
        self.stopped()
        self.is_broken = True
        kind = self.chance.choice((None, None, "delete"))
        self.library.disk.kill_before(self.chance.randint(0, 10 if kind is None else 2), kind)
        self.chance.choice((Chaos.truncate, Chaos.truncate, Chaos.purge, Chaos.purge_segments))(self)

    def lose_power_after_a_deletion(self) -> None:
        """What the archive has told of must be on the disk by then."""
        one = self.stopped()
        if self.is_broken or not self.library.disk.knows_holes:
            return
        if self.chance.random() < 0.3:
            self.library.purge(one)
            self.library.recordings.remove(one)
        else:
            ends = [one.start, *(end for end, _ in one.messages)]
            self.library.truncate(one, self.chance.choice(ends[: len(ends) // 2 + 1]))
        self.is_broken = True
        self.library.crash()

    def spoil_the_catalog(self) -> None:
        """While it changes."""
        self.stopped()
        self.library.spoils_only_the_catalog = not self.is_broken
        self.is_broken = True
        kind = self.chance.choice(("write", "sync"))
        self.library.disk.fail(kind, CATALOG_NAME, times=self.chance.randint(1, 2))
        change = (
            Chaos.record,
            Chaos.stop,
            *(Chaos.extend,) * 3,
            *(Chaos.truncate,) * 2,
            Chaos.purge,
            Chaos.purge_segments,
        )
        self.chance.choice(change)(self)

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
    *(Chaos.fill,) * 3,
    *(Chaos.stop,) * 3,
    *(Chaos.extend,) * 3,
    *(Chaos.truncate,) * 3,
    Chaos.purge,
    *(Chaos.purge_segments,) * 2,
    Chaos.check,
    *(Chaos.crash_at_a_step,) * 2,
    *(Chaos.crash_in_a_deletion,) * 3,
    *(Chaos.lose_power_after_a_deletion,) * 3,
    *(Chaos.spoil_the_catalog,) * 3,
    Chaos.fill_the_disk,
    Chaos.spoil_the_disk,
    Chaos.lose_the_client,
    Chaos.spoil_the_network,
)


def run(seed: int) -> tuple[tuple[int, int], int]:
    """One run under a seed; gives what tells runs apart."""
    with World(seed) as world:
        done: list[str] = []
        with replayable(world, __file__, done):
            Chaos(world, done).run()
        return world.digest, world.now_ns


@pytest.mark.parametrize("seed", SEEDS)
def test_an_archive_keeps_its_promises_whatever_happens(seed: int) -> None:
    run(seed)


def test_the_same_seed_gives_the_same_run_of_random_actions() -> None:
    assert run(20) == run(20)


@pytest.mark.skipif(not SECONDS, reason="for `make simulate`: SIMULATE_SECONDS says for how long")
@pytest.mark.timeout(0)
def test_new_seeds() -> None:
    run_new_seeds(run, "archives")
