"""The line above every table: of what, when, and from where; of a driver also whether it lives."""

from __future__ import annotations

from rich.text import Text

from headrace.tools.snapshot import DriverSnapshot
from headrace.tools.units import format_duration_ns, format_time_ms


def title_line(what: str, time_ms: int, source: object) -> Text:
    """`what` the table shows, when it was looked at, and where."""
    line = Text(f"{what}  ", style="bold")
    line.append(f"{format_time_ms(time_ms)}  ", style="not bold dim")
    line.append(str(source), style="not bold")
    return line


def header_line(snapshot: DriverSnapshot, what: str) -> Text:
    """The title, the process and its heartbeat; red if the driver is gone."""
    line = title_line(what, snapshot.time_ms, snapshot.path.parent)
    line.append(f"  CnC {snapshot.version}  pid {snapshot.pid}  ", style="not bold")
    line.append(_heartbeat(snapshot), style="not bold green" if snapshot.is_alive else "bold red")
    return line


def header_json(snapshot: DriverSnapshot) -> dict[str, object]:
    """The same for programs."""
    return {
        "time_ms": snapshot.time_ms,
        "directory": str(snapshot.path.parent),
        "version": snapshot.version,
        "pid": snapshot.pid,
        "start_timestamp_ms": snapshot.start_timestamp_ms,
        "heartbeat_age_ms": snapshot.heartbeat_age_ms,
        "is_alive": snapshot.is_alive,
    }


def _heartbeat(snapshot: DriverSnapshot) -> str:
    age_ms = snapshot.heartbeat_age_ms
    if age_ms is None:
        return "stopped"
    age = format_duration_ns(age_ms * 1_000_000)
    if snapshot.is_process_dead:
        return f"last heartbeat {age} ago: the driver's process has ended"
    return f"heartbeat {age} ago" if snapshot.is_alive else f"no heartbeat for {age}: the driver is gone"
