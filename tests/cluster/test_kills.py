"""A member's files after a kill, or a power cut, before each step of each change: they open, and say what was so."""

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock, patch

import pytest

from headrace._agent.storage import Storage
from headrace._agent.tasks import Task
from headrace.cluster.files.node_state import CandidateTerm, NodeStateFile
from headrace.cluster.files.recording_log import RecordingLog
from headrace.cluster.member import snapshots
from headrace.testing import Killed, SimulatedStorage
from tests.cluster.test_recording_log import LOG_ID, TIME, add_snapshot

FULL = 2
VOTE = CandidateTerm(7, 1_700_000_000_000, 4096)


def before(log: RecordingLog) -> None:
    log.append_term(LOG_ID, 1, 1024, TIME)
    log.append_term(LOG_ID, 0, 0, TIME)
    add_snapshot(log, 10, 0, 0, 640)
    add_snapshot(log, 20, 1, 1024, 2048)
    log.force()


def append_term(log: RecordingLog) -> None:
    log.append_term(LOG_ID, 2, 4096, TIME)
    log.force()


def append_snapshot(log: RecordingLog) -> None:
    add_snapshot(log, 30, 1, 1024, 3072)
    log.force()


def invalidate(log: RecordingLog) -> None:
    log.invalidate_latest_snapshot()
    log.force()


def retake(log: RecordingLog) -> None:
    log.invalidate_latest_snapshot()
    log.force()
    add_snapshot(log, 30, 1, 1024, 2048)
    log.force()


def sort(log: RecordingLog) -> None:
    log.sort()


def seed(log: RecordingLog) -> None:
    log.seed_from_latest_snapshot()


def validate(log: RecordingLog) -> None:
    """As a module does that an operator asks to, whose archive has lost the service's part of the latest snapshot."""

    def asked(recording_id: int) -> Task[object]:
        yield
        return None if recording_id == 21 else object()

    def planned(_: object) -> Task[None]:
        yield

    context = SimpleNamespace(recording_log=log, archive=SimpleNamespace(asked=asked), log=Mock())
    with (
        patch.object(snapshots.calls, "find_recording", lambda recording_id: recording_id),
        patch.object(snapshots, "find_plan", planned),
    ):
        for _ in snapshots.Snapshots(cast("Any", context), cast("Any", None)).validated():
            pass


CHANGES = [append_term, append_snapshot, invalidate, retake, sort, seed, validate]


def usable_snapshot(storage: Storage) -> int | None:
    """At which position the snapshot is that the next start of a member with two services uses. It must be whole."""
    with RecordingLog(storage, sync_level=FULL) as log:
        terms = [one.leadership_term_id for one in log if one.is_term]
        assert terms in ([0, 1], [0, 1, 2], [])
        snapshot = log.latest_snapshot(2)
        if not snapshot:
            return None
        assert [one.service_id for one in snapshot] == [-1, 0, 1]
        assert len({one.log_position for one in snapshot}) == 1
        return snapshot[0].log_position


def run(storage: SimulatedStorage, change: Callable[[RecordingLog], None]) -> None:
    with RecordingLog(storage, sync_level=FULL) as log:
        change(log)


@pytest.mark.parametrize("keeps_writes", [True, False], ids=["kill", "power cut"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_next_start_finds_a_whole_snapshot(
    change: Callable[[RecordingLog], None], keeps_writes: bool
) -> None:
    done = SimulatedStorage()
    run(done, before)
    run(done, change)
    outcomes = {2048, usable_snapshot(done)} | ({640} if change is retake else set())
    seen = set()
    for chance in range(3):
        step, is_over = 0, False
        while not is_over:
            storage = SimulatedStorage(random.Random(chance))
            run(storage, before)
            storage.sync()
            storage.kill_before(step)
            try:
                run(storage, change)
                is_over = True
            except Killed:
                pass
            storage.crash(keeps_writes=keeps_writes)
            found = usable_snapshot(storage)
            assert found in outcomes, f"step {step}, chance {chance}"
            seen.add(found)
            if change in (append_snapshot, sort, seed):
                # What the kill left is no hindrance.
                run(storage, change)
                assert usable_snapshot(storage) == usable_snapshot(done)
            step += 1
        assert step > 1
        assert found == usable_snapshot(done)
    assert seen == outcomes


@pytest.mark.parametrize("keeps_writes", [True, False], ids=["kill", "power cut"])
@pytest.mark.parametrize("chance", range(5))
def test_a_vote_that_was_noted_is_known(keeps_writes: bool, chance: int) -> None:
    """And a file that a kill left unfinished is made again."""
    step, is_over, seen = 0, False, set()
    while not is_over:
        storage, is_noted = SimulatedStorage(random.Random(chance)), False
        storage.kill_before(step)
        try:
            with NodeStateFile(storage, sync_level=FULL) as state:
                state.vote(VOTE)
                is_noted = True
            is_over = True
        except Killed:
            pass
        storage.crash(keeps_writes=keeps_writes)
        with NodeStateFile(storage, sync_level=FULL) as state:
            found = state.candidate_term.term_id
            assert found in ((7,) if is_noted else (7, -1)), f"step {step}"
            seen.add(found)
        step += 1
    assert seen == {7, -1}
