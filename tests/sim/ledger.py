"""A service for the simulated world: it keeps all that it was told, and has registers that clients write and read."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

from headrace.cluster import ClientSession, Cluster, ClusteredService
from headrace.cluster.protocol.codes import CloseReason

__all__ = ["Entry", "Ledger", "Oracle", "registered"]

_TIMER_MS = 50
# Longer than the clocks of a run go on: such a timer fires only once it is moved.
_FAR_MS = 3_600_000
_TIMERS = ("timer", "later", "move", "again", "cancel")
# A register that is appended to keeps so much.
_REGISTER_LENGTH = 40


class Entry(NamedTuple):
    """What the service was told."""

    position: int
    timestamp: int
    text: str


def registered(value: str, command: tuple[str, str]) -> tuple[str, str]:
    """What a register has after a command, and the answer to it."""
    kind, argument = command
    if kind == "put":
        return argument, value
    if kind == "append":
        after = f"{value}.{argument}"[-_REGISTER_LENGTH:]
        return after, after
    return value, value


class Oracle:
    """What holds whatever happens: the same state at the same position of the log, in each life of the service.

    A handler that raises goes to the error log, and the log goes on: so faults are kept here for the world to find.
    """

    def __init__(self) -> None:
        self.digests: dict[int, int] = {}
        self.faults: list[str] = []

    def note(self, position: int, digest: int, what: str) -> None:
        """The service is in a state after the entry that ends at a position."""
        if self.digests.setdefault(position, digest) != digest:
            self.faults.append(
                f"log position {position}: another state than in an earlier life, after {what[:60]!r}"
            )

    def insist(self, is_so: bool, what: str) -> None:
        """Keep a fault, unless it is so."""
        if not is_so:
            self.faults.append(what)


class Ledger(ClusteredService):
    """Answers each command with how many entries there are, and what its register answers."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.entries: list[Entry] = []
        self.registers: dict[str, str] = {}
        # Of each timer, those for which no event has come.
        self.deadlines: dict[int, list[int]] = {}
        # The last deadline, of timers of which no event has come since then.
        self.due: dict[int, int] = {}
        self.cancelled: set[int] = set()
        # Timers that are not due before they are moved.
        self.waiting: list[int] = []
        self.open_ids: list[int] = []
        self.known_ids: list[int] = []
        self.digest = 0
        self.fails_snapshot = False

    # --- snapshots -------------------------------------------------------------------------------------------------

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        if snapshot is None:
            return
        for message in snapshot:
            kind, *value = json.loads(message)
            if kind == "entry":
                self._keep(Entry(*value))
            else:
                self.registers, deadlines, due, cancelled, self.waiting, self.open_ids, self.known_ids = value
                self.deadlines = {int(number): times for number, times in deadlines.items()}
                self.due = {int(number): deadline for number, deadline in due.items()}
                self.cancelled = set(cancelled)
        found = [session.id for session in cluster.sessions]
        self.oracle.insist(
            # By id; they may have opened in another order.
            found == sorted(self.open_ids),
            f"sessions {found} of a snapshot, and {self.open_ids} were open",
        )
        self.oracle.note(cluster.log_position, self.digest, "a snapshot")

    def on_take_snapshot(self) -> Iterable[bytes]:
        if self.fails_snapshot:
            self.fails_snapshot = False
            raise RuntimeError("the world has this snapshot fail")
        self.oracle.note(self.cluster.log_position, self.digest, "the entry before a snapshot")
        timers = self.deadlines, self.due, sorted(self.cancelled), self.waiting
        yield json.dumps(("rest", self.registers, *timers, self.open_ids, self.known_ids)).encode()
        for entry in self.entries:
            yield json.dumps(("entry", *entry)).encode()

    # --- entries of the log ----------------------------------------------------------------------------------------

    def on_session_open(self, session: ClientSession, timestamp: int) -> None:
        self.oracle.insist(session.id not in self.known_ids, f"session {session.id} is opened a second time")
        self.known_ids.append(session.id)
        self.open_ids.append(session.id)
        self._add(timestamp, f"open {session.id}")

    def on_session_close(self, session: ClientSession, timestamp: int, reason: CloseReason) -> None:
        self.oracle.insist(session.id in self.open_ids, f"session {session.id} closes, and is not open")
        self.open_ids.remove(session.id)
        self._add(timestamp, f"close {session.id} {reason.name}")

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        text = message.decode()
        self.oracle.insist(
            session is None or session.id in self.open_ids, f"a session that is not open sends {text[:40]!r}"
        )
        self._add(timestamp, text)
        if session is None:
            return
        kind, _, _, key, argument, _ = text.split(" ", 5)
        self.registers[key], answer = registered(self.registers.get(key, ""), (kind, argument))
        if kind in _TIMERS:
            self._set_timer(kind, timestamp)
        elif kind == "self":
            self._insist(lambda: self.cluster.offer(f"echo of {text}".encode()) > 0)
        elif kind == "close":
            self._insist(lambda: self.cluster.close_session(session.id))
        session.offer(f"{len(self.entries)}|{answer}|{text}".encode())

    def _set_timer(self, kind: str, timestamp: int) -> None:
        number = len(self.deadlines)
        is_later = len(self.entries) % 2 == 0
        if kind == "timer":
            self._schedule(number + 1, timestamp + _TIMER_MS)
        elif kind == "later":
            self.waiting.append(number + 1)
            self._schedule(number + 1, timestamp + _FAR_MS)
        elif kind == "move" and self.waiting:
            # The one that waits longest, to a later time, and it waits on; or to an earlier one.
            number = self.waiting.pop(0)
            if is_later:
                self.waiting.append(number)
            self._schedule(number, timestamp + (2 * _FAR_MS if is_later else _TIMER_MS))
        elif kind == "again" and number and number not in self.cancelled and number not in self.waiting:
            # The last one: it may have fired, and its event may be in the log already.
            self._schedule(number, timestamp + (2 * _TIMER_MS if is_later else _TIMER_MS // 5))
        elif kind == "cancel" and number:
            self.cancelled.add(number)
            self.due.pop(number, None)
            if number in self.waiting:
                self.waiting.remove(number)
            self._insist(lambda: self.cluster.cancel_timer(number))

    def _schedule(self, number: int, deadline: int) -> None:
        self.deadlines.setdefault(number, []).append(deadline)
        self.due[number] = deadline
        self._insist(lambda: self.cluster.schedule_timer(number, deadline))

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        """Each deadline has one event at most: one that was moved may be in the log before the service moves it."""
        deadlines = self.deadlines.get(correlation_id, [])
        passed = [deadline for deadline in deadlines if deadline <= timestamp]
        self.oracle.insist(
            bool(passed),
            f"timer {correlation_id} fires at {timestamp}, and is not due: events are to come for {deadlines}",
        )
        if passed:
            deadlines.remove(max(passed))
        if self.due.get(correlation_id, timestamp) <= timestamp:
            self.due.pop(correlation_id, None)
        self._add(timestamp, f"fired {correlation_id}")

    def _insist(self, send: Callable[[], bool]) -> None:
        """The control stream has room for far more than is sent here."""
        self.oracle.insist(send(), "the consensus module does not take what the service sends")

    def _add(self, timestamp: int, text: str) -> None:
        self.oracle.insist(
            self.cluster.time == timestamp, f"the time is {self.cluster.time} in an entry of {timestamp}"
        )
        self._keep(Entry(self.cluster.log_position, timestamp, text))
        self.oracle.note(self.cluster.log_position, self.digest, text)

    def _keep(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.digest = zlib.crc32(f"{entry.position} {entry.timestamp} {entry.text}".encode(), self.digest)
