"""The distinct errors of an archive, written where tools read them: into its mark file.

Each error is stored once, with how often it came and when. A record: i32 length | i32 count | i64 last, ms | i64 first,
ms | text; its length is written last.
"""

from __future__ import annotations

import contextlib
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass

from headrace.archive.positions import align

__all__ = ["ErrorLog"]

_RECORD = struct.Struct("<iiqq")
_COUNTS = struct.Struct("<iq")
_LENGTH = struct.Struct("<i")
_ALIGNMENT = 8
_TEXT_MAX = 4096


@dataclass(slots=True)
class _Observed:
    offset: int
    count: int


class ErrorLog:
    """Writes errors into a buffer of limited length. What does not fit or cannot be written is counted all the same."""

    def __init__(self, write: Callable[[int, bytes], None], length: int) -> None:
        self._write = write
        self._length = length
        self._next = 0
        self._observed: dict[str, _Observed] = {}
        self._lock = threading.Lock()
        self.count = 0

    def record(self, text: str, now_ms: int) -> None:
        """Note one error. A disk that refuses is itself most likely what is being noted, so it ends nothing."""
        with self._lock, contextlib.suppress(OSError):
            self.count += 1
            known = self._observed.get(text)
            if known is not None:
                known.count += 1
                self._write(known.offset + _LENGTH.size, _COUNTS.pack(known.count, now_ms))
                return
            self._append(text, now_ms)

    def _append(self, text: str, now_ms: int) -> None:
        data = text.encode("ascii", "replace")[:_TEXT_MAX]
        length = _RECORD.size + len(data)
        if self._next + align(length, _ALIGNMENT) > self._length:
            return
        record = _RECORD.pack(length, 1, now_ms, now_ms) + data
        self._write(self._next + _LENGTH.size, record[_LENGTH.size :])
        self._write(self._next, record[: _LENGTH.size])
        self._observed[text] = _Observed(self._next, 1)
        self._next += align(length, _ALIGNMENT)
