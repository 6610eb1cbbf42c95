"""Defects put into members on purpose, each against a rule of the specification's 11.1, which the swarm must find.

See also `tests/consensus/test_model.py`: there a schedule takes milliseconds, so what the core decides is tried there.
The tests try those that are found within seconds, `make mutants` all: also the holes, which no seed has found yet.
"""

from __future__ import annotations

from typing import Any

import pytest

from headrace import HeadraceError
from headrace.cluster.consensus import leading, peers, standing
from headrace.cluster.files import node_state
from headrace.cluster.member import (
    election,
    followed_log,
    follower_log,
    ingress,
    log_copy,
    log_reader,
    log_recording,
    pending_messages,
    rollback,
    sessions,
    snapshots,
    timers,
)
from headrace.cluster.service import joined_log
from tests.mutants import ALL_MUTANTS, Edit, Mutant
from tests.sim.swarm import run

pytestmark = pytest.mark.sim

# What leaves a leader with entries that no quorum has, alive.
_CUTS = ("isolation", "partition", "deafness", "lost client")
_DEATHS = ("kill", "kill of all", "power cut of all", "partition")


def _mutant(
    rule: int,
    name: str,
    *edits: tuple[Any, str, str, str],
    within: int = 20,
    kinds: tuple[str, ...] = (),
    is_quick: bool = False,
) -> Mutant:
    is_hole = within > _FOUND_WITHIN
    return Mutant(name, (rule,), tuple(Edit(*edit) for edit in edits), within, is_quick, is_hole, kinds)


_FOUND_WITHIN = 5
_VOTE, _SESSIONS = node_state.NodeStateFile, sessions.Sessions
_PENDING, _READER = pending_messages.PendingMessages, log_reader.LogReader
MUTANTS = [
    _mutant(
        1,
        "a vote is not stored",
        (_VOTE, "vote", "self._file.write(self._offset, _LONG.pack(term.term_id))", "pass"),
        kinds=_DEATHS,
    ),
    _mutant(
        1,
        "a vote is not forced to the disk",
        (_VOTE, "vote", "self._file.sync(max(self._sync_level, _SYNC_DATA))", "pass"),
        kinds=("power cut", "power cut of all", "partition"),
    ),
    _mutant(
        4,
        "a leader commits more than its archive has",
        (peers, "quorum_position", "min(own_position, positions[quorum - 1])", "positions[quorum - 1]"),
        within=5,
        is_quick=True,
    ),
    _mutant(
        5,
        "a commit position goes back",
        (
            leading.Leading,
            "_agree",
            "position > standing.agreed_position",
            "position != standing.agreed_position",
        ),
        (
            standing.Standing,
            "raise_commit",
            "position > self.commit_position",
            "position != self.commit_position",
        ),
        (
            election.Election,
            "_commit",
            "position > context.commit_position",
            "position != context.commit_position",
        ),
        kinds=("pause", "stall", "one-way cut", "kill"),
    ),
    _mutant(
        6,
        "services read what is not committed",
        (joined_log.CopiedLog, "poll", "min(commit_position, self.limit)", "self.limit"),
        within=5,
        is_quick=True,
    ),
    _mutant(
        6,
        "a module reads what is not committed",
        (followed_log.FollowedLog, "poll", "reader.poll(limit_position)", "reader.poll(1 << 60)"),
        within=5,
        is_quick=True,
    ),
    _mutant(
        9,
        "the archive keeps what is not committed",
        (
            log_copy.LogCopy,
            "truncated",
            "yield from self._context.archive.asked(calls.truncate_recording(recording_id, position))",
            "yield",
        ),
        kinds=_CUTS,
    ),
    _mutant(
        9,
        "the recording log keeps what is not committed",
        (log_recording.LogRecording, "drop_terms", "self._context.recording_log.cut_back(position)", "pass"),
        kinds=_CUTS,
    ),
    _mutant(
        13,
        "a term is not recorded",
        (
            log_recording.LogRecording,
            "_store_term",
            "log.ensure_coherent(recording_id, before, self._entry(recording_id, term_id, base))",
            "pass",
        ),
        within=5,
    ),
    _mutant(
        14,
        "a log is joined wherever it begins",
        (
            follower_log.FollowerLog,
            "joined",
            "image is None or image.join_position != action.log_position",
            "image is None",
        ),
        (joined_log, "joined", "not image.join_position == position == join.log_position", "False"),
        within=5,
        is_quick=True,
    ),
    _mutant(
        16,
        "sessions that were not committed stay",
        (_SESSIONS, "restore_uncommitted", "del self._by_id[session.session_id]", "pass"),
        kinds=_CUTS,
    ),
    _mutant(
        16,
        "an end of a session that was not committed stays",
        (_SESSIONS, "restore_uncommitted", "self._by_id[session.session_id] = session", "pass"),
        kinds=_CUTS,
    ),
    _mutant(
        16,
        "a timer that fired and was not committed is gone",
        (
            timers.Timers,
            "restore_uncommitted",
            "self.schedule(timer.correlation_id, timer.deadline)",
            "pass",
        ),
        kinds=_CUTS,
    ),
    _mutant(
        16,
        "a service's message that was not committed is gone",
        (_PENDING, "restore_uncommitted", "one.append_position = UNSENT", "pass"),
        kinds=_CUTS,
    ),
    _mutant(
        16,
        "a state that was not committed stays",
        (rollback, "roll_back", "if state is not None", "if False"),
        kinds=("isolation", "partition", "suspension"),
    ),
    _mutant(
        17,
        "a snapshot has the next session's id, committed or not",
        (
            _SESSIONS,
            "opened",
            "self._sequence(session)",
            "self._sequence(session); self.next_committed_id = self.next_id",
        ),
        kinds=_CUTS,
    ),
    _mutant(
        19,
        "a snapshot is noted that a service failed to take",
        (snapshots.Snapshots, "taken", "if failed", "if False"),
        kinds=("snapshot", "full disk", "kill of all"),
    ),
    _mutant(
        20,
        "a service's message that is in the log is sent again",
        (_PENDING, "add", "cluster_session_id <= self._logged_id", "False"),
        kinds=("kill", "isolation", "stall"),
    ),
    _mutant(
        20,
        "a service's message in the log is not noted",
        (_READER, "_message_of_service", "pending[service_id].logged(session_id)", "pass"),
        within=5,
        is_quick=True,
        kinds=("kill", "isolation"),
    ),
    _mutant(
        21,
        "a timer's event does not wait for the request",
        (_READER, "_entry", "if not self._services_are_there", "if False"),
        kinds=("kill", "isolation", "stall"),
    ),
    _mutant(
        22,
        "the module reads on after an action",
        (_READER, "_entry", "return Action.BREAK", "return Action.CONTINUE"),
        kinds=("snapshot", "kill", "suspension"),
    ),
    _mutant(
        23,
        "a client's stream goes on after a gap",
        (ingress.Ingress, "_image_lost", "if self._is_closed", "if True"),
        (
            ingress.Ingress,
            "_is_on_its_stream",
            "session.ingress == stream",
            "session.ingress.session_id == stream.session_id",
        ),
        kinds=("one-way cut", "deafness", "bad links", "pause"),
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_seeds_find_a_defect(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (mutant.is_quick or ALL_MUTANTS):
        pytest.skip("`make mutants` tries what takes long to find")
    mutant.apply(monkeypatch)
    for seed in range(mutant.within):
        try:
            run(seed, kinds=mutant.kinds)
        except (AssertionError, HeadraceError) as found:
            print(f"seed {seed} finds that {mutant.name}: {str(found)[:200]}")
            return
    text = f"{mutant.within} seeds do not find that {mutant.name}"
    if mutant.is_hole:
        pytest.xfail(text)
    pytest.fail(text)
