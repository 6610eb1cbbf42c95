"""Elections that fail again and again: the member stands for one term until it leads that."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.archive.client import requests
from headrace.cluster.log.recording_log import RecordingLog
from headrace.cluster.mark_file import ClusterMarkFile
from headrace.testing import World
from tests.cluster.members import Member


@pytest.fixture
def member() -> Iterator[Member]:
    with World(20261129) as world:
        member = Member(world, world.add_node("leader"))
        member.await_leader()
        yield member


def stop_recording(member: Member) -> None:
    recording_id = member.context.recording_log.last_term.recording_id
    member.context.archive.ask(requests.stop_recording_by_id(recording_id))


@pytest.mark.parametrize("is_written", [False, True], ids=["not written", "written and not forced"])
def test_a_term_that_no_file_takes_is_stood_for_again(
    member: Member, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    append = RecordingLog.append_term
    tries = 0

    def full(log: RecordingLog, *values: Any) -> Any:
        nonlocal tries
        tries += 1
        if is_written and tries == 1:
            append(log, *values)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RecordingLog, "append_term", full)
        stop_recording(member)
        member.until(lambda: tries > 50, "many elections that fail")
    # A term that has come into the recording log is not led twice.
    term_id = 2 if is_written else 1
    assert member.context.node_state.candidate_term.term_id == term_id
    member.until(lambda: member.module.is_leader and member.module.election_failure == "", "a new term")
    assert member.module.leadership_term_id == term_id
    assert [term.leadership_term_id for term in member.context.recording_log] == list(range(term_id + 1))
    member.restart(keeps_writes=True)
    assert member.module.leadership_term_id == term_id + 1


def test_what_is_told_of_a_failure_may_close_a_module_that_is_stepped(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes after the turn, which goes on."""
    told: list[tuple[str, bool]] = []

    def close(text: str) -> None:
        member.module.close()
        told.append((text, member.module.is_closed))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(member.module._log, "_on_error", close)
    monkeypatch.setattr(ClusterMarkFile, "update", refuse)
    member.until(lambda: member.module.is_closed, "the end")
    assert "cannot say in the mark file that this module runs" in told[0][0]
    assert not told[0][1]
    assert member.module.failure is None
