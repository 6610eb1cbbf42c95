"""Elections that fail again and again: the member stands for one term until it leads that."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from headrace.archive.client import calls
from headrace.cluster.consensus.actions import LeaveLog
from headrace.cluster.files.mark_file import ClusterMarkFile
from headrace.cluster.files.recording_log import RecordingLog
from headrace.cluster.member.election import Election
from headrace.event_log import read_events
from headrace.testing import World
from tests.cluster.members import Member
from tests.consensus.test_core import follower as following


@pytest.fixture
def member() -> Iterator[Member]:
    with World(20261129) as world:
        member = Member(world, world.add_node("leader"))
        member.await_leader()
        yield member


def stop_recording(member: Member) -> None:
    recording_id = member.context.recording_log.last_term.recording_id
    member.context.archive.ask(calls.stop_recording_by_id(recording_id))


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
        # A term that was written is there when the member stands for it again.
        member.until(lambda: tries > (0 if is_written else 50), "elections that fail")
    term_id = 1
    assert member.context.node_state.candidate_term.term_id == term_id
    member.until(lambda: member.module.is_leader and member.module.election_failure == "", "a new term")
    assert member.module.leadership_term_id == term_id
    assert [term.leadership_term_id for term in member.context.recording_log] == [0, term_id]
    member.restart(keeps_writes=True)
    assert member.module.leadership_term_id == term_id + 1


def test_the_event_log_of_a_member_has_its_elections(member: Member) -> None:
    stop_recording(member)
    member.until(lambda: member.module.leadership_term_id == 1 and member.module.is_leader, "the next term")
    directory = member.node.disk("cluster").event_directory
    changes = [(event.kind, event.old, event.new) for event in read_events(directory)]
    assert changes[0] == ("consensus-module", "", "Init")
    assert ("election", "Leader_ready", "Closed") in changes
    left = next(event for event in read_events(directory) if (event.old, event.new) == ("Closed", "Init"))
    assert left.reason == "log recording stopped: eos=false"


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


def test_a_follower_reads_on_that_left_its_log_during_a_snapshot() -> None:
    """What it read then was given up; the next log must not be thought of as paused, or its catch-up never ends."""
    member = following()
    now = Mock(return_value=member.now)
    election = Mock(core=member.core, _peers=None, _context=Mock(commit_position=0), _now_ns=now)
    for is_busy in (True, False):
        election._log.followed = Mock(is_reading=True, is_busy=is_busy, poll=Mock(return_value=0))
        Election._read(election)
        assert member.core.is_paused is is_busy
        if is_busy:
            Election._begin_task(election, LeaveLog(0))
