"""Tables that redraw in place, for people; lines of JSON, for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.live import Live

from headrace.cli.lifecycle import Stop, until_stopped

Snapshot = TypeVar("Snapshot")


def print_json(value: object) -> None:
    """One object on a line of its own, at once: a reader of a pipe sees it now."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def watch(
    take: Callable[[], Snapshot],
    *,
    table: Callable[[Snapshot, Snapshot | None], RenderableType],
    to_json: Callable[[Snapshot], object],
    as_json: bool,
    once: bool,
    interval_s: float,
) -> None:
    """Show snapshots until stopped, or one.

    A table fills the terminal and redraws without scrolling; the last one stays when the command is stopped. Where
    stdout is not a terminal one table is printed, since nothing could be redrawn.
    """
    console = Console()
    if once or (not as_json and not console.is_terminal):
        snapshot = take()
        if as_json:
            print_json(to_json(snapshot))
        else:
            _print_whole(console, table(snapshot, None))
        return
    with until_stopped() as stop:
        if not as_json:
            _watch_table(console, take, table, interval_s, stop)
            return
        while not stop.is_set:
            print_json(to_json(take()))
            stop.wait(interval_s)


def _watch_table(
    console: Console,
    take: Callable[[], Snapshot],
    table: Callable[[Snapshot, Snapshot | None], RenderableType],
    interval_s: float,
    stop: Stop,
) -> None:
    previous: Snapshot | None = None
    current = take()
    with Live(table(current, None), console=console, screen=True, auto_refresh=False) as live:
        while not stop.wait(interval_s):
            previous, current = current, take()
            live.update(table(current, previous), refresh=True)
    console.print(table(current, previous))


def _print_whole(console: Console, renderable: RenderableType) -> None:
    # A pipe has no width. Rich would assume 80 columns and fold channels that scripts want to find on one line.
    if not console.is_terminal:
        console = Console(width=240)
    console.print(renderable, soft_wrap=False)
