"""The loss report: one entry for each image that ever missed bytes.

```text
  0              8            16             24            32           36          40
  | observations | bytes lost | first, ms    | last, ms    | session id | stream id | channel, source
```

Texts carry a 32-bit length; the source starts at the next multiple of 4. Entries start at multiples of 64.
The driver stores the observation count last; one that is not positive ends the report.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.cnc.faults import DriverFileMissingError, FileFormatError

_ENTRY = struct.Struct("<qqqqii")
_LENGTH = struct.Struct("<i")
ENTRY_ALIGNMENT = 64
LOSS_REPORT_FILE = "loss-report.dat"


@dataclass(frozen=True, slots=True)
class LossEntry:
    """What one image lost, before retransmission repaired it. Times are epoch milliseconds."""

    observation_count: int
    total_bytes_lost: int
    first_observation_ms: int
    last_observation_ms: int
    session_id: int
    stream_id: int
    channel: str
    source: str


def read_loss_report(path: str | os.PathLike[str]) -> list[LossEntry]:
    """The entries of a report; `path` is the file or the driver's directory.

    Raises:
        DriverFileMissingError: The directory has no loss report.
        FileFormatError: an entry's texts do not fit in the file.
    """
    given = Path(path)
    file = given / LOSS_REPORT_FILE if given.is_dir() else given
    try:
        report = file.read_bytes()
    except FileNotFoundError:
        advice = "start a driver with `headrace driver`, or name its directory with --dir or AERON_DIR"
        raise DriverFileMissingError(file, advice) from None
    if len(report) < _ENTRY.size:
        raise FileFormatError(
            file, f"length={len(report)}", f"a loss report has at least {_ENTRY.size} bytes"
        )
    return list(_entries(file, report))


def _entries(path: Path, report: bytes) -> Iterator[LossEntry]:
    offset = 0
    while offset + _ENTRY.size <= len(report):
        count, total, first_ms, last_ms, session_id, stream_id = _ENTRY.unpack_from(report, offset)
        if count <= 0:
            return
        channel, end = _text(path, report, offset + _ENTRY.size)
        source, end = _text(path, report, -(-end // 4) * 4)
        yield LossEntry(count, total, first_ms, last_ms, session_id, stream_id, channel, source)
        offset = -(-end // ENTRY_ALIGNMENT) * ENTRY_ALIGNMENT


def _text(path: Path, report: bytes, offset: int) -> tuple[str, int]:
    start = offset + _LENGTH.size
    length = _LENGTH.unpack_from(report, offset)[0] if start <= len(report) else -1
    if length < 0 or start + length > len(report):
        rule = f"a text must end within the file's {len(report)} bytes"
        raise FileFormatError(path, f"text length={length} at offset {offset}", rule)
    return report[start : start + length].decode("utf-8", errors="replace"), start + length
