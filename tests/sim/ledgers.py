"""Ledgers in clusters of several: what their clients send, and what must hold once members agree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.testing.cluster import ClusterMember, ClusterWorld, SimulatedClient
from tests.sim.histories import Call, check_history
from tests.sim.ledger import Ledger, registered

KINDS = ("put", "put", "append", "get", "timer", "later", "move", "again", "cancel", "self", "close")
KEYS = ("x", "y", "z")
# Longer than wall clocks differ: a timer that was set by one that is ahead waits for the others.
_WITHIN_S = 100.0


@dataclass
class Commands:
    """What one client sends: each has another number."""

    name: str
    kinds: tuple[str, ...] = KINDS
    count: int = 0

    def __call__(self, chance: random.Random) -> bytes:
        self.count += 1
        argument = f"{self.name}.{self.count}"
        filling = "x" * chance.choice((0, 0, 10, 10, 3000))
        kind, key = chance.choice(self.kinds), chance.choice(KEYS)
        return f"{kind} {self.name} {self.count} {key} {argument} {filling}".encode()


def check_ledgers(cluster: ClusterWorld) -> None:
    """Once members agree: timers, messages of services to themselves, sessions, and the histories of the clients."""
    cluster.run_until(
        lambda: all(_timers_are_over(member) for member in cluster.members),
        within_s=_WITHIN_S,
        what="the timers that are due",
    )
    cluster.await_agreement()
    for member in cluster.members:
        _check_own_messages(_ledger_of(member))
        _check_sessions(member)
    if not cluster.rules.has_lost:
        positions = {message.payload: message.position for message in cluster.rules.messages()}
        calls = [call for client in cluster.clients for call in _calls(client, positions)]
        check_history(calls, registered, "")


def _ledger_of(member: ClusterMember) -> Ledger:
    assert isinstance(member.service, Ledger)
    return member.service


def _timers_are_over(member: ClusterMember) -> bool:
    ledger = _ledger_of(member)
    return not set(ledger.due) - set(ledger.waiting)


def _check_own_messages(ledger: Ledger) -> None:
    texts = [entry.text for entry in ledger.entries]
    echoes = [text for text in texts if text.startswith("echo of ")]
    wanted = [f"echo of {text}" for text in texts if text.startswith("self ")]
    assert echoes == wanted, "messages of the service to itself are not there once each, in order"


def _check_sessions(member: ClusterMember) -> None:
    assert member.module is not None, "all members are there"
    sessions, ledger = member.module._context.applied.sessions, _ledger_of(member)
    known, opened = sorted(one.session_id for one in sessions), sorted(ledger.open_ids)
    assert known == opened, f"the module of {member} knows sessions {known}, and its service {opened}"
    highest = max(ledger.known_ids, default=0)
    assert sessions.next_committed_id == highest + 1, (
        f"a snapshot of {member} would have {sessions.next_committed_id} as the next session, after {highest}"
    )


def _calls(client: SimulatedClient, positions: dict[bytes, int]) -> Iterator[Call]:
    answers = {}
    for answer in client.answers:
        _, value, text = answer.payload.decode().split("|", 2)
        assert text not in answers, f"a second answer to {text[:60]}"
        answers[text] = answer, value
    for sent in client.sent:
        text = sent.payload.decode()
        kind, _, _, key, argument, _ = text.split(" ", 5)
        call = Call((sent.session_id, sent.leadership_term_id), key, (kind, argument), sent.sent_ns)
        call.position = positions.get(sent.payload, 0)
        if text in answers:
            answer, call.answer = answers[text]
            call.returned_ns = answer.received_ns
            assert answer.position == call.position, f"{call}: answered for position {answer.position}"
        yield call
