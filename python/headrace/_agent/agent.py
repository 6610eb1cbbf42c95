"""What an agent has beside its turns: threads, a sign of life, a failure, an end.

An agent takes turns on a driver: threads of its own take them, or with ``is_invoked=True`` the program. It holds the
lock on a mark file, which keeps others off its files and tells tools that it runs.
"""

from __future__ import annotations

import atexit
import itertools
import threading
import weakref
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Protocol

from headrace._base.closing import Closing
from headrace._base.fork import forget_in_children
from headrace.client._client import Client
from headrace.client._idle import IdleStrategy

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from headrace.client import Subscription
    from headrace.client._local_driver import LocalDriver
    from headrace.clock import Clock

__all__ = ["Agent", "hear"]

_MARK_INTERVAL_NS = 1_000_000_000
_EVENTS_A_TURN = 64
_RUNNING: weakref.WeakValueDictionary[int, Agent] = weakref.WeakValueDictionary()
_numbers = itertools.count()


class _MarkFile(Protocol):
    def update(self, now_ms: int) -> None: ...

    def forget(self) -> None: ...


class _Log(Protocol):
    error_count: int

    def error(self, text: str, cause: BaseException | None = None) -> None: ...


class Agent(Closing):
    """What archive, consensus module and container have in common.

    A class takes its mark file and says so with :meth:`_forgets`, opens the rest, and ends with :meth:`_begins`.
    """

    _KIND: ClassVar[str]
    """What texts call it."""

    _clock: Clock
    _log: _Log
    _mark_file: _MarkFile

    def __init__(self) -> None:
        self._is_closed = self._closes_itself = False
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._closing = threading.Lock()
        self._next_mark_ns = 0

    # --- begin -----------------------------------------------------------------------------------------------------

    def _forgets(self) -> None:
        """The mark file is taken: from here on a forked child has the lock as well, until it forgets it."""
        forget_in_children(self)

    def _begins(self) -> None:
        """All is open: the end of the program closes it, if the program does not."""
        _RUNNING[next(_numbers)] = self

    def _connect(
        self,
        driver: LocalDriver | None,
        directory: str | os.PathLike[str] | None,
        name: str,
        on_unavailable_counter: Callable[[int, int], object] | None = None,
    ) -> Client:
        """A client that the turns step, see :func:`hear`."""
        log = self._log  # and not the agent, which holds the client that would hold it
        # A driver that the program names is meant, whatever the environment says.
        client = Client.connect(
            None if driver is not None else directory,
            driver=driver,
            use_invoker=True,
            client_name=name,
            on_error=lambda error: log.error(str(error)),
            on_unavailable_counter=on_unavailable_counter,
        )
        client._is_part = True
        return client

    def _begin_thread(
        self,
        name: str,
        turn: Callable[[], int],
        idle_strategy: str,
        awaited: Callable[[], Sequence[Subscription]],
    ) -> None:
        """Take turns on a thread until the agent stops; a message for what is awaited ends a pause."""
        thread = threading.Thread(
            target=self._run, args=(turn, idle_strategy, awaited), name=name, daemon=True
        )
        self._threads.append(thread)
        thread.start()

    # --- turns -----------------------------------------------------------------------------------------------------

    def _run(
        self, turn: Callable[[], int], idle_strategy: str, awaited: Callable[[], Sequence[Subscription]]
    ) -> None:
        try:
            heard = awaited()
            idle = IdleStrategy(idle_strategy, None, heard)
            while not self._stop.is_set():
                idle.idle(turn())
                if awaited() is not heard:
                    heard = awaited()
                    idle = IdleStrategy(idle_strategy, None, heard)
        except BaseException as failure:
            self._fail(failure)
        # Another thread that closes the agent waits for this one, and does it then.
        if self._closes_itself and self._closing.acquire(blocking=False):
            try:
                self._wait_and_close()
            finally:
                self._closing.release()

    def _mark(self, now_ns: int) -> None:
        """Each second, say in the mark file that the agent runs."""
        if now_ns < self._next_mark_ns:
            return
        self._next_mark_ns = now_ns + _MARK_INTERVAL_NS
        try:
            self._mark_file.update(self._clock.epoch_ms())
        except OSError as failure:
            # What it does goes on; the lock still keeps others of ours out.
            self._log.error(f"cannot say in the mark file that this {self._KIND} runs: {failure}")

    def _stop_turns(self) -> None:
        """Have the threads end after the turn that they take."""
        self._stop.set()

    # --- end -------------------------------------------------------------------------------------------------------

    def _fail(self, failure: BaseException) -> None:
        """It cannot go on."""
        if self._failure is not None or self._is_closed:
            return
        self._stop_turns()
        try:
            self._on_failure(failure)
        finally:
            # Last: who waits for it looks for the reason.
            self._failure = failure

    @abstractmethod
    def _on_failure(self, failure: BaseException) -> None:
        """Tell why it cannot go on."""

    @property
    def failure(self) -> BaseException | None:
        """Why it ended by itself, if that was not in order."""
        return self._failure

    @property
    def is_closed(self) -> bool:
        """True once closed."""
        return self._is_closed

    @property
    def error_count(self) -> int:
        """Failures of its own so far; what clients did wrong is not counted."""
        return self._log.error_count

    def close(self) -> None:
        """End in order, and give up the files. Waits for the agent's threads. Closing again does nothing.

        On such a thread, which runs ``on_error`` and other handlers, it does not wait: the agent closes after its turn.
        """
        self._stop_turns()
        if threading.current_thread() in self._threads:
            self._closes_itself = True
            return
        with self._closing:
            self._wait_and_close()

    def _wait_and_close(self) -> None:
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        if not self._is_closed:
            self._is_closed = True
            self._close()

    @abstractmethod
    def _close(self) -> None:
        """End in order. No thread of the agent takes turns any more."""

    def _forget(self) -> None:
        """As after a kill: in a forked child, whose agent this is not, and on a node that crashed."""
        self._is_closed = True
        # A thread that is not in the child may hold it.
        self._closing = threading.Lock()
        self._mark_file.forget()


def hear(client: Client) -> int:
    """Take what the driver has said, which comes one event a call; gives how much that was."""
    work_count = 0
    for _ in range(_EVENTS_A_TURN):
        if not (event_count := client.invoke()):
            break
        work_count += event_count
    return work_count


@atexit.register
def _close_all() -> None:
    """What others wait for would be waited for until a time-out, or have to be recovered. The latest goes first."""
    for number in sorted(_RUNNING, reverse=True):
        agent = _RUNNING.get(number)
        if agent is not None:
            agent.close()
