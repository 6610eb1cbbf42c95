"""The distinct error log of an archive, written where tools read it: into its mark file.

Each text is stored once, with how often it came and when, in the records of :mod:`headrace.cnc.error_log`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

from headrace.cnc.error_log import COUNT_AND_LAST, COUNT_OFFSET, LENGTH, RECORD, RECORD_ALIGNMENT
from headrace.positions import align

__all__ = ["WARNING_PREFIX", "ErrorLog"]

WARNING_PREFIX = "WARN - "
_FULL = WARNING_PREFIX + "this log is full and drops further texts"
_TEXT_MAX = 4096
_FULL_LENGTH = align(RECORD.size + len(_FULL), RECORD_ALIGNMENT)


@dataclass(slots=True)
class _Observed:
    offset: int
    count: int


class ErrorLog:
    """Writes texts into a buffer of limited length. Thread-safe.

    Warnings take at most half of the buffer, so that clients, who cause them, cannot crowd out the archive's own
    failures. A last record says that others found no place.
    """

    def __init__(self, write: Callable[[int, bytes], None], length: int) -> None:
        self._write = write
        self._length = length - _FULL_LENGTH
        self._next = 0
        self._warnings_left = length // 2
        self._observed: dict[str, _Observed] = {}
        self._lock = threading.Lock()

    def record(self, text: str, now_ms: int) -> None:
        """Note one text. A disk that refuses is itself most likely what is being noted, so it ends nothing."""
        with self._lock, contextlib.suppress(OSError):
            known = self._observed.get(text)
            if known is None and not self._has_room(text):
                text, known = _FULL, self._observed.get(_FULL)
            if known is None:
                self._append(text, now_ms)
                return
            known.count += 1
            self._write(known.offset + COUNT_OFFSET, COUNT_AND_LAST.pack(known.count, now_ms))

    def _has_room(self, text: str) -> bool:
        length = align(RECORD.size + min(len(text), _TEXT_MAX), RECORD_ALIGNMENT)
        is_in_share = not text.startswith(WARNING_PREFIX) or length <= self._warnings_left
        return is_in_share and self._next + length <= self._length

    def _append(self, text: str, now_ms: int) -> None:
        data = text.encode("ascii", "replace")[:_TEXT_MAX]
        length = RECORD.size + len(data)
        record = RECORD.pack(length, 1, now_ms, now_ms) + data
        self._write(self._next + LENGTH.size, record[LENGTH.size :])
        self._write(self._next, record[: LENGTH.size])
        self._observed[text] = _Observed(self._next, 1)
        self._next += align(length, RECORD_ALIGNMENT)
        if text.startswith(WARNING_PREFIX):
            self._warnings_left -= align(length, RECORD_ALIGNMENT)
