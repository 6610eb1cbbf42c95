"""The tables of states, and the one place where a state changes."""

from __future__ import annotations

import contextlib
import logging

import pytest

from headrace import _core
from headrace._base.states import Life, LoggedEvents, StateError, StateTable, name_of
from headrace.archive.client.following.states import FOLLOW
from headrace.archive.server.states import REPLAY, ReplayState
from headrace.archive.server.states import TABLES as ARCHIVE
from headrace.client._reconnecting_states import RECONNECTING_CLIENT, ConnectionState
from headrace.cluster.backup.states import TABLES as BACKUP
from headrace.cluster.client.states import TABLES as CLUSTER_CLIENT
from headrace.cluster.member.states import TABLES as MEMBER
from headrace.cluster.member.states import ModuleState
from headrace.event_log import EVENT_KINDS

LOGGED = (*ARCHIVE, *MEMBER, *BACKUP)
TABLES = (*LOGGED, RECONNECTING_CLIENT, FOLLOW, *CLUSTER_CLIENT)


class Told:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []

    def changed(self, kind: str, id: int, old: str, new: str, reason: str, **further: object) -> None:
        self.changes.append((old, new, reason))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_every_state_can_be_reached_and_has_a_meaning(table: StateTable) -> None:
    states = type(next(iter(table.meanings)))
    assert list(table.meanings) == list(table.transitions) == list(states)
    reached = [next(iter(states))]
    for state in reached:
        reached += [following for following in table.transitions[state] if following not in reached]
    assert set(reached) | {ModuleState.QUITTING} >= set(states), (
        "the specification has that one, and no use of it"
    )
    assert all(meaning.endswith(".") for meaning in table.meanings.values())
    assert all(state not in following for state, following in table.transitions.items())


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_what_the_table_has_is_done_and_everything_else_refused(table: StateTable) -> None:
    for old in table.meanings:
        for new in table.meanings:
            life, told = Life(table), Told()
            life.begin(told, "begins", 7)
            life.state = old
            is_allowed = new in table.transitions[old]
            with contextlib.nullcontext() if is_allowed or new is old else pytest.raises(StateError):
                life.enter(new, "why")
            assert life.state is (new if is_allowed else old)
            assert told.changes[1:] == ([(name_of(old), name_of(new), "why")] if is_allowed else [])


def test_a_refused_change_names_what_and_why() -> None:
    life = Life(REPLAY)
    life.begin(Told(), "begins", 7)
    with pytest.raises(StateError, match="replay 7 must not go from Init to Replaying: too soon"):
        life.enter(ReplayState.REPLAYING, "too soon")


def test_a_life_that_has_not_begun_changes_nothing() -> None:
    life = Life(REPLAY)
    with pytest.raises(StateError, match="replay has not begun, and must not go to Connecting: why"):
        life.enter(ReplayState.CONNECTING, "why")
    assert life.state is ReplayState.INIT


def test_a_client_logs_its_changes(caplog: pytest.LogCaptureFixture) -> None:
    life = Life(RECONNECTING_CLIENT)
    with caplog.at_level(logging.DEBUG):
        life.begin(LoggedEvents(logging.getLogger("headrace.client")), "the driver answers", 7)
        life.enter(ConnectionState.CLOSED, "the program closes it")
    assert [record.getMessage() for record in caplog.records] == [
        "reconnecting-client 7: Connected: the driver answers",
        "reconnecting-client 7: Connected -> Closed: the program closes it",
    ]


def test_kinds_have_names_of_their_own() -> None:
    driver = [table["kind"] for table in _core.state_tables()]
    kinds = driver + [table.kind for table in TABLES]
    assert len(set(kinds)) == len(kinds)
    assert (*driver, *(table.kind for table in LOGGED)) == EVENT_KINDS
