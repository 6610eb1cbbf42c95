"""Random schedules of three and five members, and defects put in on purpose, which the schedules must find."""

from __future__ import annotations

import pytest

from headrace.cluster.consensus import canvassing, following, leading, peers, standing, terms
from headrace.cluster.consensus.states import ElectionState
from tests.consensus.model import Model
from tests.mutants import Edit, Mutant
from tests.sim.seeded import SECONDS, run_new_seeds

_BLOCK = 10_000
_STEPS = 300
# A member that has voted knows no leader, and one that is ready follows in the same step.
_FOLLOWS = {state for state in ElectionState if state.name.startswith("FOLLOWER")} - {
    ElectionState.FOLLOWER_BALLOT,
    ElectionState.FOLLOWER_READY,
}
# So many schedules are looked at for progress too, which takes long.
_SETTLED = 20


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

_LEADING, _FOLLOWING, _CANVASSING = leading.Leading, following.Following, canvassing.Canvassing


def _mutant(
    rules: tuple[int, ...], name: str, owner: object, function: str, old: str, new: str, within: int
) -> Mutant:
    return Mutant(name, rules, (Edit(owner, function, old, new),), within)


_MUTANTS = [
    _mutant(
        (1,),
        "a vote is not stored",
        standing.Standing,
        "store_vote",
        "self.emit(StoreVote(term_id, log_position))",
        "pass",
        100,
    ),
    _mutant(
        (1,),
        "a member votes twice in a term",
        _CANVASSING,
        "on_request_vote",
        "<= standing.candidate_term_id",
        "< standing.candidate_term_id",
        100,
    ),
    _mutant(
        (2,),
        "a worse log gets a vote",
        _CANVASSING,
        "on_request_vote",
        "if standing.log > candidate",
        "if False",
        8000,
    ),
    _mutant(
        (2,),
        "a vote of another term counts",
        _CANVASSING,
        "on_vote",
        "vote.candidate_term_id != standing.candidate_term_id",
        "False",
        8000,
    ),
    _mutant(
        (4, 7),
        "a quorum is too small",
        peers,
        "quorum_of",
        "member_count // 2 + 1",
        "max(1, member_count // 2)",
        100,
    ),
    _mutant(
        (4,),
        "a leader commits more than it has",
        peers,
        "quorum_position",
        "min(own_position, positions[quorum - 1])",
        "positions[quorum - 1]",
        1000,
    ),
    _mutant(
        (8, 33),
        "a position of an older log counts",
        _LEADING,
        "on_canvass",
        "if is_of_term else NULL_VALUE",
        "",
        8000,
    ),
    _mutant(
        (8,),
        "entries of earlier terms are committed by count",
        _LEADING,
        "_agree",
        "position >= self._base and ",
        "",
        8000,
    ),
    _mutant(
        (13,),
        "a leader does not record its term",
        _LEADING,
        "begin",
        "standing.emit(RecordTerm(standing.term_id, self._base))",
        "pass",
        8000,
    ),
    _mutant(
        (13,),
        "a follower does not record the term",
        _FOLLOWING,
        "_record_term",
        "self._standing.emit(RecordTerm(term_id, base))",
        "pass",
        8000,
    ),
    _mutant(
        (13,),
        "skipped terms are not recorded",
        terms.Terms,
        "begin",
        "range(max(self.last_id + 1, 0), term_id + 1)",
        "(term_id,)",
        8000,
    ),
    _mutant(
        (7,),
        "a leader does not wait for a quorum",
        _LEADING,
        "work_log_replication",
        " and self._quorum_position() >= self._base",
        "",
        8000,
    ),
    _mutant(
        (6,),
        "a follower replays what is not committed",
        _FOLLOWING,
        "work_replay",
        "min(standing.append_position, standing.agreed_position)",
        "standing.append_position",
        8000,
    ),
    _mutant(
        (9,),
        "a follower keeps what is not committed",
        _FOLLOWING,
        "on_new_term",
        "next_base < standing.append_position",
        "False",
        1000,
    ),
    _mutant(
        (9,),
        "a follower cuts off too little",
        _FOLLOWING,
        "_truncate",
        "TruncateLog(position)",
        "TruncateLog(position + 1)",
        1000,
    ),
    _mutant(
        (10,),
        "a follower takes an answer for another log",
        _FOLLOWING,
        "on_new_term",
        "term.log_leadership_term_id != standing.terms.last_id",
        "False",
        8000,
    ),
]


@pytest.mark.parametrize("mutant", _MUTANTS, ids=lambda mutant: mutant.name)
def test_schedules_find_a_defect(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.apply(monkeypatch)
    for seed in range(mutant.within):
        try:
            model = _run(seed, 1200)
            assert seed >= _SETTLED or model.settles(600)
        except AssertionError:
            return
    pytest.fail(f"{mutant.within} schedules do not find that {mutant.name}")
