"""Counters, grouped by what they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace._base.counter_record import CounterRecord
from headrace.cnc.cnc_file import semantic_version
from headrace.tools.counter_types import (
    CHANNEL_STATUS_NAMES,
    OFFLOAD_NAMES,
    Group,
    Reading,
    channel_of,
    counter_type,
    reading_of,
    stream_key,
)
from headrace.tools.snapshot import DriverSnapshot
from headrace.tools.units import format_bytes, format_count, format_duration_ns, format_rate
from headrace.tools.views.header import header_json, header_line

_ZERO = "zero"
_RATED = (Reading.COUNT, Reading.BYTES, Reading.POSITION)


def stat_table(
    snapshot: DriverSnapshot, counters: Iterable[CounterRecord], previous: DriverSnapshot | None
) -> RenderableType:
    """The counters in one table with a section for each group; rates need a `previous` snapshot.

    Counters that are 0 come last, in a section of their own: what happened is seen without scrolling.
    """
    table = Table(box=None, pad_edge=False, header_style="dim", expand=False)
    table.add_column("id", justify="right", style="dim", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("is", justify="right", style="cyan", no_wrap=True)
    table.add_column("per second", justify="right", style="green", no_wrap=True)
    table.add_column("counter", overflow="fold")
    before = _values(previous)
    seconds = (snapshot.time_ms - previous.time_ms) / 1000 if previous is not None else 0.0
    sections: dict[str, list[CounterRecord]] = {**{str(group): [] for group in Group}, _ZERO: []}
    for record in counters:
        title = str(counter_type(record.type_id).group) if record.value else _ZERO
        sections[title].append(record)
    for title, members in sections.items():
        if members:
            table.add_row("", "", "", "", Text(title, style="bold yellow"))
        for record in members:
            value = format_count(record.value)
            rate = _rate(record, before, seconds)
            reading = read_value(record, snapshot.time_ms)
            table.add_row(str(record.counter_id), value, reading, rate, Text(record.label))
    return Renderables(header_line(snapshot, "counters"), table)


def read_value(record: CounterRecord, now_ms: int) -> str:
    """The value in its unit, where that says more than the number."""
    match reading_of(record):
        case Reading.BYTES:
            return format_bytes(record.value)
        case Reading.NANOSECONDS:
            return format_duration_ns(record.value)
        # 0 is no time: of a publisher that is not held back any more.
        case Reading.EPOCH_MS if record.value:
            return f"{format_duration_ns(max(0, now_ms - record.value) * 1_000_000)} ago"
        case Reading.CHANNEL_STATUS:
            return CHANNEL_STATUS_NAMES.get(record.value, "unknown")
        case Reading.OFFLOAD:
            return OFFLOAD_NAMES.get(record.value, "unknown")
        case Reading.VERSION:
            return semantic_version(record.value)
        case _:
            return ""


def stat_json(snapshot: DriverSnapshot, counters: Iterable[CounterRecord]) -> dict[str, object]:
    """One object a refresh."""
    return header_json(snapshot) | {"counters": [counter_json(record) for record in counters]}


def counter_json(record: CounterRecord) -> dict[str, object]:
    """A counter with what its key says."""
    kind = counter_type(record.type_id)
    described: dict[str, object] = {
        "id": record.counter_id,
        "type_id": record.type_id,
        "type": kind.name,
        "group": str(kind.group),
        "label": record.label,
        "value": record.value,
        "registration_id": record.registration_id,
        "owner_id": record.owner_id,
        "reference_id": record.reference_id,
    }
    key = stream_key(record)
    if key is not None:
        described |= {"session_id": key.session_id, "stream_id": key.stream_id}
    channel = channel_of(record)
    return described if channel is None else described | {"channel": channel}


def _values(snapshot: DriverSnapshot | None) -> Mapping[tuple[int, int], int]:
    if snapshot is None:
        return {}
    return {(record.counter_id, record.registration_id): record.value for record in snapshot.counters}


def _rate(record: CounterRecord, before: Mapping[tuple[int, int], int], seconds: float) -> str:
    earlier = before.get((record.counter_id, record.registration_id))
    reading = reading_of(record)
    if earlier is None or seconds <= 0.0 or reading not in _RATED or record.value == earlier:
        return ""
    rate = (record.value - earlier) / seconds
    return format_rate(rate, "/s") if reading is Reading.COUNT else f"{format_bytes(rate)}/s"
