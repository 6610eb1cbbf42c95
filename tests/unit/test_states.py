"""The tables of states, and the one place where a state changes."""

from __future__ import annotations

import pytest

from headrace import _core
from headrace._states import Life, StateTable, name_of
from headrace.archive.server.states import REPLAY, TABLES, ReplayState
from headrace.event_log import EVENT_KINDS


class Told:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []
        self.defects: list[str] = []

    def changed(self, kind: str, id: int, old: str, new: str, reason: str, **further: object) -> None:
        self.changes.append((old, new, reason))

    def defect(self, text: str) -> None:
        self.defects.append(text)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_every_state_can_be_reached_and_has_a_meaning(table: StateTable) -> None:
    states = type(next(iter(table.meanings)))
    assert list(table.meanings) == list(table.transitions) == list(states)
    reached = [next(iter(states))]
    for state in reached:
        reached += [following for following in table.transitions[state] if following not in reached]
    assert set(reached) == set(states)
    assert all(meaning.endswith(".") for meaning in table.meanings.values())
    assert all(state not in following for state, following in table.transitions.items())


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_what_the_table_has_is_done_and_everything_else_refused(table: StateTable) -> None:
    for old in table.meanings:
        for new in table.meanings:
            life, told = Life(table), Told()
            life.begin(told, "begins", 7)
            life.state = old
            life.enter(new, "why")
            is_allowed = new in table.transitions[old]
            assert life.state is (new if is_allowed else old)
            assert told.changes[1:] == ([(name_of(old), name_of(new), "why")] if is_allowed else [])
            assert len(told.defects) == (not is_allowed and new is not old)


def test_a_refused_change_names_what_and_why() -> None:
    life, told = Life(REPLAY), Told()
    life.begin(told, "begins", 7)
    life.enter(ReplayState.REPLAYING, "too soon")
    assert told.defects == ["replay 7 must not go from Init to Replaying: too soon"]


def test_kinds_have_names_of_their_own() -> None:
    kinds = [table["kind"] for table in _core.state_tables()] + [table.kind for table in TABLES]
    assert len(kinds) >= 12
    assert len(set(kinds)) == len(kinds)
    assert tuple(kinds) == EVENT_KINDS
