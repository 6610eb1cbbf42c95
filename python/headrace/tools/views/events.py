"""Changes of state, as lines that also fit where they are printed one by one."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from rich.text import Text

from headrace.event_log import Event

_INDENT = " " * 20


def event_lines(event: Event) -> Text:
    """When what went from where to where, then why, and what tells it from others."""
    line = Text(f"{_time(event.time_ns)}  ", style="dim")
    line.append(f"{event.kind} {event.id}  ", style="not dim bold")
    style = "not dim bold red" if event.is_fault else "not dim"
    line.append(f"{event.old} -> {event.new}" if event.old else event.new, style=style)
    for name, number in (("stream", event.stream_id), ("session", event.session_id), ("of", event.parent_id)):
        if number is not None:
            line.append(f"  {name} {number}")
    line.append(f"\n{_INDENT}")
    line.append(event.reason, style="not dim")
    if event.detail:
        line.append(f"  {event.detail}")
    return line


def event_json(event: Event, directory: str) -> dict[str, object]:
    """The same for programs."""
    return {"directory": directory, **dataclasses.asdict(event)}


def _time(epoch_ns: int) -> str:
    moment = datetime.fromtimestamp(epoch_ns // 1_000_000_000)
    return f"{moment:%m-%d %H:%M:%S}.{epoch_ns // 1_000_000 % 1000:03d}"
