"""Archives on simulated nodes and disks: what holds through crashes, full disks, bad networks and lost clients."""

from __future__ import annotations

import contextlib
import errno
import gc
import random
from collections.abc import Callable

import pytest

import headrace
from headrace.archive import ArchiveError
from headrace.archive.client.steps import answered
from headrace.archive.protocol.requests import ReplayTokenRequest
from headrace.testing import Killed, Link, World
from tests.sim.archives import GONE, SEGMENT_LENGTH, Library, Recorded, local, remote

pytestmark = pytest.mark.sim

BAD = Link(loss=0.03, duplicate=0.02, reorder=0.05, jitter_s=200e-6)
PLACES = pytest.mark.parametrize("place", [local, remote])
Place = Callable[..., Library]


@PLACES
def test_a_replay_equals_what_was_published(place: Place) -> None:
    with World(1) as world:
        library = place(world)
        world.set_links(BAD)
        recordings = [library.record() for _ in range(3)]
        for _ in range(10):
            for one in recordings:
                library.publish(one, 5)
        for one in recordings:
            library.await_recorded(one)
            library.stop(one)
        library.check()
        assert all(one.acknowledged == one.messages[-1][0] for one in recordings)


@PLACES
@pytest.mark.parametrize("seed", range(4))
def test_what_was_recorded_is_there_after_a_power_cut(place: Place, seed: int) -> None:
    """At whatever step of the disk the power goes; then the recording goes on from where it ends."""
    with World(seed) as world:
        library = place(world)
        one, lost_counts = library.record(), []
        for _ in range(6):
            library.disk.kill_before(library.chance.randint(0, 200))
            try:
                while True:
                    library.publish(one, 3)
                    library.look(one)
            except GONE:
                library.crash()
            lost_counts.append(library.disk.crash())
            library.recover()
            library.extend(one)
        library.publish(one, 3)
        library.await_recorded(one)
        library.stop(one)
        library.check()


@pytest.mark.parametrize("seed", range(4))
def test_the_end_that_a_start_finds_is_there_after_a_power_cut(seed: int) -> None:
    """The process is killed before it forces a block to the medium; the power goes after the next start."""
    with World(seed) as world:
        library = local(world)
        one = library.record()
        library.publish(one, 5)
        library.await_recorded(one)
        library.disk.kill_before(0, "sync")
        with contextlib.suppress(*GONE):
            library.publish(one, 3)
            library.await_recorded(one)
        assert not library.store.is_up
        library.recover()
        library.crash()
        library.recover()


def test_what_the_process_did_before_does_not_change_a_world() -> None:
    """Streams of a crashed node end with the objects that hold them: not when Python happens to collect them."""

    def trace() -> tuple[int, int]:
        with World(2) as world:
            library = remote(world)
            one = library.record()
            for _ in range(3):
                library.publish(one, 5)
                library.crash()
                library.recover()
                library.extend(one)
            return world.digest

    first = trace()
    cycles: list[object] = []
    for _ in range(5_000):
        cycle: list[object] = []
        cycle.append(cycle)
        cycles.append(cycle)
    assert trace() == first
    assert gc.isenabled()


def test_a_power_cut_loses_what_was_not_synced() -> None:
    """Without syncs there is no promise: this shows that the disk of a node loses something."""
    with World(2) as world:
        library = local(world, file_sync_level=0, catalog_file_sync_level=0)
        one = library.record()
        library.publish(one, 50)
        library.await_recorded(one)
        library.crash()
        assert "store loses 0 pages" not in world.trace()
        library.store.start()


def truncate(library: Library, one: Recorded) -> None:
    """To the end of a message of the first segment."""
    ends = [end for end, _ in one.messages if end < SEGMENT_LENGTH]
    library.truncate(one, library.chance.choice(ends))


def purge_segments(library: Library, one: Recorded) -> None:
    """All but the last."""
    end = one.messages[-1][0]
    assert end > SEGMENT_LENGTH
    library.purge_segments(one, end - end % SEGMENT_LENGTH)


def purge_active_segments(library: Library, one: Recorded) -> None:
    """While it goes on."""
    library.extend(one)
    purge_segments(library, one)
    library.publish(one, 5)
    library.await_recorded(one)
    library.stop(one)


def extend(library: Library, one: Recorded) -> None:
    library.extend(one)
    library.publish(one, 5)
    library.await_recorded(one)
    library.stop(one)


def truncate_and_extend(library: Library, one: Recorded) -> None:
    truncate(library, one)
    extend(library, one)


def record(library: Library, _: Recorded) -> None:
    another = library.record()
    library.publish(another, 3)
    library.await_recorded(another)
    library.stop(another)


OPERATIONS = {
    "truncate": truncate,
    "purge": Library.purge,
    "purge segments": purge_segments,
    "purge segments and go on": purge_active_segments,
    "extend": extend,
    "truncate and extend": truncate_and_extend,
    "record": record,
}


@pytest.mark.parametrize("keeps_writes", [True, False], ids=["kill", "power cut"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_was_begun_is_undone_or_finished(name: str, keeps_writes: bool) -> None:
    """With a crash before each step that the operation takes on the disk, and before one of the start after it."""
    with World(3) as world:
        library, step, is_over = local(world), 0, False
        while not is_over:
            one = library.record()
            library.publish(one, 60)
            library.fill(one)
            library.publish(one, 20)
            library.await_recorded(one)
            library.stop(one)
            library.disk.kill_before(step)
            try:
                OPERATIONS[name](library, one)
                is_over = True
            except GONE:
                pass
            is_over = is_over and library.store.is_up
            library.crash(keeps_writes=True)
            library.disk.crash(keeps_writes=keeps_writes)
            library.disk.kill_before(library.chance.randint(0, 10))
            library.recover()
            # One recording at a time keeps this short.
            for left in library.recordings:
                library.purge(left)
            library.check()
            step += 1 if step < 20 else 7
        assert step > 3


@pytest.mark.parametrize("kind", ["create", "write", "sync", "delete"])
@pytest.mark.parametrize("name", ["truncate", "purge", "purge segments"])
def test_what_the_disk_refuses_of_a_deletion_is_undone_or_finished_by_the_next_start(
    name: str, kind: str
) -> None:
    """With a refusal of each step of this kind that the operation takes."""
    with World(12) as world:
        library, after, is_over = local(world), 0, False
        while not is_over:
            one = library.record()
            library.publish(one, 60)
            library.fill(one)
            library.publish(one, 20)
            library.await_recorded(one)
            library.stop(one)
            refused = library.disk.refused_count
            library.disk.fail(kind, after=after, times=1)
            with contextlib.suppress(*GONE):
                OPERATIONS[name](library, one)
            is_over = library.disk.refused_count == refused
            library.recover()
            after += 1
        assert after > 1


def test_a_full_disk_ends_recordings_where_they_are_and_has_room_again() -> None:
    with World(4) as world:
        library = local(world)
        one, another = library.record(), library.record()
        library.publish(one, 5)
        library.await_recorded(one)
        library.disk.space = 0
        for each in (one, another):
            with pytest.raises((headrace.PublicationTimeoutError, headrace.PublicationClosedError)):
                library.publish(each, 200)
        with pytest.raises(headrace.HeadraceError):
            library.record()
        library.disk.space = 1 << 30
        library.recover()
        for each in (one, another):
            extend(library, each)
        library.check()
        assert library.server.error_count > 0
        assert library.server.failure is None


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_disk_that_refuses_once_ends_one_recording_and_loses_nothing(kind: str) -> None:
    with World(5) as world:
        library = local(world)
        one, another = library.record(), library.record()
        for each in (one, another):
            library.publish(each, 5)
            library.await_recorded(each)
        library.disk.fail(kind, f"{one.recording_id}-*", times=1)
        with pytest.raises(headrace.HeadraceError):
            library.publish(one, 500)
        library.publish(another, 20)
        library.await_recorded(another)
        library.recover()
        extend(library, one)
        library.check()
        assert library.server.failure is None


def test_a_disk_that_cannot_be_read_ends_the_replay_with_the_reason() -> None:
    with World(6) as world:
        library = local(world)
        one = library.record()
        library.publish(one, 50)
        library.await_recorded(one)
        library.stop(one)
        library.disk.fail("read", "*.rec", error=errno.EIO)
        with (
            pytest.raises(ArchiveError, match="Input/output error"),
            library.archive.replay(one.recording_id) as replay,
        ):
            list(replay)
        library.disk.mend()
        library.check()


def test_a_client_that_vanishes_leaves_its_recordings_to_others() -> None:
    with World(7) as world:
        library = remote(world)
        one = library.record()
        library.publish(one, 20)
        library.await_recorded(one)
        replay = library.archive.start_replay(one.recording_id, "aeron:udp?endpoint=desk:40999", 5)
        assert replay is not None
        library.desk.crash()
        one.publication = None
        world.run_for(15)
        assert library.server.failure is None
        library.recover()
        # Nothing of the sessions before is left.
        sessions = [
            each for each in library.store.connect().counters if "control session" in each.label.lower()
        ]
        assert len(sessions) <= 1, [each.label for each in sessions]


def test_several_archives_serve_several_clients() -> None:
    with World(8) as world:
        world.set_links(BAD)
        nodes = [world.add_node(name) for name in ("north", "south", "west")]
        libraries = [
            Library(world, store, desk, random.Random(number))
            for number, (store, desk) in enumerate(
                [(nodes[0], nodes[2]), (nodes[1], nodes[0]), (nodes[2], nodes[1])]
            )
        ]
        recordings = [library.record() for library in libraries]
        for _ in range(5):
            for library, one in zip(libraries, recordings, strict=True):
                library.publish(one, 5)
        for library, one in zip(libraries, recordings, strict=True):
            library.await_recorded(one)
            library.stop(one)
            library.check()


def test_a_node_may_crash_at_each_start_until_one_is_whole() -> None:
    with World(9) as world:
        node, step = world.add_node("store"), 0
        while True:
            node.disk().kill_before(step)
            try:
                server = node.run_archive()
                node.disk().mend()
                break
            except Killed:
                assert not node.is_up
                node.start()
                step += 1 + step // 8
        assert step > 3
        assert not server.is_closed


def test_an_archive_starts_beside_a_killed_one_at_once_and_beside_a_running_one_never() -> None:
    with World(10) as world:
        node = world.add_node("store")
        first = node.run_archive()
        with pytest.raises(headrace.ConfigError, match=f"archive {first.archive_id} takes requests there"):
            node.run_archive("other")
        assert first.failure is None
        assert first._client is not None
        node.crash_client(first._client)
        second = node.run_archive("other")
        with headrace.Archive.connect(node.connect()) as archive:
            assert archive.archive_id == second.archive_id


def test_what_a_client_may_do_ends_with_the_client_that_closes_though_it_does_not_close_its_session() -> None:
    """Long before the driver gives up its streams: session and tokens with it."""
    with World(11) as world:
        store, desk = world.add_node("store"), world.add_node("desk")
        server, client = store.run_archive(), desk.connect()
        channels = {
            "control_channel": "aeron:udp?endpoint=store:8010",
            "response_channel": "aeron:udp?endpoint=desk:0",
        }
        archive = headrace.Archive.connect(client, **channels)  # type: ignore[arg-type]
        token = archive._run(answered(ReplayTokenRequest(recording_id=5)))
        tokens = server._control._requests.tokens
        assert tokens.session_of(token, 5) is not None
        client.close()
        world.run_for(1)
        assert tokens.session_of(token, 5) is None
        assert not server._control._sessions


def test_the_same_seed_gives_the_same_run_of_an_archive() -> None:
    def run(seed: int) -> tuple[tuple[int, int], str, list[str], int]:
        with World(seed) as world:
            library = remote(world)
            world.set_links(BAD)
            one = library.record()
            library.publish(one, 30)
            library.look(one)
            library.crash()
            library.recover()
            return world.digest, world.trace(), library.disk.names(), world.now_ns

    first = run(10)
    assert run(10) == first
    assert run(11)[0] != first[0]


def test_a_recovery_that_cannot_start_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise headrace.HeadraceError("no driver starts here")

    with World(3) as world:
        library = local(world)
        library.crash()
        monkeypatch.setattr(library.store, "start", refuse)
        with pytest.raises(headrace.HeadraceError, match="no driver starts here"):
            library.recover()


def test_an_archive_rests_between_attempts_to_note_an_end() -> None:
    """A disk that refuses the catalog has the archive try now and then, and not in each turn."""
    with World(3) as world:
        library = local(world)
        one = library.record()
        library.publish(one, 3)
        library.await_recorded(one)
        library.disk.fail("write", "archive.catalog")
        assert one.publication is not None
        one.publication.close()
        world.run_until(lambda: library.disk.refused_count > 0, within_s=20, what="a refusal")
        world.run_for(0.01)
        busy = sum(library.server.do_work() > 0 for _ in range(100))
        assert busy < 10, f"{busy} of 100 turns in a row had something to do"
        library.disk.mend()
        library.recover()
