"""Messages that an archive sends unasked: signals, and errors that come after the answer to a request."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._base.logging import ARCHIVE
from headrace.archive.protocol.codes import RecordingSignal

if TYPE_CHECKING:
    from headrace._base.exceptions import ArchiveError

__all__ = ["Signal", "Signals", "Watch"]

_SIGNALS_KEPT = 4096
_ERRORS_KEPT = 256


@dataclass(frozen=True, slots=True)
class Signal:
    """A change of a recording that this client asked for."""

    signal: RecordingSignal
    recording_id: int
    subscription_id: int
    position: int
    correlation_id: int


@dataclass(slots=True, eq=False, weakref_slot=True)
class Watch:
    """All signals and errors of one operation from its beginning, such as a replication."""

    correlation_id: int
    signals: list[Signal] = field(default_factory=list)
    error: ArchiveError | None = None


class Signals:
    """Keeps them until the program takes them; drops the oldest if there are too many. Thread-safe, never blocks.

    Args:
        on_signal: Called with each signal, which is then not kept.
        on_error: Called with each error. Without it, errors that no replay awaits are logged.
    """

    def __init__(
        self,
        on_signal: Callable[[Signal], object] | None,
        on_error: Callable[[ArchiveError], object] | None,
    ) -> None:
        self._on_signal = on_signal
        self._on_error = on_error
        # Held for a few steps, never while a callback runs.
        self._lock = threading.Lock()
        self._signals: deque[Signal] = deque(maxlen=_SIGNALS_KEPT)
        self._errors: dict[int, ArchiveError] = {}
        self._awaited: set[int] = set()
        self._watches: weakref.WeakValueDictionary[int, Watch] = weakref.WeakValueDictionary()

    def put_signal(self, signal: Signal) -> None:
        """Handle a signal that has arrived."""
        ARCHIVE.info(
            "recording_id=%d %s at position=%d", signal.recording_id, signal.signal.name, signal.position
        )
        watch = self._watches.get(signal.correlation_id)
        if watch is not None:
            watch.signals.append(signal)
        if self._on_signal is not None:
            self._on_signal(signal)
            return
        with self._lock:
            self._signals.append(signal)

    def put_error(self, correlation_id: int, error: ArchiveError) -> None:
        """Handle an error that has arrived."""
        with self._lock:
            self._errors[correlation_id] = error
            if len(self._errors) > _ERRORS_KEPT:
                del self._errors[next(iter(self._errors))]
            watch = self._watches.get(correlation_id)
            if watch is not None:
                watch.error = watch.error or error
            is_awaited = correlation_id in self._awaited or watch is not None
        if self._on_error is not None:
            self._on_error(error)
        elif not is_awaited:
            ARCHIVE.warning("the archive reports: %s", error)

    def watch(self, correlation_id: int) -> Watch:
        """Keep signals and errors with this id for as long as the caller keeps the result."""
        watch = self._watches[correlation_id] = Watch(correlation_id)
        return watch

    def await_error(self, correlation_id: int) -> None:
        """From now on, keep an error of this request for :meth:`take_error`."""
        with self._lock:
            self._awaited.add(correlation_id)

    def forget(self, correlation_id: int) -> None:
        """Stop keeping errors of this request."""
        with self._lock:
            self._awaited.discard(correlation_id)

    def take_error(self, correlation_id: int) -> ArchiveError | None:
        """The error of a request, once."""
        with self._lock:
            return self._errors.pop(correlation_id, None)

    def take_signals(self) -> list[Signal]:
        """Take all kept signals, oldest first."""
        with self._lock:
            found = list(self._signals)
            self._signals.clear()
        return found

    def take_signal(self, signal: RecordingSignal, recording_id: int | None) -> Signal | None:
        """Take the oldest signal of a kind, of one recording or of any; others are kept."""
        with self._lock:
            for one in self._signals:
                if one.signal == signal and recording_id in (None, one.recording_id):
                    self._signals.remove(one)
                    return one
        return None
