"""The thread on which an authenticator runs, and the verdicts that come of it.

A session begins a call and polls it; it never waits. Calls run one after the other, in the order in which they began;
one that is cancelled before its turn is not made. One that is cancelled while it runs is left behind with its thread,
and another thread goes on with the others when one of them is polled. Sessions bound how many calls there are.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path

from headrace.security.authentication import Accepted, Authenticator, Challenge, Rejected, Verdict
from headrace.security.users import UsersFileError

# Threads whose calls have not returned. With so many, clients that connect wait for them.
_LEFT_BEHIND_MAX = 4

__all__ = ["PendingVerdict", "Verdicts", "described", "discarded"]


class PendingVerdict:
    """One call of an authenticator. Polled by one thread, made by another.

    Attributes:
        failure: Why the authenticator could not decide, without what it has seen; empty if it could.
    """

    def __init__(self, judge: Callable[[], Verdict], while_waiting: Callable[[], None]) -> None:
        self._while_waiting = while_waiting
        # Holds what the client sent, for no longer than it is needed.
        self._judge: Callable[[], Verdict] | None = judge
        self._verdict: Verdict | None = None
        self._is_cancelled = False
        self.failure = ""

    @property
    def is_left_behind(self) -> bool:
        """Whether its session gave it up, and it has not returned."""
        return self._is_cancelled and self._verdict is None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict, once there is one. An authenticator that failed has rejected."""
        return self._verdict

    def poll(self) -> Verdict | None:
        """The verdict, once there is one; until then, have the call made. Not for one that is about to be cancelled."""
        if self._verdict is None:
            self._while_waiting()
        return self._verdict

    def cancel(self) -> None:
        """Nothing will come of the call; it is not made, if it was not."""
        self._judge = None
        self._is_cancelled = True

    def make(self) -> None:
        """Call the authenticator. Whatever it raises is a verdict as well."""
        judge, self._judge = self._judge, None
        if judge is None:
            return
        verdict: Verdict = Rejected()
        try:
            found: object = judge()
            if isinstance(found, Accepted | Rejected | Challenge):
                verdict = found
            else:
                self.failure = f"it must return a verdict: {discarded(found)}"
        except BaseException as failure:
            self.failure = described(failure)
        self._verdict = verdict


class Verdicts:
    """Calls one authenticator. Without one, every client is accepted at once, and there is no thread.

    Args:
        authenticator: What decides; ``None`` accepts everyone.
        has_thread: Whether it runs on a thread. Without one each call is made where it begins, as in a simulated world.
    """

    def __init__(self, authenticator: Authenticator | None, *, has_thread: bool = True) -> None:
        self._authenticator = authenticator
        self._has_thread = has_thread
        self._calls: queue.SimpleQueue[PendingVerdict | None] = queue.SimpleQueue()
        self._left_behind: list[threading.Thread] = []
        # The thread that makes the calls, and the one that it makes. The lock is held to compare both with a change, so
        # that a call that returns at the moment in which it is left behind does not have two threads go on.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._current: PendingVerdict | None = None

    @property
    def accepts_everyone(self) -> bool:
        """Whether no client is asked who it is."""
        return self._authenticator is None

    def on_connect(self, credentials: bytes) -> PendingVerdict:
        """Begin to judge what a client sent to connect."""
        authenticator = self._authenticator
        if authenticator is None:
            accepted = PendingVerdict(Accepted, self._go_on)
            accepted.make()
            return accepted
        return self._begin(lambda: authenticator.on_connect(credentials))

    def on_response(self, challenge: Challenge, response: bytes) -> PendingVerdict:
        """Begin to judge the response to a challenge."""
        return self._begin(lambda: challenge.on_response(response))

    def recheck(self, accepted: Accepted) -> PendingVerdict | None:
        """Begin to judge a client again that was accepted; ``None`` if it stays so."""
        return None if accepted.recheck is None else self._begin(accepted.recheck)

    def _begin(self, judge: Callable[[], Verdict]) -> PendingVerdict:
        pending = PendingVerdict(judge, self._go_on)
        if not self._has_thread:
            pending.make()
            return pending
        if self._thread is None:
            self._begin_thread()
        self._calls.put(pending)
        return pending

    def _go_on(self) -> None:
        """Have another thread make the calls that wait, if the one that makes them was given up with its call."""
        with self._lock:
            thread, current = self._thread, self._current
            if thread is None or current is None or not current.is_left_behind:
                return
            self._left_behind = [one for one in self._left_behind if one.is_alive()]
            if len(self._left_behind) < _LEFT_BEHIND_MAX:
                self._left_behind.append(thread)
                self._begin_thread()

    def _begin_thread(self) -> None:
        self._current = None
        # A call that blocks for ever must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="authenticator", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        me = threading.current_thread()
        while (pending := self._calls.get()) is not None:
            self._current = pending
            pending.make()
            with self._lock:
                if me is not self._thread:
                    return
                self._current = None

    def close(self) -> None:
        """End the thread after the calls that were begun. Does not wait for it: a call may block for ever."""
        self._calls.put(None)


def discarded(returned: object) -> str:
    """Drop a plug-in's result that is not a verdict, and name its class: the object may have a secret."""
    if isinstance(returned, Coroutine):
        returned.close()
        return "it returned a coroutine, which nothing awaits: the method must not be async"
    return f"it returned an object of class {type(returned).__name__}"


def described(failure: BaseException) -> str:
    """What a plug-in raised and where. Not the text, which may have what a client sent."""
    if isinstance(failure, UsersFileError):
        # These are texts of ours.
        return str(failure)
    where = traceback.extract_tb(failure.__traceback__)
    place = f" at {Path(where[-1].filename).name}:{where[-1].lineno}" if where else ""
    return f"{type(failure).__name__}{place}"
