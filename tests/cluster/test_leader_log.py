"""Up to which entry a leader's services may read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from headrace.cluster.member.leader_log import LeaderLog


def log_at(position: int) -> tuple[LeaderLog, SimpleNamespace]:
    """The log of a leader that has appended up to a position, and its publication."""
    context = SimpleNamespace(config=None, client=None)
    log = LeaderLog(cast("Any", context), cast("Any", None), cast("Any", None))
    publication = SimpleNamespace(position=position)
    log.writer = cast("Any", SimpleNamespace(publication=publication))
    return log, publication


def test_an_entry_that_is_recorded_before_its_turn_ends_is_committed_with_it() -> None:
    log, publication = log_at(96)
    assert log.end_of_entry(96) == 96
    publication.position = 256
    assert log.end_of_entry(256) == 256


def test_a_position_within_an_entry_is_that_before_it() -> None:
    log, publication = log_at(96)
    log.note_turn()
    publication.position = 4096
    log.note_turn()
    assert log.end_of_entry(1024) == 96
    assert log.end_of_entry(2048) is None
    assert log.end_of_entry(4096) == 4096
