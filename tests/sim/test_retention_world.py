"""Retention of a simulated archive: what it must keep is there through kills and power cuts at any step, by seed."""

from __future__ import annotations

import random

import pytest

from headrace.archive import RecordingDescriptor
from headrace.testing import Node, World
from tests.sim.archives import GONE, KIB, SEGMENT_LENGTH, Library, Recorded

pytestmark = pytest.mark.sim

KEPT_BYTES = 192 * KIB
KEPT_S = 60
# The archive looks each ten seconds, at one recording a turn.
PASS_S = 11


class Retaining(Library):
    """A library whose recording has a retention, and perhaps a hold."""

    def __init__(self, world: World, store: Node, chance: random.Random) -> None:
        self.kind = chance.choice(("bytes", "time"))
        self.hold: int | None = None
        self.published: list[tuple[float, int]] = []
        self.moved_count = 0
        super().__init__(world, store, store, chance)

    def retain(self, one: Recorded) -> None:
        """Give it the retention."""
        setting = f"retain-bytes={KEPT_BYTES}" if self.kind == "bytes" else f"retain-time={KEPT_S}s"
        self.archive.update_channel(one.recording_id, f"{one.channel}|{setting}")

    def put_hold(self, one: Recorded) -> None:
        """A reader needs all from here on, and then from somewhere later on, or nothing any more."""
        for name in self.disk.names():
            if name.endswith(".hold"):
                self.disk.delete(name)
        self.hold = None
        if self.chance.random() < 0.6:
            begin = self.archive.start_position(one.recording_id)
            self.hold = begin + self.chance.randrange(0, SEGMENT_LENGTH, 32)
            self.disk.create(f"{one.recording_id}-{self.hold}-reader.hold", 0).close()
        self.disk.sync()

    def kept_from(self, end: int) -> int:
        """All from here on must be there, of a recording with this end."""
        if self.kind == "bytes":
            kept = end - KEPT_BYTES
        else:
            since_s = self.world.now_s - KEPT_S
            kept = next((begin for at_s, begin in self.published if at_s >= since_s), end)
        return kept if self.hold is None else min(kept, self.hold)

    def _check(self, one: Recorded, found: RecordingDescriptor | None) -> None:
        assert found is not None
        end = max(found.stop_position, one.acknowledged)
        if found.start_position != one.start:
            assert one.start < found.start_position <= self.kept_from(end)
            assert found.start_position % SEGMENT_LENGTH == 0
            self.moved_count += 1
        # Whatever is allowed counts as asked for.
        one.asked_start = found.start_position
        super()._check(one, found)


def run(seed: int) -> tuple[str, int, int]:
    """The kind of retention, how often the start was found to have moved, and where it is at the end."""
    with World(seed) as world:
        library = Retaining(world, world.add_node("store"), random.Random(seed))
        one = library.record()
        library.retain(one)
        for _ in range(4):
            if library.chance.random() < 0.7:
                library.disk.kill_before(library.chance.randint(0, 300))
            try:
                for _ in range(3):
                    library.published.append((world.now_s, one.messages[-1][0] if one.messages else 0))
                    library.publish(one, 25)
                    library.look(one)
                    world.run_for(PASS_S)
                library.put_hold(one)
            except GONE:
                pass
            library.crash(keeps_writes=library.chance.random() < 0.5)
            library.recover()
            library.extend(one)
        library.disk.mend()
        library.hold = None
        for name in library.disk.names():
            if name.endswith(".hold"):
                library.disk.delete(name)
        library.publish(one, 40)
        library.await_recorded(one)
        library.stop(one)
        library.check()
        end = one.acknowledged
        world.run_for(2 * PASS_S if library.kind == "bytes" else KEPT_S + 2 * PASS_S)
        library.check()
        last = (end - 1) // SEGMENT_LENGTH * SEGMENT_LENGTH
        least = (end - KEPT_BYTES) // SEGMENT_LENGTH * SEGMENT_LENGTH
        assert one.start == (least if library.kind == "bytes" else last)
        return library.kind, library.moved_count, one.start


def test_what_is_to_be_kept_is_there_and_what_is_not_goes() -> None:
    """By bytes and by time, with holds and without, killed and cut off at any step."""
    runs = [run(seed) for seed in range(4)]
    assert {kind for kind, _, _ in runs} == {"bytes", "time"}
    assert all(moved_count > 0 for _, moved_count, _ in runs)
    assert run(0) == runs[0]
