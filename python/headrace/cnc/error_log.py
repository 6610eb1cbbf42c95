"""The distinct error log: one record for each different error, counting how often it was seen.

```text
  0        4       8                  16                  24
  | length | count | last, epoch ms   | first, epoch ms   | text, padded to 8
```

A driver stores the length last, and so does an archive, whose log is in its mark file. A length that is not positive
ends the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.checks import excerpt
from headrace.positions import align

if TYPE_CHECKING:
    from headrace.cnc.counters import Sliceable

RECORD = struct.Struct("<iiqq")
LENGTH = struct.Struct("<i")
COUNT_AND_LAST = struct.Struct("<iq")
COUNT_OFFSET = LENGTH.size
RECORD_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One kind of error. Times are epoch milliseconds."""

    observation_count: int
    first_observation_ms: int
    last_observation_ms: int
    text: str


def read_error_log(log: Sliceable, *, since_ms: int = 0) -> Iterator[ErrorEntry]:
    """The entries last observed at or after `since_ms`, oldest record first; each is read when it is asked for.

    Args:
        log: The bytes of a log: :attr:`CncFile.error_log`, or the content of a file.
        since_ms: Epoch milliseconds.

    Raises:
        TypeError: ``log`` is a path, or something else without bytes.
    """
    given: object = log
    if isinstance(given, str) or not hasattr(given, "__getitem__"):
        raise TypeError(f"log={excerpt(repr(log))}: must be bytes, such as CncFile.error_log")
    return _entries(log, since_ms)


def _entries(log: Sliceable, since_ms: int) -> Iterator[ErrorEntry]:
    offset = 0
    while offset + RECORD.size <= len(log):
        length, count, last_ms, first_ms = RECORD.unpack(log[offset : offset + RECORD.size])
        if length < RECORD.size:
            return
        end = min(offset + length, len(log))
        if last_ms >= since_ms:
            text = bytes(log[offset + RECORD.size : end]).decode("utf-8", errors="replace")
            yield ErrorEntry(count, first_ms, last_ms, text)
        offset += align(length, RECORD_ALIGNMENT)
