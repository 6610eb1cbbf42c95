"""The recordings of an archive, as a table and for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace.tools.units import format_bytes, format_time_ms

if TYPE_CHECKING:
    from headrace.archive.descriptor import RecordingDescriptor

_STATE_STYLES = {"VALID": "green", "INVALID": "bold red", "DELETED": "dim"}


def recordings_table(title: Text, recordings: Sequence[tuple[RecordingDescriptor, str]]) -> RenderableType:
    """One row a recording, with its state."""
    if not recordings:
        return Renderables(title, Text("no recordings", style="dim"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("id", justify="right", style="bold", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for name in ("stream", "session", "start", "stop", "length"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("began", style="dim", no_wrap=True)
    table.add_column("channel", overflow="fold")
    table.add_column("source", no_wrap=True)
    for one, state in recordings:
        is_active = one.is_active
        table.add_row(
            str(one.recording_id),
            Text(
                "ACTIVE" if is_active else state,
                style="yellow" if is_active else _STATE_STYLES.get(state, ""),
            ),
            str(one.stream_id),
            str(one.session_id),
            str(one.start_position),
            "-" if is_active else str(one.stop_position),
            "-" if is_active else format_bytes(one.stop_position - one.start_position),
            format_time_ms(one.start_timestamp),
            Text(one.original_channel),
            Text(one.source_identity),
        )
    return Renderables(title, table, Text(f"{len(recordings)} recordings", style="bold"))


def recording_json(recording: RecordingDescriptor, state: str) -> dict[str, object]:
    """One recording for programs."""
    return dataclasses.asdict(recording) | {"state": state}


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
