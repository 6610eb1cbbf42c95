"""Where a service is asked for a hash, and what a leader makes of those of all members."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.cluster import ClusteredService
from headrace.cluster.errors import ClusterTerminalError
from headrace.cluster.member.divergence import StateComparison
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import Divergence, MemberStateHash
from headrace.cluster.protocol.control import StateHash
from headrace.cluster.service.batch_runs import MessageBatch
from headrace.cluster.service.state_hash import StateHashes
from headrace.testing import World
from tests.cluster.scripted import Recorder, Rig

MIB = 1 << 20


class Hashed(ClusteredService):
    def state_hash(self) -> int:
        return 7


def test_a_service_is_asked_at_the_end_of_the_entry_that_crosses_a_place() -> None:
    hashes = StateHashes(Hashed())
    assert hashes.limit(3 * MIB) == MIB
    assert hashes.due(MIB - 32) is None
    assert hashes.due(MIB + 64) == hashes.now()
    assert hashes.limit(3 * MIB) == 2 * MIB


class Counting(Recorder):
    def state_hash(self) -> int:
        return len(self.state)


class CountingBatches(Counting):
    def on_session_messages(self, batch: MessageBatch) -> None:
        self.state += batch


@pytest.mark.parametrize("length", [100, 6600], ids=["one frame", "five frames"])
def test_each_kind_of_service_is_asked_after_the_entry_that_crosses_a_place_and_reads_on(length: int) -> None:
    """The place is the end of a term, which has padding before it."""
    told = []
    for kind in (Counting, CountingBatches):
        with World(5) as world:
            rig = Rig(world)
            service = kind()
            module, _ = rig.started(service)
            module.term()
            count = 0
            while (module.log.position or 0) < MIB + 20_000:
                for _ in range(5):
                    module.message(-1, bytes(length))
                    count += 1
                rig.until(lambda service=service, count=count: len(service.state) == count)
            told.append(module.next(StateHash))
            assert MIB < told[-1].log_position < MIB + length + 500
    assert told[0] == told[1]


def test_a_service_without_a_hash_is_not_asked() -> None:
    hashes = StateHashes(ClusteredService())
    assert hashes.limit(3 * MIB) == 3 * MIB
    assert (hashes.due(3 * MIB), hashes.now()) == (None, None)


class Sent:
    """The other members, of whom it keeps what they are sent."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, Any]] = []

    def __len__(self) -> int:
        return 2

    def send(self, member_id: int, message: Any) -> bool:
        self.messages.append((member_id, message))
        return True


def comparison(role: Role) -> tuple[StateComparison, Sent]:
    """That of member 0 of three."""
    errors: list[str] = []
    context = SimpleNamespace(
        config=SimpleNamespace(member_id=0),
        role=role,
        leadership_term_id=4,
        leader_member_id=0 if role is Role.LEADER else 1,
        log=SimpleNamespace(error=errors.append),
    )
    sent = Sent()
    return StateComparison(cast("Any", context), cast("Any", sent)), sent


def of_member(member_id: int, state_hash: int, position: int = 640) -> MemberStateHash:
    return MemberStateHash(
        leadership_term_id=4, log_position=position, hash=state_hash, member_id=member_id, service_id=0
    )


def test_a_follower_tells_its_leader() -> None:
    states, sent = comparison(Role.FOLLOWER)
    states.on_service(StateHash(log_position=640, service_id=0, hash=5))
    assert sent.messages == [(1, of_member(0, 5))]


def test_the_member_that_is_alone_is_told_whenever_it_tells() -> None:
    states, sent = comparison(Role.LEADER)
    states.on_member(of_member(2, 6))
    states.on_service(StateHash(log_position=640, service_id=0, hash=5))
    assert not sent.messages
    states.on_member(of_member(1, 5))
    found = Divergence(leadership_term_id=4, log_position=640, service_id=0)
    assert sent.messages == [(2, found)]
    states.on_member(of_member(2, 6))
    assert sent.messages == [(2, found)] * 2


def test_a_leader_that_is_alone_stops() -> None:
    states, _ = comparison(Role.LEADER)
    states.on_service(StateHash(log_position=640, service_id=0, hash=5))
    states.on_member(of_member(1, 6))
    with pytest.raises(ClusterTerminalError, match="at log_position=640"):
        states.on_member(of_member(2, 6))


def test_states_at_different_positions_are_not_compared() -> None:
    states, sent = comparison(Role.LEADER)
    states.on_service(StateHash(log_position=640, service_id=0, hash=5))
    for member_id in (1, 2):
        states.on_member(of_member(member_id, 6, 960))
    assert not sent.messages
