"""Random schedules of three and five members, and defects put in on purpose, which the schedules must find."""

from __future__ import annotations

import inspect
import sys
import textwrap
from typing import Any

import pytest

from headrace.cluster.consensus import canvassing, following, leading, peers, standing
from headrace.cluster.consensus.states import ElectionState
from tests.consensus.model import Model
from tests.sim.seeded import SECONDS, run_new_seeds

_BLOCK = 10_000
_STEPS = 300
# A member that has voted knows no leader, and one that is ready follows in the same step.
_FOLLOWS = {state for state in ElectionState if state.name.startswith("FOLLOWER")} - {
    ElectionState.FOLLOWER_BALLOT,
    ElectionState.FOLLOWER_READY,
}


def _member_count(seed: int) -> int:
    return 5 if seed % 4 == 0 else 3


def _run(seed: int, step_count: int) -> Model:
    model = Model(seed, _member_count(seed))
    try:
        model.run(step_count)
    except Exception as failure:
        failure.add_note(f"Model({seed}, {_member_count(seed)}).run({step_count}) repeats it")
        raise
    return model


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_no_schedule_breaks_a_rule(block: int) -> None:
    leaders = commits = 0
    left_by_ends: set[ElectionState] = set()
    for seed in range(block * _BLOCK, (block + 1) * _BLOCK):
        model = _run(seed, _STEPS)
        leaders += len(model.leaders)
        commits += len(model.committed)
        left_by_ends |= model.left_by_ends
    # Schedules in which nothing happens would prove nothing.
    assert leaders > _BLOCK / 4
    assert commits > _BLOCK / 10
    assert left_by_ends >= _FOLLOWS


@pytest.mark.parametrize("seed", range(500))
def test_members_agree_once_nothing_goes_wrong(seed: int) -> None:
    model = _run(seed, 600)
    assert model.settles(600), [(one.core and one.core.state.name) for one in model.members]


@pytest.mark.skipif(not SECONDS, reason="new seeds are for `make simulate`")
def test_new_seeds() -> None:
    run_new_seeds(lambda seed: _run(seed, 2000), "the consensus core")


# --- defects on purpose ---------------------------------------------------------------------------------------------

_RECORD = "_record_term(term.next_leadership_term_id, term.next_term_base_log_position)"
# Of a class or module: a function, what of its text becomes what, and within how many schedules that is found.
_MUTANTS: dict[str, tuple[Any, str, str, str, int]] = {
    "a vote is not stored": (
        standing.Standing,
        "store_vote",
        "self.emit(StoreVote(term_id, log_position))",
        "pass",
        100,
    ),
    "a member votes twice in a term": (
        canvassing.Canvassing,
        "on_request_vote",
        "<= standing.candidate_term_id",
        "< standing.candidate_term_id",
        100,
    ),
    "a worse log gets a vote": (
        canvassing.Canvassing,
        "on_request_vote",
        "if standing.log > candidate",
        "if False",
        8000,
    ),
    "a vote of another term counts": (
        canvassing.Canvassing,
        "on_vote",
        "vote.candidate_term_id != standing.candidate_term_id",
        "False",
        8000,
    ),
    "a quorum is too small": (peers, "quorum_of", "member_count // 2 + 1", "max(1, member_count // 2)", 100),
    "a position of an older log counts": (
        leading.Leading,
        "on_canvass",
        "if is_of_term else NULL_VALUE",
        "",
        8000,
    ),
    "a leader does not record its term": (
        leading.Leading,
        "begin",
        "standing.emit(RecordTerm(standing.term_id, self._base))",
        "pass",
        8000,
    ),
    "a follower does not record the term": (
        following.Following,
        "_record_term",
        "self._standing.emit(RecordTerm(term_id, base))",
        "pass",
        8000,
    ),
    "a leader does not wait for a quorum": (
        leading.Leading,
        "work_log_replication",
        " and self._quorum_position() >= self._base",
        "",
        8000,
    ),
    "a follower replays what is not committed": (
        following.Following,
        "work_replay",
        "min(standing.append_position, standing.agreed_position)",
        "standing.append_position",
        8000,
    ),
    "a follower keeps what is not committed": (
        following.Following,
        "on_new_term",
        "next_base < standing.append_position",
        "False",
        1000,
    ),
    "a follower takes an answer for another log": (
        following.Following,
        "on_new_term",
        "term.log_leadership_term_id != standing.terms.last_id",
        "False",
        8000,
    ),
}


@pytest.mark.parametrize("name", _MUTANTS)
def test_schedules_find_a_defect(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, function, old, new, seed_count = _MUTANTS[name]
    text = textwrap.dedent(inspect.getsource(getattr(owner, function)))
    assert text.count(old) == 1, "the defect has its place in the code"
    module = sys.modules[getattr(owner, "__module__", owner.__name__)]
    made: dict[str, Any] = {}
    exec(text.replace(old, new), module.__dict__, made)
    for place in (owner, standing) if owner is peers else (owner,):
        monkeypatch.setattr(place, function, made[function])
    for seed in range(seed_count):
        try:
            _run(seed, 1200)
        except AssertionError:
            return
    pytest.fail(f"{seed_count} schedules do not find that {name}")
