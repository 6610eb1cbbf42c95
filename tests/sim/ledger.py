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
        self.deadlines: dict[int, int] = {}
        self.cancelled: set[int] = set()
        self.open_ids: list[int] = []
        self.known_ids: list[int] = []
        self.digest = 0
        self.fails_snapshots = False

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
                self.registers, deadlines, cancelled, self.open_ids, self.known_ids = value
                self.deadlines = {int(number): deadline for number, deadline in deadlines.items()}
                self.cancelled = set(cancelled)
        found = [session.id for session in cluster.sessions]
        self.oracle.insist(
            # By id; they may have opened in another order.
            found == sorted(self.open_ids),
            f"sessions {found} of a snapshot, and {self.open_ids} were open",
        )
        self.oracle.note(cluster.log_position, self.digest, "a snapshot")

    def on_take_snapshot(self) -> Iterable[bytes]:
        if self.fails_snapshots:
            raise RuntimeError("the world has this snapshot fail")
        self.oracle.note(self.cluster.log_position, self.digest, "the entry before a snapshot")
        rest = self.registers, self.deadlines, sorted(self.cancelled), self.open_ids, self.known_ids
        yield json.dumps(("rest", *rest)).encode()
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
        if kind == "timer":
            number = len(self.deadlines) + 1
            self.deadlines[number] = deadline = timestamp + _TIMER_MS
            self._insist(lambda: self.cluster.schedule_timer(number, deadline))
        elif kind == "cancel" and self.deadlines:
            number = len(self.deadlines)
            self.cancelled.add(number)
            self._insist(lambda: self.cluster.cancel_timer(number))
        elif kind == "self":
            self._insist(lambda: self.cluster.offer(f"echo of {text}".encode()) > 0)
        elif kind == "close":
            self._insist(lambda: self.cluster.close_session(session.id))
        session.offer(f"{len(self.entries)}|{answer}|{text}".encode())

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        deadline = self.deadlines.get(correlation_id)
        self.oracle.insist(
            deadline is not None and timestamp >= deadline,
            f"timer {correlation_id} for {deadline} fires at {timestamp}",
        )
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
