"""Tables that redraw in place, for people; lines of JSON, for programs."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable
from typing import TextIO, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment

from headrace._base.control_characters import shown
from headrace.cli.lifecycle import until_stopped

Snapshot = TypeVar("Snapshot")


class Shown:
    """Draws what it holds, with texts as `shown` gives them: what looks like markup in one is text too."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options.update(markup=False)):
            yield segment if segment.control else Segment(shown(segment.text), segment.style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options.update(markup=False), self._renderable)


class OutputConsole(Console):
    """A console on stdout. A pipe whose reader has gone raises here too, and `lifecycle` decides what that means.

    Texts stay what they are, also where they look like markup, or like ``:100:``.
    """

    def __init__(self, *, width: int | None = None) -> None:
        super().__init__(width=width, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Not rich's exit with status 1: `headrace events | head -1` has done all that its reader wanted."""
        raise BrokenPipeError


def print_json(value: object) -> None:
    """One object on a line of its own, at once: a reader of a pipe sees it now."""
    # An encoding that lacks a character would have it escaped as JSON does not know it.
    is_unicode = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    sys.stdout.write(json.dumps(value, ensure_ascii=not is_unicode, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def watch(
    take: Callable[[], Snapshot],
    *,
    table: Callable[[Snapshot, Snapshot | None, str], RenderableType],
    to_json: Callable[[Snapshot], object],
    as_json: bool,
    once: bool,
    interval_s: float,
) -> None:
    """Show snapshots until stopped, or one.

    `table` draws a snapshot, with the one before it for rates, and only the rows that contain a text in lower case.
    The table fills the terminal, redraws, scrolls and filters; the last one stays when the command is stopped. Where
    stdin, stdout or stderr is not a terminal one table is printed, since nothing could be redrawn.
    """

    def draw(current: Snapshot, previous: Snapshot | None, search: str) -> RenderableType:
        return Shown(table(current, previous, search))

    if as_json:
        _print_objects(take, to_json, once=once, interval_s=interval_s)
    elif once or not all(map(_is_terminal, (sys.stdin, sys.stdout, sys.stderr))):
        print_whole(draw(take(), None, ""))
    else:
        # Only a live table needs the library, which takes a while to load.
        from headrace.cli.live_table import LiveTable

        app = LiveTable(take, draw, interval_s)
        app.run()
        if app.fault is not None:
            raise app.fault
        OutputConsole().print(app.drawn())


def _is_terminal(stream: TextIO | None) -> bool:
    """False too for one that the parent has closed, which Python has as ``None``."""
    return stream is not None and stream.isatty()


def contains(search: str, *texts: object) -> bool:
    """Whether a row that shows these texts contains what the user looks for, which is in lower case."""
    return any(search in str(text).casefold() for text in texts)


def _print_objects(
    take: Callable[[], Snapshot], to_json: Callable[[Snapshot], object], *, once: bool, interval_s: float
) -> None:
    if once:
        print_json(to_json(take()))
        return
    with until_stopped() as stop:
        while not stop.is_set:
            print_json(to_json(take()))
            stop.wait(interval_s)


def print_whole(renderable: RenderableType) -> None:
    """Draw it once on stdout."""
    console = OutputConsole()
    # A pipe has no width. Rich would assume 80 columns and fold channels that scripts want to find on one line.
    if not console.is_terminal:
        console = OutputConsole(width=240)
    console.print(renderable, soft_wrap=False)
