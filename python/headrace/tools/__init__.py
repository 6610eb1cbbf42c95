"""Looking at a driver from outside: counters, errors, losses, streams.

Everything here reads a driver's files and needs no running driver, so it works on any directory of
this file version: a live one, one left by a crash, one copied from another machine, ours or an Aeron
driver's.

>>> from headrace import default_directory
>>> from headrace.tools import CncFile
>>> with CncFile.open(default_directory()) as cnc:  # doctest: +SKIP
...     print({record.label: record.value for record in cnc.counters})
"""

from __future__ import annotations

from headrace._base.counter_record import CounterRecord
from headrace._base.names import publish as _publish
from headrace.cnc.cnc_file import CncFile, CncHeader
from headrace.cnc.counters import CountersReader
from headrace.cnc.error_log import ErrorEntry, read_error_log
from headrace.cnc.faults import (
    DriverFileMissingError,
    DriverFileRefusedError,
    DriverGoneError,
    DriverNotReadyError,
    FileFormatError,
)
from headrace.tools.counter_types import CounterType, Group, StreamKey, channel_of, counter_type, stream_key
from headrace.tools.filters import CounterFilter
from headrace.tools.loss_report import LossEntry, read_loss_report
from headrace.tools.streams import (
    Destination,
    Drops,
    HeldBack,
    PathKind,
    Reader,
    ReceivePath,
    StreamState,
    Unrepaired,
    group_streams,
)

__all__ = [
    "CncFile",
    "CncHeader",
    "CounterFilter",
    "CounterRecord",
    "CounterType",
    "CountersReader",
    "Destination",
    "DriverFileMissingError",
    "DriverFileRefusedError",
    "DriverGoneError",
    "DriverNotReadyError",
    "Drops",
    "ErrorEntry",
    "FileFormatError",
    "Group",
    "HeldBack",
    "LossEntry",
    "PathKind",
    "Reader",
    "ReceivePath",
    "StreamKey",
    "StreamState",
    "Unrepaired",
    "channel_of",
    "counter_type",
    "group_streams",
    "read_error_log",
    "read_loss_report",
    "stream_key",
]

_publish(__name__, globals(), __all__, source="headrace.cnc")
