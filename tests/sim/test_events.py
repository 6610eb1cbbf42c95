"""The events of whole nodes: each thing's states follow from each other, and each transition does occur."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from headrace import _core
from headrace.event_log import Event, EventFilter, EventReader, read_events
from headrace.testing import Node, World, WorldTimeoutError
from tests.helpers import TIMEOUT_S
from tests.sim.archives import Library, local

pytestmark = pytest.mark.sim

CHANNEL = "aeron:udp?endpoint=there:40123"
TIMEOUTS = {
    "image_liveness_timeout_ns": 2_000_000_000,
    "publication_linger_timeout_ns": 1_000_000_000,
    "client_liveness_timeout_ns": 5_000_000_000,
    "untethered_window_limit_timeout_ns": 2_000_000_000,
    "untethered_resting_timeout_ns": 2_000_000_000,
    "event_limit": 100_000,
}
TABLES = {
    table["kind"]: {(state["name"], new) for state in table["states"] for new in state["next"]}
    for table in _core.state_tables()
}
# Their first state is told of by that of the publication or the image.
WITHOUT_A_BEGINNING = ("connection", "intake")
# What a world does not do: processes of its clients do not end by themselves, agents do not fail, names stay.
NOT_IN_A_WORLD = {
    "driver": {("Running", "Failed"), ("Failed", "Closed")},
    "client": {
        ("Heard", "Watched"),
        ("Heard", "Closed"),
        ("Heard", "Gone"),
        ("Watched", "Ended"),
        ("Watched", "Gone"),
        ("Ended", "Closed"),
        ("Ended", "Gone"),
    },
    "channel": {("Active", "Errored"), ("Errored", "Active"), ("Errored", "Closing")},
}


def chains(events: Iterable[Event]) -> dict[tuple[object, ...], list[Event]]:
    found: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        found.setdefault((event.kind, event.id, event.parent_id), []).append(event)
    return found


def live(world: World, here: Node, there: Node) -> None:
    """Streams that come, are cut off, end, are revoked, and a reader that is too slow."""
    publisher, reader = here.connect(), there.connect()
    for stream_id, is_revoked in ((1, False), (2, True)):
        subscription = reader.add_subscription(CHANNEL, stream_id)
        publication = publisher.add_exclusive_publication(CHANNEL, stream_id)
        world.run_until(lambda p=publication: p.is_connected, within_s=10)
        world.partition([here], [there])
        world.run_until(lambda p=publication: not p.is_connected, within_s=20)
        world.run_for(5)
        world.heal()
        world.run_until(lambda p=publication: p.is_connected, within_s=20)
        publication.revoke() if is_revoked else publication.close()
        world.run_for(10)
        subscription.close()
    slow = publisher.add_subscription("aeron:ipc?tether=false", 3)
    once = publisher.add_subscription("aeron:ipc?tether=false|rejoin=false", 3)
    fast = publisher.add_subscription("aeron:ipc", 3)
    stream = publisher.add_publication("aeron:ipc?term-length=64k", 3)
    world.run_until(lambda: all(each.is_connected for each in (slow, once, fast)), within_s=10)
    end_ns = world.now_ns + 12_000_000_000
    while world.now_ns < end_ns:
        stream.offer(bytes(1000))
        fast.poll(lambda message, header: None)
        world.step()
    stream.revoke()
    world.run_for(10)
    publisher.close()
    reader.close()
    world.run_for(10)


def begin_again(world: World, here: Node, there: Node) -> None:
    """A second publisher of a session, at another position than the first."""
    same = f"{CHANNEL}|session-id=7|init-term-id=0|term-id=0|term-offset=0|term-length=64k"
    publisher, reader = here.connect(), there.connect()
    subscription = reader.add_subscription(CHANNEL, 4)
    first = publisher.add_exclusive_publication(same, 4)

    def has_moved_on() -> bool:
        first.offer(bytes(1000))
        subscription.poll(lambda message, header: None)
        return first.position > 100_000

    world.run_until(has_moved_on, within_s=10)
    with reader.add_exclusive_publication(same, 4):
        world.run_for(4)
    world.run_for(4)
    publisher.close()
    reader.close()
    world.run_for(10)


def test_states_follow_from_each_other_and_every_transition_occurs() -> None:
    with World(seed=8) as world:
        here = world.add_node("here", **TIMEOUTS)
        there = world.add_node("there", **TIMEOUTS)
        readers = [EventReader(Path(node.directory)) for node in (here, there)]
        live(world, here, there)
        begin_again(world, here, there)
        for node in (here, there):
            node.close()
        events = [reader.poll() for reader in readers]
        assert [(reader.lost_count, reader.dropped_count) for reader in readers] == [(0, 0), (0, 0)]
    seen: dict[str, set[tuple[str, str]]] = {}
    for of_node in events:
        assert all(before.time_ns <= after.time_ns for before, after in itertools.pairwise(of_node))
        for (kind, *_), chain in chains(of_node).items():
            assert kind in WITHOUT_A_BEGINNING or chain[0].old == "", chain[0]
            for before, after in itertools.pairwise(chain):
                # A subscription may be linked to a stream again.
                assert after.old == before.new or (before.new, after.old) == ("Gone", ""), (before, after)
                seen.setdefault(str(kind), set()).add((after.old, after.new))
            assert all(event.reason for event in chain)
            if kind in WITHOUT_A_BEGINNING:
                seen.setdefault(str(kind), set()).add((chain[0].old, chain[0].new))
    for kind, transitions in TABLES.items():
        missing = transitions - seen.get(kind, set()) - NOT_IN_A_WORLD.get(kind, set())
        assert not missing, f"{kind}: {missing}"


def test_the_same_seed_gives_the_same_events() -> None:
    def run() -> list[list[Event]]:
        with World(seed=9) as world:
            here = world.add_node("here", **TIMEOUTS)
            there = world.add_node("there", **TIMEOUTS)
            publication = here.connect().add_publication(CHANNEL, 1)
            subscription = there.connect().add_subscription(CHANNEL, 1)
            world.run_until(lambda: publication.is_connected and subscription.is_connected, within_s=10)
            world.run_for(3)
            return [EventReader(node.directory).poll() for node in (here, there)]

    assert run() == run()


def test_changes_of_state_of_drivers_and_archives_are_in_the_trace() -> None:
    """In order with the datagrams that they cause, and that caused them."""
    with World(seed=10) as world:
        library = local(world)
        record_and_stop(library)
        library.store.disk().fail("write", "*.rec")
        library.publish(library.record(), 1)
        archive = (states_of(library, "stored-recording"), states_of(library, "recording"))
        assert archive[0][:2] == ["Active", "Stopped"]
        trace = world.trace()
    for line in (
        "store publication ",
        ": Disconnected -> Connected: a subscription was linked to it",
        ": Recording -> Inactive: the stream ended",
        "store stored-recording 0: Active -> Stopped: the stream ended, position=",
        "store archive ",
    ):
        assert line in trace, line


def record_and_stop(library: Library) -> None:
    one = library.record()
    library.publish(one, 3)
    library.await_recorded(one)
    library.stop(one)


def states_of(library: Library, kind: str) -> list[str]:
    directory = library.disk.event_directory
    assert directory is not None
    return [event.new for event in read_events(directory, EventFilter(kinds=(kind,)))]


def test_a_failure_prints_the_changes_of_archives_too() -> None:
    with World(seed=11) as world:
        library = local(world)
        record_and_stop(library)
        with pytest.raises(WorldTimeoutError) as late:
            world.run_until(lambda: False, within_s=0.01)
    assert "store: stored-recording 0: Active -> Stopped" in str(late.value)


def test_a_crash_leaves_the_events_of_an_archive_until_the_next_one_starts() -> None:
    with World(seed=12) as world:
        library = local(world)
        one = library.record()
        library.publish(one, 3)
        library.await_recorded(one)
        library.crash()
        assert states_of(library, "stored-recording") == ["Active"]
        library.recover()
        directory = library.disk.event_directory
        assert directory is not None
        (stopped,) = read_events(directory, EventFilter(kinds=("stored-recording",)))
        assert (stopped.old, stopped.new) == ("Active", "Stopped")
        assert stopped.reason.startswith("the archive's previous run died")


_RUN = """
from headrace.testing import World
from tests.sim.archives import local
from tests.sim.test_events import record_and_stop
with World(seed=13) as world:
    library = local(world)
    record_and_stop(library)
    library.crash()
    library.recover()
    print(world.digest)
"""


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    """Where its files are, and what process it is, differ."""
    command = [sys.executable, "-c", _RUN]
    outputs = {
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1
    assert outputs != {""}
