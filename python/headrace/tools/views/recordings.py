"""The recordings of an archive, as a table and for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace.tools.units import format_bytes, format_duration_ns, format_time_ms

if TYPE_CHECKING:
    from headrace.archive import CatalogEntry, RecordingDescriptor

# In a narrower table, the least important columns would leave no room for the channel.
_WIDE = 130
_NS_PER_HOUR = 3_600_000_000_000
_STATE_STYLES = {"ACTIVE": "yellow", "VALID": "green", "INVALID": "bold red", "DELETED": "dim"}


@dataclass(frozen=True)
class ListedRecording:
    """A recording as it is shown.

    Attributes:
        descriptor: What the catalog says of it.
        state: Its state there, or ACTIVE while it is being recorded.
        end: Up to where it is recorded; ``None`` if that cannot be told.
    """

    descriptor: RecordingDescriptor
    state: str
    end: int | None

    @classmethod
    def of(cls, entry: CatalogEntry, live_ends: Mapping[int, int]) -> Self:
        """An entry of the catalog, with how far active recordings are."""
        one = entry.descriptor
        if not (entry.is_valid and one.is_active):
            return cls(one, entry.state_name, None if one.is_active else one.stop_position)
        return cls(one, "ACTIVE", live_ends.get(one.recording_id))

    @property
    def length(self) -> int | None:
        """Bytes that are recorded."""
        return None if self.end is None else self.end - self.descriptor.start_position


def recordings_table(title: Text, recordings: Sequence[ListedRecording], width: int) -> RenderableType:
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
    for one in recordings:
        table.add_row(*(column.show(one) for column in columns))
    many = "" if len(recordings) == 1 else "s"
    footer = Text(f"{len(recordings)} recording{many}", style="bold")
    if width < _WIDE:
        footer.append("; `headrace archive describe` and --json show all that is known of them", style="dim")
    return Renderables(title, table, footer)


def _state(one: ListedRecording) -> Text:
    return Text(one.state, style=_STATE_STYLES.get(one.state, ""))


def _stop(one: ListedRecording) -> str:
    return "-" if one.descriptor.is_active else str(one.descriptor.stop_position)


def _length(one: ListedRecording) -> str:
    return "-" if one.length is None else format_bytes(one.length)


@dataclass(frozen=True)
class _Column:
    name: str
    show: Callable[[ListedRecording], RenderableType]
    is_number: bool = False
    is_minor: bool = False
    style: str = ""


_COLUMNS = (
    _Column("id", lambda one: str(one.descriptor.recording_id), is_number=True, style="bold"),
    _Column("state", _state),
    _Column("stream", lambda one: str(one.descriptor.stream_id), is_number=True),
    _Column("session", lambda one: str(one.descriptor.session_id), is_number=True, is_minor=True),
    _Column("start", lambda one: str(one.descriptor.start_position), is_number=True),
    _Column("stop", _stop, is_number=True),
    _Column("length", _length, is_number=True),
    _Column("began", lambda one: format_time_ms(one.descriptor.start_timestamp), is_minor=True, style="dim"),
    _Column("channel", lambda one: Text(one.descriptor.original_channel)),
    _Column("source", lambda one: Text(one.descriptor.source_identity), is_minor=True),
)


def recording_json(one: ListedRecording) -> dict[str, object]:
    """One recording for programs."""
    retention = one.descriptor.retention
    kept = {
        "retention_hours": None if retention is None else retention.hours,
        "retention_bytes": None if retention is None else retention.bytes,
        "retention_ended_hours": None if retention is None else retention.ended_hours,
    }
    return dataclasses.asdict(one.descriptor) | kept | {"state": one.state, "length": one.length}


def recording_details(one: ListedRecording) -> RenderableType:
    """All that is known of one recording."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in recording_json(one).items():
        text = str(value)
        if name.endswith("_timestamp") and isinstance(value, int) and value > 0:
            text = f"{value}  {format_time_ms(value)}"
        elif name.endswith("_hours") and isinstance(value, float):
            text = f"{value:g}  {format_duration_ns(value * _NS_PER_HOUR)}"
        table.add_row(name, Text(text))
    return table
