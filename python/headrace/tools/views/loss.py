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


def loss_table(source: Text, entries: Sequence[LossEntry]) -> RenderableType:
    """One row an image, the one that lost most first."""
    if not entries:
        return Renderables(source, Text("no loss", style="green"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("seen", "bytes lost"):
        table.add_column(name, justify="right", style="bold red", no_wrap=True)
    for name in ("first", "last"):
        table.add_column(name, style="dim", no_wrap=True)
    for name in ("session", "stream"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("channel", overflow="fold")
    table.add_column("source", no_wrap=True)
    for entry in sorted(entries, key=lambda entry: -entry.total_bytes_lost):
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
    return Renderables(source, table, Text(f"{len(entries)} loss entries", style="bold"))


def loss_json(entries: Sequence[LossEntry]) -> dict[str, object]:
    """The same for programs."""
    return {"losses": [dataclasses.asdict(entry) for entry in entries]}
