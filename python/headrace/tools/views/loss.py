"""What images lost before it was sent again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace.tools.loss_report import LossEntry
from headrace.tools.units import format_bytes, format_count, format_time_ms
from headrace.tools.views.responsive_view import ResponsiveView

# Narrower than this, the channel would be folded into a few columns.
_WIDE = 150


def loss_table(source: Text, entries: Sequence[LossEntry]) -> RenderableType:
    """One row an image, the one that lost most first."""
    if not entries:
        return Renderables(source, Text("no loss", style="green"))
    worst_first = sorted(entries, key=lambda entry: -entry.total_bytes_lost)
    lost = ResponsiveView(_wide(worst_first), _narrow(worst_first), width=_WIDE)
    total = "1 loss entry" if len(entries) == 1 else f"{len(entries)} loss entries"
    return Renderables(source, lost, Text(total, style="bold"))


def _wide(entries: Sequence[LossEntry]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("seen", "bytes lost"):
        table.add_column(name, justify="right", style="bold red", no_wrap=True)
    for name in ("first", "last"):
        table.add_column(name, style="dim", no_wrap=True)
    for name in ("session", "stream"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("channel", overflow="fold")
    table.add_column("source", no_wrap=True)
    for entry in entries:
        table.add_row(
            format_count(entry.observation_count),
            format_bytes(entry.total_bytes_lost),
            format_time_ms(entry.first_observation_ms),
            format_time_ms(entry.last_observation_ms),
            str(entry.session_id),
            str(entry.stream_id),
            Text(entry.channel),
            Text(entry.source),
        )
    return table


def _narrow(entries: Sequence[LossEntry]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("bytes lost", justify="right", style="bold red", no_wrap=True, vertical="top")
    table.add_column("of which stream, when", overflow="fold")
    for entry in entries:
        where = Text(f"stream {entry.stream_id}  session {entry.session_id}  from {entry.source}")
        where.append(f"\n{entry.channel}")
        seen = f"\nseen {format_count(entry.observation_count)} times, last "
        where.append(f"{seen}{format_time_ms(entry.last_observation_ms)}", style="dim")
        where.append(
            f"\n{'first ':>{len(seen) - 1}}{format_time_ms(entry.first_observation_ms)}", style="dim"
        )
        table.add_row(format_bytes(entry.total_bytes_lost), where)
    return table


def loss_json(entries: Sequence[LossEntry]) -> dict[str, object]:
    """The same for programs."""
    return {"losses": [dataclasses.asdict(entry) for entry in entries]}
