"""The client of the demo: sends numbered commands at a steady rate, and checks each answer."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from typing import Self

    from headrace.cluster import ClusterClient, ClusterMessage

__all__ = ["Answer", "Commands", "LostCommandError"]

_NS_PER_S = 1_000_000_000


class LostCommandError(Exception):
    """A command that was answered is missing, or was carried out twice."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one command."""

    leadership_term_id: int
    took_ns: int
    at_ns: int


class Commands:
    """A client in a thread of its own. It sends each number once, also where an answer never comes.

    Args:
        cluster: Its session, which it closes.
        rate: How many it sends a second.
    """

    def __init__(self, cluster: ClusterClient, rate: int) -> None:
        self._cluster = cluster
        self._interval_ns = _NS_PER_S // rate
        self._sent_ns: dict[int, int] = {}
        self._is_paused = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commands", daemon=True)
        self.answers: dict[int, Answer] = {}
        """By the number of the command."""
        self.first_of_terms: dict[int, Answer] = {}
        """The first answer from each leader."""
        self.failure: Exception | None = None
        """Why the client has ended."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._cluster.close()

    @property
    def sent_count(self) -> int:
        """How many the cluster's leader has taken, or was on its way to."""
        return len(self._sent_ns)

    @property
    def unanswered_count(self) -> int:
        """How many have no answer yet."""
        return self.sent_count - len(self.answers)

    def pause(self) -> None:
        """Send no more; answers still come."""
        self._is_paused = True

    def _run(self) -> None:
        try:
            next_ns = SYSTEM_CLOCK.monotonic_ns()
            while not self._stop.is_set():
                now_ns = SYSTEM_CLOCK.monotonic_ns()
                if now_ns >= next_ns:
                    if not self._is_paused:
                        self._send(now_ns)
                    # What a lost leader has kept from being sent is not sent all at once.
                    next_ns = now_ns + self._interval_ns
                message = self._cluster.receive((next_ns - now_ns) / _NS_PER_S)
                while message is not None:
                    self._take(message)
                    message = self._cluster.poll_message()
        except Exception as failure:
            self.failure = failure

    def _send(self, now_ns: int) -> None:
        number = self.sent_count
        if self._cluster.offer(b"%d" % number) > 0:
            self._sent_ns[number] = now_ns

    def _take(self, message: ClusterMessage) -> None:
        number, count = map(int, message.payload.split())
        if count != 1 or number in self.answers:
            raise LostCommandError(f"command {number} was carried out {count} times, or answered twice")
        at_ns = SYSTEM_CLOCK.monotonic_ns()
        answer = Answer(message.leadership_term_id, at_ns - self._sent_ns[number], at_ns)
        self.answers[number] = answer
        self.first_of_terms.setdefault(answer.leadership_term_id, answer)
