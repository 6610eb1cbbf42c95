"""The recordings of an archive, as a table and for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace.tools.units import format_bytes, format_time_ms

if TYPE_CHECKING:
    from headrace.archive import RecordingDescriptor

# In a narrower table, the least important columns would leave no room for the channel.
_WIDE = 130
_STATE_STYLES = {"VALID": "green", "INVALID": "bold red", "DELETED": "dim"}


def recordings_table(
    title: Text, recordings: Sequence[tuple[RecordingDescriptor, str]], width: int
) -> RenderableType:
    """One row a recording, with its state; a narrow table leaves out the least important columns."""
    if not recordings:
        return Renderables(title, Text("no recordings", style="dim"))
    columns = [column for column in _COLUMNS if width >= _WIDE or not column.is_minor]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(
            column.name,
            justify="right" if column.is_number else "left",
            style=column.style,
            no_wrap=column.name != "channel",
            overflow="fold" if column.name == "channel" else "ellipsis",
        )
    for one, state in recordings:
        table.add_row(*(column.show(one, state) for column in columns))
    many = "" if len(recordings) == 1 else "s"
    footer = Text(f"{len(recordings)} recording{many}", style="bold")
    if width < _WIDE:
        footer.append("; `headrace archive describe` and --json show all that is known of them", style="dim")
    return Renderables(title, table, footer)


def _state(one: RecordingDescriptor, state: str) -> Text:
    if one.is_active:
        return Text("ACTIVE", style="yellow")
    return Text(state, style=_STATE_STYLES.get(state, ""))


def _stop(one: RecordingDescriptor, state: str) -> str:
    return "-" if one.is_active else str(one.stop_position)


def _length(one: RecordingDescriptor, state: str) -> str:
    return "-" if one.is_active else format_bytes(one.stop_position - one.start_position)


@dataclass(frozen=True)
class _Column:
    name: str
    show: Callable[[RecordingDescriptor, str], RenderableType]
    is_number: bool = False
    is_minor: bool = False
    style: str = ""


_COLUMNS = (
    _Column("id", lambda one, _: str(one.recording_id), is_number=True, style="bold"),
    _Column("state", _state),
    _Column("stream", lambda one, _: str(one.stream_id), is_number=True),
    _Column("session", lambda one, _: str(one.session_id), is_number=True, is_minor=True),
    _Column("start", lambda one, _: str(one.start_position), is_number=True),
    _Column("stop", _stop, is_number=True),
    _Column("length", _length, is_number=True),
    _Column("began", lambda one, _: format_time_ms(one.start_timestamp), is_minor=True, style="dim"),
    _Column("channel", lambda one, _: Text(one.original_channel)),
    _Column("source", lambda one, _: Text(one.source_identity), is_minor=True),
)


def recording_json(recording: RecordingDescriptor, state: str) -> dict[str, object]:
    """One recording for programs."""
    retention = recording.retention
    kept = {
        "retention_hours": None if retention is None else retention.hours,
        "retention_bytes": None if retention is None else retention.bytes,
    }
    return dataclasses.asdict(recording) | kept | {"state": state}


def recording_details(recording: RecordingDescriptor, state: str) -> RenderableType:
    """All that is known of one recording."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in recording_json(recording, state).items():
        text = str(value)
        if name.endswith("_timestamp") and isinstance(value, int) and value > 0:
            text = f"{value}  {format_time_ms(value)}"
        table.add_row(name, Text(text))
    return table
