"""The core of one member, told what happens and asked what it does: cluster specification 5 and 11."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

from headrace.cluster.consensus import actions as do
from headrace.cluster.consensus.core import Consensus
from headrace.cluster.consensus.peers import quorum_of
from headrace.cluster.consensus.standing import ConsensusConfig, Stored
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import (
    AppendPosition,
    CanvassPosition,
    CatchupPosition,
    CommitPosition,
    NewLeadershipTerm,
    RequestVote,
    StopCatchup,
    TransferLeadership,
    Vote,
)

_MS = 1_000_000
_E = ElectionState


class Driven:
    """A core whose tasks succeed at once, unless a test holds them; it keeps what the core has said."""

    def __init__(self, member_count: int = 3, *, member_id: int = 0, seed: int = 1, **stored: Any) -> None:
        config = ConsensusConfig(member_id=member_id, member_ids=tuple(range(member_count)))
        self.now = 1
        self.held: tuple[type, ...] = ()
        self.said: list[do.Action] = []
        self.core = Consensus(config, Stored(**stored), random.Random(seed), self.now)

    def tick(self, milliseconds: int = 0) -> None:
        self.now += milliseconds * _MS
        self.take(self.core.tick(self.now))

    def receive(self, message: do.Message) -> list[Any]:
        before = len(self.said)
        self.take(self.core.receive(message, self.now))
        return [one.message for one in self.said[before:] if isinstance(one, do.Send)]

    def take(self, actions: list[do.Action]) -> None:
        for action in actions:
            self.said.append(action)
            if isinstance(action, self.held):
                continue
            if isinstance(action, do.Send):
                self.take(self.core.done(action, self.now))
            elif isinstance(action, do.LeaveLog | do.TruncateLog | do.ReplicateLog):
                self.take(self.core.done(action, self.now, value=action.log_position))
            elif isinstance(action, do.CreateLog | do.JoinLog):
                self.take(self.core.done(action, self.now, value=7))
            elif isinstance(action, do.ReplayLog):
                self.take(self.core.read(action.end_position, self.now))
                self.take(self.core.done(action, self.now))
            elif isinstance(action, do.OpenLog):
                self.take(self.core.done(action, self.now, endpoint="here:1"))
            elif isinstance(action, do.AppendTerm):
                self.take(self.core.done(action, self.now, value=action.log_position + 96))

    def sent(self, kind: type) -> list[Any]:
        return [
            one.message for one in self.said if isinstance(one, do.Send) and isinstance(one.message, kind)
        ]

    def did(self, kind: type) -> list[Any]:
        return [one for one in self.said if isinstance(one, kind)]

    # --- ways --------------------------------------------------------------------------------------------------

    def canvassed(self, *logs: tuple[int, int]) -> None:
        """The others tell their logs."""
        for member_id, (term_id, position) in enumerate(logs, 1):
            self.receive(canvass(member_id, term_id, position))

    def stands(self, *logs: tuple[int, int]) -> int:
        """The member is nominated, and asks for votes; returns the term."""
        self.tick()
        self.canvassed(*logs)
        self.tick(500)
        assert self.core.state is _E.CANDIDATE_BALLOT
        return self.core.candidate_term_id

    def is_elected(self, *logs: tuple[int, int]) -> int:
        """All others vote for it."""
        term_id = self.stands(*logs)
        for member_id, (log_term_id, position) in enumerate(logs, 1):
            self.receive(vote(member_id, term_id, log_term_id, position))
        assert self.core.role is Role.LEADER
        return term_id


def canvass(member_id: int, term_id: int, position: int) -> CanvassPosition:
    return CanvassPosition(
        log_leadership_term_id=term_id,
        log_position=position,
        leadership_term_id=term_id,
        follower_member_id=member_id,
    )


def vote(member_id: int, term_id: int, log_term_id: int, position: int, *, is_for: bool = True) -> Vote:
    return Vote(
        candidate_term_id=term_id,
        log_leadership_term_id=log_term_id,
        log_position=position,
        candidate_member_id=0,
        follower_member_id=member_id,
        vote=is_for,
    )


def request(member_id: int, term_id: int, log_term_id: int, position: int) -> RequestVote:
    return RequestVote(
        log_leadership_term_id=log_term_id,
        log_position=position,
        candidate_term_id=term_id,
        candidate_member_id=member_id,
    )


def new_term(
    log_term_id: int,
    term_id: int,
    base: int,
    *,
    position: int | None = None,
    next_term: tuple[int, int, int] = (-1, -1, -1),
    commit: int = 0,
    leader: int = 1,
) -> NewLeadershipTerm:
    return NewLeadershipTerm(
        log_leadership_term_id=log_term_id,
        next_leadership_term_id=next_term[0],
        next_term_base_log_position=next_term[1],
        next_log_position=next_term[2],
        leadership_term_id=term_id,
        term_base_log_position=base,
        log_position=base if position is None else position,
        leader_recording_id=3,
        timestamp=0,
        leader_member_id=leader,
        log_session_id=9,
        is_startup=False,
        commit_position=commit,
    )


def appended(member_id: int, term_id: int, position: int, flags: int = 0) -> AppendPosition:
    return AppendPosition(
        leadership_term_id=term_id, log_position=position, follower_member_id=member_id, flags=flags
    )


def test_quorums() -> None:
    assert [quorum_of(count) for count in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]


# --- one member -----------------------------------------------------------------------------------------------------


def test_a_member_alone_stores_its_vote_and_leads() -> None:
    alone = Driven(1, candidate_term_id=4, terms=((0, 0), (1, 64)), append_position=128)
    alone.tick()
    assert alone.core.state is _E.CLOSED
    assert alone.core.role is Role.LEADER
    kinds = [type(one) for one in alone.said]
    assert kinds.index(do.StoreVote) < kinds.index(do.RecordTerm) < kinds.index(do.CreateLog)
    assert alone.did(do.Lead) == [do.Lead(5, 128, True)]
    assert alone.did(do.ReplayLog) == [do.ReplayLog(0, 128)]


def test_a_member_alone_commits_what_its_archive_has() -> None:
    alone = Driven(1)
    alone.tick()
    alone.take(alone.core.published(500, alone.now))
    assert alone.core.commit_position == 0
    alone.take(alone.core.recorded(480, alone.now))
    assert alone.did(do.SetCommitPosition)[-1] == do.SetCommitPosition(480)


def test_a_member_alone_stands_again_for_a_term_that_it_could_not_begin() -> None:
    alone = Driven(1)
    alone.held = (do.CreateLog,)
    alone.tick()
    alone.take(alone.core.failed(alone.did(do.CreateLog)[0], "no room", alone.now))
    assert alone.core.state is _E.INIT
    alone.tick(50)
    assert alone.core.state is _E.INIT, "it waits before it tries again"
    alone.held = ()
    alone.tick(60)
    assert alone.core.state is _E.CLOSED
    assert alone.core.leadership_term_id == 0
    assert len(alone.did(do.StoreVote)) == len(alone.did(do.RecordTerm)) == 1
    alone.take(alone.core.log_ended("recording stopped", alone.now))
    assert alone.core.leadership_term_id == 1, "a term that has begun is not begun again"


def test_what_a_task_brings_after_it_was_given_up_is_ignored() -> None:
    alone = Driven(1)
    alone.held = (do.CreateLog, do.LeaveLog)
    alone.tick()
    creation = alone.did(do.CreateLog)[0]
    alone.take(alone.core.failed(creation, "no room", alone.now))
    alone.take(alone.core.done(creation, alone.now, value=1))
    assert alone.core.state is _E.INIT


# --- canvass and votes ----------------------------------------------------------------------------------------------


def test_a_majority_waits_for_the_others_when_it_starts_and_all_members_do_not() -> None:
    member = Driven()
    member.tick()
    member.receive(canvass(1, -1, 0))
    member.tick(1000)
    assert member.core.state is _E.CANVASS
    member.receive(canvass(2, -1, 0))
    assert member.core.state is _E.CANDIDATE_BALLOT


def test_a_majority_is_enough_once_the_time_is_over() -> None:
    member = Driven()
    member.tick()
    member.receive(canvass(1, -1, 0))
    member.tick(60_000)
    assert member.core.state is _E.NOMINATE


def test_a_member_with_a_worse_log_does_not_stand() -> None:
    member = Driven(terms=((0, 0),), append_position=96)
    member.tick()
    member.canvassed((0, 128), (1, 96))
    member.tick(120_000)
    assert member.core.state is _E.CANVASS


def test_a_quorum_of_votes_elects_at_once() -> None:
    member = Driven()
    term_id = member.stands((-1, 0), (-1, 0))
    member.receive(vote(1, term_id, -1, 0))
    assert member.core.state is _E.LEADER_LOG_REPLICATION


def test_a_refusal_leaves_the_ballot_to_its_end_and_the_next_term_is_higher() -> None:
    member = Driven()
    term_id = member.stands((-1, 0), (-1, 0))
    member.receive(vote(2, term_id, -1, 0, is_for=False))
    member.receive(vote(1, term_id, -1, 0))
    assert member.core.state is _E.CANDIDATE_BALLOT
    member.tick(1000)
    assert member.core.state is _E.CANVASS
    assert member.stands((-1, 0), (-1, 0)) == term_id + 1


def test_a_vote_is_stored_before_it_is_sent_and_given_once_a_term() -> None:
    member = Driven()
    member.tick()
    (first,) = member.receive(request(1, 5, -1, 0))
    assert first.vote
    kinds = [type(one) for one in member.said]
    assert kinds.index(do.StoreVote) < len(kinds) - 1
    (second,) = member.receive(request(2, 5, -1, 0))
    assert not second.vote


def test_a_worse_log_gets_no_vote_and_its_term_is_stored_all_the_same() -> None:
    member = Driven(terms=((0, 0), (1, 96)), append_position=128)
    member.tick()
    (refusal,) = member.receive(request(1, 9, 0, 512))
    assert not refusal.vote
    assert member.did(do.StoreVote) == [do.StoreVote(9, 512)]


def test_a_member_whose_archive_lost_what_it_had_neither_votes_nor_stands() -> None:
    member = Driven(terms=((0, 0), (1, 640)), append_position=320)
    member.tick()
    assert not member.receive(request(1, 9, 1, 640))
    (refusal,) = member.receive(request(1, 9, 0, 96))
    assert not refusal.vote
    member.canvassed((-1, 0), (-1, 0))
    member.tick(120_000)
    assert member.core.state is _E.CANVASS


def test_a_replacement_neither_votes_nor_stands_until_it_has_followed_a_leader() -> None:
    member = Driven(is_replacement=True)
    member.tick()
    for _ in range(2):
        assert not member.receive(request(1, 9, 0, 96))
    member.canvassed((-1, 0), (-1, 0))
    member.tick(120_000)
    assert member.core.state is _E.CANVASS
    assert not member.did(do.StoreVote)
    member.receive(new_term(-1, 0, 0))
    assert member.core.leader_id == 1
    assert member.core.state is _E.CLOSED
    member.take(member.core.ended(1, member.now))
    (vote_for_other,) = member.receive(request(2, 9, 0, 96))
    assert vote_for_other.vote


def test_a_member_follows_no_leader_of_a_term_below_the_one_it_voted_in() -> None:
    member = Driven(terms=((0, 0),), append_position=96)
    member.tick()
    member.receive(request(2, 7, 0, 96))
    member.tick(1000)
    assert member.core.state is _E.CANVASS
    member.receive(new_term(0, 5, 96, next_term=(5, 96, 96)))
    # It stands instead, so that the cluster comes to a term that all can follow.
    assert member.core.state is _E.NOMINATE
    assert not member.sent(AppendPosition)
    assert not member.did(do.RecordTerm)


def test_a_member_whose_own_candidacy_failed_follows_a_leader_of_a_lower_term() -> None:
    member = Driven(terms=((0, 0),), append_position=96)
    member.stands((0, 96), (0, 96))
    member.tick(1000)
    assert member.core.state is _E.CANVASS
    member.receive(new_term(0, 0, 0, position=96, commit=96))
    assert member.core.role is Role.FOLLOWER
    assert member.core.leader_id == 1


# --- leading --------------------------------------------------------------------------------------------------------


def test_a_leader_waits_until_a_quorum_tells_its_position_under_the_term() -> None:
    member = Driven(terms=((0, 0),), append_position=96)
    term_id = member.is_elected((0, 96), (0, 96))
    member.tick(100)
    assert member.core.state is _E.LEADER_LOG_REPLICATION, "votes alone do not do"
    member.receive(appended(1, term_id - 1, 96))
    assert member.core.state is _E.LEADER_LOG_REPLICATION, "nor a position of the term before"
    member.receive(appended(1, term_id, 64))
    assert member.core.state is _E.LEADER_LOG_REPLICATION, "nor less than the whole log"
    assert member.sent(CommitPosition)[-1].log_position == 0
    member.receive(appended(1, term_id, 96))
    assert member.core.state is _E.CLOSED
    assert member.did(do.Lead) == [do.Lead(term_id, 96, True)]


def test_a_leader_tells_no_commit_position_before_a_quorum_has_the_log() -> None:
    """A follower of Aeron's would look for a leader again, instead of telling its position."""
    member = Driven(log_position=480, append_position=960, terms=((0, 0),))
    term_id = member.is_elected((0, 960), (0, 960))
    assert {one.commit_position for one in member.sent(NewLeadershipTerm)} == {0}
    assert {one.log_position for one in member.sent(CommitPosition)} == {0}
    member.receive(appended(1, term_id, 960))
    assert member.sent(CommitPosition)[-1].log_position == 960


def test_a_leader_commits_what_a_quorum_has_and_never_less() -> None:
    member = Driven()
    term_id = member.is_elected((-1, 0), (-1, 0))
    member.receive(appended(1, term_id, 0))
    member.take(member.core.recorded(640, member.now))
    assert member.core.commit_position == 0
    member.receive(appended(1, term_id, 320))
    assert member.core.commit_position == 320
    member.receive(appended(2, term_id, 960))
    assert member.core.commit_position == 640, "no more than its own archive has"
    member.tick(9000)
    member.receive(appended(1, term_id, 320))
    member.tick(2000)
    assert member.core.commit_position == 640
    assert member.sent(CommitPosition)[-1].log_position == 640


def test_a_leader_without_a_quorum_steps_down() -> None:
    member = Driven()
    term_id = member.is_elected((-1, 0), (-1, 0))
    member.receive(appended(1, term_id, 0))
    assert member.core.state is _E.CLOSED
    member.tick(10_000)
    assert member.core.role is Role.FOLLOWER
    assert member.core.state is _E.CANVASS
    assert member.did(do.LeaveLog)


def test_a_leader_steps_down_for_a_higher_term() -> None:
    for message in (
        request(1, 99, -1, 0),
        new_term(-1, 99, 0),
        CommitPosition(leadership_term_id=99, log_position=0, leader_member_id=1),
        canvass(1, 99, 0),
    ):
        member = Driven()
        term_id = member.is_elected((-1, 0), (-1, 0))
        member.receive(appended(1, term_id, 0))
        assert member.core.state is _E.CLOSED
        member.receive(message)
        assert member.core.role is Role.FOLLOWER, message


def test_a_leader_answers_a_member_for_the_last_term_of_its_log() -> None:
    member = Driven(terms=((0, 0), (1, 96), (2, 320)), append_position=640)
    term_id = member.is_elected((2, 640), (2, 640))
    member.receive(appended(1, term_id, 640))
    (answer,) = member.receive(canvass(2, 0, 64))
    assert (
        answer.log_leadership_term_id,
        answer.next_leadership_term_id,
        answer.next_term_base_log_position,
        answer.next_log_position,
    ) == (0, 1, 96, 320)
    (answer,) = member.receive(canvass(2, term_id, 640))
    assert answer.next_leadership_term_id == -1


def test_a_leader_replays_the_log_to_a_follower_until_that_has_all() -> None:
    member = Driven()
    term_id = member.is_elected((-1, 0), (-1, 0))
    member.receive(appended(1, term_id, 0))
    member.take(member.core.published(640, member.now))
    member.receive(
        CatchupPosition(
            leadership_term_id=term_id, log_position=0, follower_member_id=2, catchup_endpoint="there:9"
        )
    )
    assert member.did(do.StartCatchup) == [do.StartCatchup(2, 0, "there:9")]
    assert not member.receive(appended(2, term_id, 320, 1))
    (stop,) = (m for m in member.receive(appended(2, term_id, 640, 1)) if isinstance(m, StopCatchup))
    assert stop == StopCatchup(leadership_term_id=term_id, follower_member_id=2)
    assert member.did(do.StopReplay) == [do.StopReplay(2)]


def test_a_leader_under_load_replays_the_log_to_a_follower_until_that_keeps_pace() -> None:
    """Whenever a follower tells its position, the log has grown since."""
    member = Driven()
    term_id = member.is_elected((-1, 0), (-1, 0))
    member.receive(appended(1, term_id, 0))
    member.take(member.core.published(1_000_000, member.now))
    member.receive(
        CatchupPosition(
            leadership_term_id=term_id, log_position=0, follower_member_id=2, catchup_endpoint="there:9"
        )
    )
    for published, told in ((1_000_640, 900_000), (1_001_280, 1_000_640), (1_001_920, 1_001_216)):
        member.take(member.core.published(published, member.now))
        assert not member.receive(appended(2, term_id, told, 1)), (
            "it is far, or lacks what there was when it came near"
        )
    member.take(member.core.published(1_002_560, member.now))
    assert StopCatchup in map(type, member.receive(appended(2, term_id, 1_001_280, 1)))
    assert member.did(do.StopReplay) == [do.StopReplay(2)]


# --- following ------------------------------------------------------------------------------------------------------


def test_a_follower_records_the_term_before_it_tells_its_position() -> None:
    member = Driven(terms=((0, 0),), append_position=96)
    member.tick()
    member.receive(new_term(0, 3, 96, next_term=(3, 96, 96)))
    kinds = [type(one.message) if isinstance(one, do.Send) else type(one) for one in member.said]
    assert kinds.index(do.RecordTerm) < kinds.index(AppendPosition)


def test_a_follower_reads_its_own_log_no_further_than_it_is_committed() -> None:
    member = Driven(terms=((0, 0),), append_position=96)
    member.tick()
    member.receive(new_term(0, 3, 96, next_term=(3, 96, 96)))
    assert member.core.state is _E.FOLLOWER_REPLAY
    assert not member.did(do.ReplayLog)
    member.receive(CommitPosition(leadership_term_id=3, log_position=64, leader_member_id=1))
    assert member.did(do.ReplayLog) == [do.ReplayLog(0, 64)]
    member.receive(CommitPosition(leadership_term_id=3, log_position=96, leader_member_id=1))
    assert member.did(do.ReplayLog)[1:] == [do.ReplayLog(64, 96)]
    assert member.core.state is _E.CLOSED
    assert member.did(do.Follow) == [do.Follow(3, 96, 1)]


def test_a_follower_truncates_what_the_leader_does_not_have() -> None:
    member = Driven(terms=((0, 0),), append_position=960)
    member.tick()
    member.receive(new_term(0, 3, 320, next_term=(3, 320, 320)))
    assert member.did(do.TruncateLog) == [do.TruncateLog(320)]
    assert member.core.state is _E.CANVASS
    assert member.sent(CanvassPosition)[-1].log_position == 320


def test_a_term_that_begins_beyond_a_truncation_is_dropped_first() -> None:
    member = Driven(terms=((0, 0), (1, 640)), append_position=960)
    member.tick()
    member.receive(new_term(1, 3, 320, next_term=(2, 320, 320)))
    kinds = [type(one) for one in member.said]
    assert kinds.index(do.DropTerms) < kinds.index(do.TruncateLog)
    assert member.sent(CanvassPosition)[-1].log_leadership_term_id == 0


def test_a_follower_several_terms_behind_copies_one_term_a_round() -> None:
    member = Driven()
    member.tick()
    member.receive(new_term(-1, 2, 640, next_term=(0, 0, 320)))
    assert member.did(do.ReplicateLog) == [do.ReplicateLog(1, 3, 320)]
    assert member.sent(CanvassPosition)[-1] == CanvassPosition(
        log_leadership_term_id=0, log_position=320, leadership_term_id=2, follower_member_id=0
    )
    member.receive(new_term(0, 2, 640, next_term=(1, 320, 640)))
    assert member.did(do.ReplicateLog)[1:] == [do.ReplicateLog(1, 3, 640)]
    member.receive(new_term(1, 2, 640, next_term=(2, 640, 640), commit=640))
    assert member.core.state is _E.CLOSED
    assert [one.leadership_term_id for one in member.did(do.RecordTerm)] == [0, 1, 2]


def test_an_answer_for_another_log_is_asked_for_again() -> None:
    member = Driven(terms=((0, 0), (1, 64)), append_position=96)
    member.tick()
    member.receive(new_term(0, 3, 32, next_term=(3, 32, 32)))
    assert member.core.state is _E.CANVASS
    assert not member.did(do.TruncateLog)


def test_a_follower_catches_up_by_a_replay_and_goes_over_to_the_live_log() -> None:
    member = Driven(terms=((0, 0),), append_position=96)
    member.tick()
    member.receive(new_term(0, 0, 0, position=40_000_000, commit=96))
    assert member.core.state is _E.FOLLOWER_CATCHUP
    assert member.did(do.OpenLog) == [do.OpenLog(9, 96, True)]
    assert not member.did(do.AddLiveLog)
    for position in (20_000_000, 40_000_000):
        member.take(member.core.recorded(position, member.now))
        member.receive(CommitPosition(leadership_term_id=0, log_position=40_000_000, leader_member_id=1))
        assert member.core.readable_position == position
        member.take(member.core.read(position, member.now))
    assert member.did(do.AddLiveLog)
    member.receive(StopCatchup(leadership_term_id=5, follower_member_id=0))
    assert member.core.state is _E.FOLLOWER_CATCHUP, "a stop of another term is none"
    member.take(member.core.pause(True, member.now))
    member.receive(StopCatchup(leadership_term_id=0, follower_member_id=0))
    assert member.did(do.RemoveCatchup)
    assert member.core.state is _E.FOLLOWER_CATCHUP, "while it takes a snapshot it does not go on"
    member.take(member.core.pause(False, member.now))
    assert member.core.state is _E.CLOSED


def test_a_follower_that_is_always_a_little_behind_has_caught_up() -> None:
    """Under load each word of the leader names more than the member has."""
    member = Driven(terms=((0, 0),), append_position=96)
    member.tick()
    member.receive(new_term(0, 0, 0, position=640, commit=96))

    def more(recorded: int, agreed: int) -> None:
        member.receive(CommitPosition(leadership_term_id=0, log_position=agreed, leader_member_id=1))
        member.take(member.core.recorded(recorded, member.now))
        member.take(member.core.read(recorded, member.now))

    more(640, 704)
    member.receive(StopCatchup(leadership_term_id=0, follower_member_id=0))
    assert member.core.state is _E.FOLLOWER_CATCHUP
    more(672, 736)
    assert member.core.state is _E.FOLLOWER_CATCHUP
    more(704, 768)
    assert member.core.state is _E.CLOSED


def test_a_follower_misses_its_leader_after_the_time_out() -> None:
    member = follower()
    member.tick(9999)
    assert member.core.state is _E.CLOSED
    member.receive(CommitPosition(leadership_term_id=3, log_position=0, leader_member_id=1))
    member.tick(9999)
    assert member.core.state is _E.CLOSED
    member.tick(1)
    assert member.core.state is _E.CANVASS
    assert member.core.election_count == 2


def test_a_leader_that_ends_in_order_is_not_waited_for() -> None:
    member = follower()
    member.take(member.core.log_ended("eos", member.now, is_end_of_stream=True))
    member.receive(canvass(2, 3, 0))
    assert member.core.state is _E.CANDIDATE_BALLOT


def test_messages_of_strangers_change_nothing() -> None:
    member = Driven()
    member.tick()
    for message in (
        canvass(8, 9, 9),
        request(8, 9, 9, 9),
        vote(8, 0, 0, 0),
        new_term(-1, 3, 0, leader=8),
        appended(8, 0, 0),
    ):
        assert not member.receive(message)
    assert member.core.state is _E.CANVASS
    assert member.core.candidate_term_id == -1


def follower() -> Driven:
    """A member that follows member 1 in term 3, with an empty log."""
    member = Driven()
    member.tick()
    member.receive(new_term(-1, 3, 0, next_term=(3, 0, 0)))
    assert member.core.state is _E.CLOSED
    assert member.core.role is Role.FOLLOWER
    return member


# --- another leader in order ----------------------------------------------------------------------------------------


def transfer(successor_id: int) -> TransferLeadership:
    """Member 1, which leads term 3, names its successor."""
    return TransferLeadership(
        leadership_term_id=3, log_position=0, leader_member_id=1, successor_member_id=successor_id
    )


def test_the_successor_of_a_leader_stands_with_a_quorum_and_without_delay() -> None:
    member = follower()
    member.receive(transfer(0))
    assert member.core.state is _E.CANVASS
    member.receive(canvass(2, 3, 0))
    assert member.core.state is _E.CANDIDATE_BALLOT


def test_no_other_member_stands_before_the_successor_had_its_time() -> None:
    member = follower()
    member.receive(transfer(2))
    member.receive(canvass(2, 3, 0))
    assert member.core.state is _E.CANVASS
    member.tick(1001)
    assert member.core.state is not _E.CANVASS


def test_a_transfer_of_another_term_is_passed_over() -> None:
    member = follower()
    member.receive(dataclasses.replace(transfer(0), leadership_term_id=2))
    assert member.core.state is _E.CLOSED


def test_a_leader_whose_process_has_ended_is_not_waited_for() -> None:
    member = follower()
    member.take(member.core.ended(2, member.now))
    assert member.core.state is _E.CLOSED
    member.take(member.core.ended(1, member.now))
    member.receive(canvass(2, 3, 0))
    assert member.core.state is _E.CANDIDATE_BALLOT


@pytest.mark.parametrize(
    ("held", "state"),
    [
        (do.ReplicateLog, _E.FOLLOWER_LOG_REPLICATION),
        (do.ReplayLog, _E.FOLLOWER_REPLAY),
        (do.OpenLog, _E.FOLLOWER_LOG_INIT),
        (do.JoinLog, _E.FOLLOWER_LOG_AWAIT),
    ],
)
def test_a_leader_that_ends_before_it_is_followed_is_not_waited_for(
    held: type[do.Task], state: ElectionState
) -> None:
    base = 96 if held is do.ReplicateLog else 64
    member = Driven(terms=((0, 0),), append_position=64)
    member.held = (held,)
    member.tick()
    member.receive(new_term(0, 3, base, next_term=(3, base, base), commit=base))
    assert member.core.state is state
    member.take(member.core.ended(2, member.now))
    assert member.core.state is state, "another one has ended"
    member.take(member.core.ended(1, member.now))
    assert member.core.leader_id == -1
    member.receive(canvass(2, 0, 0))
    assert member.core.state is _E.CANDIDATE_BALLOT


def test_the_end_of_a_process_is_no_news_to_a_member_without_a_leader() -> None:
    member = Driven()
    member.tick()
    for member_id in (-1, 0, 1):
        member.take(member.core.ended(member_id, member.now))
    assert member.core.state is _E.CANVASS
    assert not member.did(do.LeaveLog)


def test_a_repeated_request_gets_the_vote_again() -> None:
    member = Driven(terms=((0, 0),), append_position=96)
    member.tick()
    for _ in range(2):
        member.receive(request(2, 7, 0, 96))
    sent = [one.message for one in member.said if isinstance(one, do.Send)]
    assert [message.vote for message in sent if isinstance(message, Vote)] == [True, True]
