"""What an archive tells a client unasked: signals, and errors that come after the answer to a request."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._logging import ARCHIVE
from headrace.archive.protocol.codes import RecordingSignal

if TYPE_CHECKING:
    from headrace._exceptions import ArchiveError

__all__ = ["Notices", "Signal", "Watch"]

_SIGNALS_KEPT = 4096
_ERRORS_KEPT = 256


@dataclass(frozen=True, slots=True)
class Signal:
    """What became of a recording that this client asked for."""

    signal: RecordingSignal
    recording_id: int
    subscription_id: int
    position: int
    correlation_id: int


@dataclass(slots=True, eq=False, weakref_slot=True)
class Watch:
    """All that the archive says of one thing from its beginning, such as a replication."""

    correlation_id: int
    signals: list[Signal] = field(default_factory=list)
    error: ArchiveError | None = None


class Notices:
    """Keeps them until the program asks; the oldest go when there are too many. Thread-safe, never blocks.

    Args:
        on_signal: Told of signals, which are then not kept.
        on_error: Told of errors. Without it, ``logging`` is told of those that no replay awaits.
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
        """Take a signal that has come."""
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
        """Take an error that has come."""
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
        """Keep what comes under this id for as long as its owner keeps what this gives."""
        watch = self._watches[correlation_id] = Watch(correlation_id)
        return watch

    def await_error(self, correlation_id: int) -> None:
        """From now on, an error of this request is awaited: :meth:`take_error` raises it where it belongs."""
        with self._lock:
            self._awaited.add(correlation_id)

    def forget(self, correlation_id: int) -> None:
        """Nothing awaits an error of this request any longer."""
        with self._lock:
            self._awaited.discard(correlation_id)

    def take_error(self, correlation_id: int) -> ArchiveError | None:
        """The error of a request, once."""
        with self._lock:
            return self._errors.pop(correlation_id, None)

    def take_signals(self) -> list[Signal]:
        """All signals kept, oldest first."""
        with self._lock:
            found = list(self._signals)
            self._signals.clear()
        return found

    def take_signal(self, signal: RecordingSignal, recording_id: int | None) -> Signal | None:
        """The oldest signal of a kind, of one recording or of any; others are kept."""
        with self._lock:
            for one in self._signals:
                if one.signal == signal and recording_id in (None, one.recording_id):
                    self._signals.remove(one)
                    return one
        return None
