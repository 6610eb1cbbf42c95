"""The distinct errors a driver recorded."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace.cnc.error_log import ErrorEntry
from headrace.tools.units import format_count, format_time_ms
from headrace.tools.views.responsive_view import ResponsiveView

# Narrower than this, two times beside the text would leave it a few words a line.
_WIDE = 130


def errors_table(source: Text, entries: Sequence[ErrorEntry]) -> RenderableType:
    """The errors, latest last, each with its whole text."""
    if not entries:
        return Renderables(source, Text("no errors", style="green"))
    latest_last = sorted(entries, key=lambda entry: entry.last_observation_ms)
    errors = ResponsiveView(_wide(latest_last), _narrow(latest_last), width=_WIDE)
    total = "1 distinct error" if len(entries) == 1 else f"{len(entries)} distinct errors"
    return Renderables(source, errors, Text(total, style="bold"))


def _wide(entries: Sequence[ErrorEntry]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("seen", justify="right", style="bold red", no_wrap=True)
    table.add_column("first", style="dim", no_wrap=True)
    table.add_column("last", no_wrap=True)
    table.add_column("error", overflow="fold")
    for entry in entries:
        table.add_row(
            format_count(entry.observation_count),
            format_time_ms(entry.first_observation_ms),
            format_time_ms(entry.last_observation_ms),
            Text(entry.text.rstrip()),
        )
    return table


def _narrow(entries: Sequence[ErrorEntry]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("seen", justify="right", style="bold red", no_wrap=True, vertical="top")
    table.add_column("error", overflow="fold")
    for entry in entries:
        what = Text(entry.text.rstrip())
        what.append(f"\nlast  {format_time_ms(entry.last_observation_ms)}", style="dim")
        what.append(f"\nfirst {format_time_ms(entry.first_observation_ms)}", style="dim")
        table.add_row(format_count(entry.observation_count), what)
    return table


def errors_json(entries: Sequence[ErrorEntry]) -> dict[str, object]:
    """The same for programs."""
    return {
        "errors": [
            {
                "observation_count": entry.observation_count,
                "first_observation_ms": entry.first_observation_ms,
                "last_observation_ms": entry.last_observation_ms,
                "text": entry.text,
            }
            for entry in entries
        ]
    }
