"""Two archives of a simulated world, one of which copies the other: loss, cuts, crashes of either, and a full disk."""

from __future__ import annotations

import random

import pytest

from headrace import PublicationTimeoutError
from headrace.archive import ArchiveError, ErrorCode, RecordingSignal, Replication, SourceLocation
from headrace.testing import Link, World
from tests.sim.archives import GONE, Library, Recorded
from tests.sim.seeded import SECONDS, replayable, run_new_seeds

pytestmark = pytest.mark.sim

BAD = Link(loss=0.05, duplicate=0.02, reorder=0.05, jitter_s=200e-6)
WITHIN_S = 120


class Pair:
    """A source, whose recordings have a model, and a standby that copies them."""

    def __init__(self, world: World) -> None:
        self.world = world
        primary, spare = world.add_node("primary"), world.add_node("spare")
        self.source = Library(world, primary, primary, random.Random(world.seed))
        self.standby = Library(world, spare, spare, random.Random(world.seed))
        self.copy_id: int | None = None

    def begin(self, one: Recorded) -> Replication:
        """Ask for a copy, or for the rest of it."""
        return self.standby.archive.replicate(
            one.recording_id,
            "aeron:udp?endpoint=primary:8010",
            destination_id=self.copy_id,
            replication_channel="aeron:udp?endpoint=spare:0",
        )

    def complete(self, one: Recorded) -> None:
        """Ask until the copy is whole; an attempt may meet what the one before has left at either end."""
        for _ in range(20):
            replication = self.begin(one)
            try:
                replication.wait(WITHIN_S)
                self.copy_id = replication.recording_id
                return
            except ArchiveError:
                self.find_copy()
                self.world.run_for(5)
        raise AssertionError("no attempt has succeeded")

    def find_copy(self) -> None:
        """What the standby has of it, when no one was told its id."""
        found = self.standby.archive.list_recordings()
        assert len(found) <= 1
        self.copy_id = found[0].recording_id if found else None

    def copied(self) -> list[bytes]:
        """The messages of the copy."""
        assert self.copy_id is not None
        found = self.standby.archive.find_recording(self.copy_id)
        assert found is not None
        if found.stop_position == found.start_position:
            return []
        with self.standby.archive.replay(self.copy_id, stream_id=77) as replay:
            return [bytes(message) for message in replay]

    def check(self, one: Recorded) -> None:
        """The copy has all that was published, each message once, in order."""
        assert self.copied() == [payload for _, payload in one.messages]


def stopped(pair: Pair, count: int) -> Recorded:
    """A recording of the source that has ended."""
    one = pair.source.record()
    pair.source.publish(one, count)
    pair.source.await_recorded(one)
    pair.source.stop(one)
    return one


def run_bad_network(seed: int) -> None:
    with World(seed) as world, replayable(world, __file__, ["copied over a bad network"]):
        pair = Pair(world)
        world.set_links(BAD)
        one = stopped(pair, 100)
        pair.complete(one)
        pair.check(one)


@pytest.mark.parametrize("seed", range(3))
def test_a_copy_is_whole_over_a_bad_network(seed: int) -> None:
    run_bad_network(seed)


def run_cuts(seed: int) -> None:
    with World(seed) as world, replayable(world, __file__, ["copied with a short and a long cut"]):
        pair = Pair(world)
        one = pair.source.record()
        pair.source.publish(one, 20)
        pair.source.await_recorded(one)
        for length_s in (0.5, 30):
            replication = pair.begin(one)
            replication.wait_for(RecordingSignal.EXTEND, WITHIN_S)
            pair.copy_id = replication.recording_id
            world.partition([pair.source.store], [pair.standby.store])
            pair.source.publish(one, 20)
            world.run_for(length_s)
            world.heal()
            if length_s > 1:
                with pytest.raises(ArchiveError, match=r"gone|closed unexpectedly"):
                    replication.wait(WITHIN_S)
            else:
                replication.wait_for_position(one.messages[-1][0], WITHIN_S)
                pair.standby.archive.stop_replication(replication.replication_id)
                replication.wait(WITHIN_S)
        pair.source.stop(one)
        pair.complete(one)
        pair.check(one)


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_breaks_a_copy_off_or_not_and_it_goes_on(seed: int) -> None:
    """Short cuts are repaired; after a long one the replication has failed by name, and the next goes on."""
    run_cuts(seed)


@pytest.mark.parametrize("first", range(5))
def test_a_standby_that_is_killed_at_any_step_of_its_disk_goes_on(first: int) -> None:
    """Nothing needs a person: the next start finds the end of the copy, and the next request goes on there."""
    step, was_killed = first, True
    while was_killed:
        with World(step) as world:
            pair = Pair(world)
            one = stopped(pair, 6)
            pair.standby.disk.kill_before(step)
            try:
                pair.complete(one)
                was_killed = not pair.standby.store.is_up
            except GONE:
                was_killed = True
            if was_killed:
                pair.standby.crash()
                pair.standby._start()
                pair.standby.await_stops()
                pair.find_copy()
                pair.complete(one)
            pair.check(one)
        step += 5
    assert step > 15


def test_a_source_that_crashes_and_comes_back_is_copied_to_the_end() -> None:
    with World(3) as world:
        pair = Pair(world)
        one = pair.source.record()
        pair.source.publish(one, 20)
        pair.source.await_recorded(one)
        replication = pair.begin(one)
        replication.wait_for_position(one.messages[-1][0], WITHIN_S)
        pair.copy_id = replication.recording_id
        pair.source.crash()
        with pytest.raises(ArchiveError):
            replication.wait(WITHIN_S)
        pair.source.recover()
        pair.source.extend(one)
        pair.source.publish(one, 20)
        pair.source.await_recorded(one)
        pair.source.stop(one)
        pair.complete(one)
        pair.check(one)


def test_a_full_disk_of_the_standby_ends_the_copy_by_name_and_it_goes_on_when_there_is_room() -> None:
    with World(4) as world:
        pair = Pair(world)
        one = pair.source.record()
        pair.source.publish(one, 10)
        pair.source.await_recorded(one)
        replication = pair.begin(one)
        replication.wait_for(RecordingSignal.EXTEND, WITHIN_S)
        pair.copy_id = replication.recording_id
        pair.standby.disk.space = 0
        pair.source.publish(one, 60)
        with pytest.raises(ArchiveError) as failure:
            replication.wait(WITHIN_S)
        assert failure.value.code == ErrorCode.STORAGE_SPACE
        with pytest.raises(ArchiveError) as failure:
            pair.begin(one).wait(WITHIN_S)
        assert failure.value.code == ErrorCode.STORAGE_SPACE
        pair.standby.disk.space = 1 << 30
        pair.source.await_recorded(one)
        pair.source.stop(one)
        pair.complete(one)
        pair.check(one)


def test_a_full_disk_of_the_source_ends_the_copy_where_the_source_ends_and_both_go_on_when_there_is_room() -> (
    None
):
    """For the copy it is a source that has stopped: what both have is the same, and no error is told of."""
    with World(4) as world:
        pair = Pair(world)
        one = pair.source.record()
        pair.source.publish(one, 10)
        pair.source.await_recorded(one)
        replication = pair.begin(one)
        replication.wait_for(RecordingSignal.EXTEND, WITHIN_S)
        pair.copy_id = replication.recording_id
        pair.source.disk.space = 0
        with pytest.raises(PublicationTimeoutError):
            pair.source.publish(one, 60)
        end = replication.wait(WITHIN_S)
        full = pair.source.archive.find_recording(one.recording_id)
        assert full is not None
        assert full.stop_position == end > 0
        assert pair.copied() == one.expected(end)
        pair.source.disk.space = 1 << 30
        pair.source._close(one)
        pair.source.extend(one)
        pair.source.publish(one, 20)
        pair.source.await_recorded(one)
        pair.source.stop(one)
        pair.complete(one)
        pair.check(one)


def live_recording(pair: Pair) -> Recorded:
    """A recording of the source whose publisher any node can subscribe to."""
    source = pair.source
    channel = "aeron:udp?control=primary:7400|control-mode=dynamic|fc=min|term-length=64k|ssc=true"
    spied = f"aeron-spy:{channel}"
    source.archive.start_recording(spied, 900, auto_stop=True)
    publication = source.archive.client.add_exclusive_publication(channel, 900)
    pair.world.run_until(lambda: bool(source.archive.list_recordings()), within_s=40, what="a recording")
    (found,) = source.archive.list_recordings()
    one = Recorded(found.recording_id, spied, 900, SourceLocation.LOCAL, publication)
    source.recordings.append(one)
    return one


def run_merge(seed: int) -> None:
    with World(seed) as world, replayable(world, __file__, ["copied and merged, with cuts"]):
        pair = Pair(world)
        one = live_recording(pair)
        pair.source.publish(one, 20)
        pair.source.await_recorded(one)
        world.set_links(BAD)
        replication = pair.standby.archive.replicate(
            one.recording_id,
            "aeron:udp?endpoint=primary:8010",
            replication_channel="aeron:udp?endpoint=spare:0",
            live_destination="aeron:udp?endpoint=spare:0|control=primary:7400|control-mode=dynamic",
        )
        replication.wait_for(RecordingSignal.EXTEND, WITHIN_S)
        pair.copy_id = replication.recording_id
        for number in range(600):
            if number % 4 == 0:
                world.partition([pair.source.store], [pair.standby.store])
                world.run_for(0.3)
                world.heal()
            pair.source._offer(one, 700)
            world.run_for(0.05)
            if any(signal.signal is RecordingSignal.MERGE for signal in replication.signals):
                break
        replication.wait_for(RecordingSignal.MERGE, WITHIN_S)
        for _ in range(20):
            pair.source._offer(one, 5000)
            world.run_for(0.05)
        pair.source.stop(one)
        pair.standby.await_stops()
        pair.check(one)


@pytest.mark.parametrize("seed", range(2))
def test_a_copy_merges_with_the_live_stream_over_a_bad_network_with_cuts(seed: int) -> None:
    """Each message once, in order: from the source's archive until they meet, and from the publisher after that."""
    run_merge(seed)


@pytest.mark.skipif(not SECONDS, reason="for `make simulate`: SIMULATE_SECONDS says for how long")
@pytest.mark.timeout(0)
def test_new_seeds() -> None:
    def run(seed: int) -> None:
        for run_one in (run_bad_network, run_cuts, run_merge):
            run_one(seed)

    run_new_seeds(run, "copies")


def test_the_same_seed_gives_the_same_run_of_a_replication() -> None:
    def trace() -> tuple[int, int]:
        with World(6) as world:
            world.set_links(BAD)
            pair = Pair(world)
            one = stopped(pair, 10)
            pair.complete(one)
            return world.digest

    assert trace() == trace()
