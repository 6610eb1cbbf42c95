"""Threads that wait for answers: one of them reads for all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._base.exceptions import HeadraceError, RequestError, RequestTimeoutError, ServerLostError

if TYPE_CHECKING:
    from headrace.client import Subscription
    from headrace.clock import Deadline
    from headrace.rpc._pending_requests import Calls

__all__ = ["LOOK_S", "SERVER_LOST", "Call", "ThreadReader"]

SERVER_LOST = "the server went away before it answered; it may have carried out the request"

# How long a reader sleeps at most before it looks whether its server is lost, which rings no bell.
LOOK_S = 0.05
_POLL_LIMIT = 256


class Call:
    """A request that :meth:`headrace.Requester.submit` sent. Wait for its :meth:`result`, or :meth:`cancel` it."""

    __slots__ = ("_correlation_id", "_deadline", "_error", "_reader", "_result")

    def __init__(self, reader: ThreadReader, deadline: Deadline) -> None:
        self._reader = reader
        self._deadline = deadline
        self._result: bytes | None = None
        self._error: Exception | None = None
        self._correlation_id = reader.calls.new_id()
        reader.calls.add(self._correlation_id, self, reader, is_sent=False)

    @property
    def correlation_id(self) -> int:
        """Identifies the request among those of its requester."""
        return self._correlation_id

    def done(self) -> bool:
        """True once the call has its answer or an error. Answers are only read while a call waits for its result."""
        return self._result is not None or self._error is not None

    def set_result(self, result: bytes, /) -> None:
        """Set the answer. For the requester."""
        self._result = result

    def set_exception(self, error: Exception, /) -> None:
        """Set the error. For the requester."""
        self._error = error

    def result(self) -> bytes:
        """Wait for the answer, without the GIL, until the time-out of the call is over.

        Ctrl-C ends the wait but not the call: the program can wait for the answer again.

        Raises:
            RemoteError: The server's handler raised; the text is the server's.
            ServerLostError: The server went away, or the driver of a reconnecting client. The request may have been
                carried out.
            RequestTimeoutError: The time is over. The server may still carry the request out.
            RequestError: The call was cancelled.
            ClosedError: The requester, or its client, is closed.
        """
        try:
            if not self.done() and not self._reader.read_until(self, self._deadline):
                raise RequestTimeoutError(f"no answer came in time: {self._reader.missing()}")
        except HeadraceError:
            # Not for what interrupts the wait, such as Ctrl-C.
            self._reader.calls.forget(self._correlation_id)
            raise
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def cancel(self) -> None:
        """Drop the answer, which is counted when it comes; the server does not learn of this. Never blocks."""
        self._reader.calls.forget(self._correlation_id)
        if not self.done():
            self._error = RequestError("the call was cancelled")
            self._reader.wake()

    def __repr__(self) -> str:
        return f"Call(correlation_id={self._correlation_id}, done={self.done()})"


class ThreadReader:
    """Reads the answers of one requester for all waiting threads: one thread reads for all, then the next one.

    Args:
        responses: The subscription to read.
        calls: The calls that get the answers.
        end_of: Called with the error of a read; returns the error for all calls, or the same one if only the reading
            thread is to raise it.
        is_abandoned: Returns whether no server is left for the requests that were sent.
        missing: Returns what a call whose time is over has waited for, for its error.
    """

    def __init__(
        self,
        responses: Subscription,
        calls: Calls,
        *,
        end_of: Callable[[HeadraceError], HeadraceError],
        is_abandoned: Callable[[], bool],
        missing: Callable[[], str],
    ) -> None:
        self.calls = calls
        self.missing = missing
        self._responses = responses
        self._end_of = end_of
        self._is_abandoned = is_abandoned
        self._is_read = False
        self._waiting_count = 0
        self._changed = threading.Condition(threading.Lock())

    def wake(self) -> None:
        """Have the waiting threads look at their calls, of which one has ended without an answer."""
        with self._changed:
            self._changed.notify_all()

    def read_until(self, call: Call, deadline: Deadline) -> bool:
        """Wait until a call is done; false when the time is over first.

        Raises:
            ClosedError: The subscription is closed.
        """
        is_reader = False
        try:
            with self._changed:
                while self._is_read and not call.done():
                    self._waiting_count += 1
                    try:
                        # The thread that reads wakes this one when answers came, and when it stops reading.
                        is_late = not self._changed.wait(deadline.left_s())
                    finally:
                        self._waiting_count -= 1
                    if is_late:
                        return call.done()
                if call.done():
                    return True
                # Inside the `try`, as Ctrl-C may come at the end of this block.
                is_reader = self._is_read = True
            return self._read(call, deadline)
        except HeadraceError as error:
            end = self._end_of(error)
            if end is error:
                raise
            self.calls.fail(end, self)
            return call.done()
        finally:
            if is_reader:
                self._stop_reading()

    def take(self) -> int:
        """Pass the answers that have arrived to their calls, unless another thread does; returns how many.

        Raises:
            ClosedError: The subscription is closed.
        """
        is_reader = False
        try:
            with self._changed:
                if self._is_read:
                    return 0
                is_reader = self._is_read = True
            return self._settle_all()
        finally:
            if is_reader:
                self._stop_reading()

    def _stop_reading(self) -> None:
        """Let the next thread read."""
        # First, and without the lock: Ctrl-C may come as that is taken.
        self._is_read = False
        self.wake()

    def _settle_all(self) -> int:
        count = 0
        while polled := self._responses.poll(self.calls.settle, _POLL_LIMIT):
            count += polled
        return count

    def _read(self, call: Call, deadline: Deadline) -> bool:
        while not call.done():
            left_s = deadline.left_s()
            message = self._responses.receive(LOOK_S if left_s is None else min(left_s, LOOK_S))
            if message is None:
                if self._is_abandoned() and not call.done():
                    # Only this one: another thread may just have sent one to the next server.
                    self.calls.forget(call.correlation_id)
                    call.set_exception(ServerLostError(SERVER_LOST))
                if deadline.is_over:
                    return call.done()
                continue
            self.calls.settle(message.payload, None)
            self._settle_all()
            if self._waiting_count and not call.done():
                with self._changed:
                    self._changed.notify_all()
        return True
