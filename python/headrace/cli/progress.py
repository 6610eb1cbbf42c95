"""A count and a rate on one line of stderr that rewrites itself, for people who watch."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headrace.tools.units import format_bytes, format_count, format_rate

_INTERVAL_S = 0.25


class RateLine:
    """Counts messages and shows how fast they come. Silent where stderr is not a terminal."""

    def __init__(self, verb: str, *, is_shown: bool) -> None:
        self.count = 0
        self.byte_count = 0
        self._verb = verb
        console = Console(stderr=True)
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._is_shown = is_shown and console.is_terminal
        self._started = self._shown_at = time.monotonic()
        self._shown_count = 0

    def add(self, count: int, byte_count: int) -> None:
        """Messages just moved, with their bytes."""
        self.count += count
        self.byte_count += byte_count

    def refresh(self) -> None:
        """Redraw, if it is time to."""
        now = time.monotonic()
        if not self._is_shown or now - self._shown_at < _INTERVAL_S:
            return
        rate = (self.count - self._shown_count) / (now - self._shown_at)
        text = f"{self._verb} {format_count(self.count)} messages, {format_rate(rate)}"
        self._live.update(Text(text, style="green"), refresh=True)
        self._shown_at, self._shown_count = now, self.count

    def summary(self) -> str:
        """The whole run in one line."""
        elapsed_s = self.elapsed_s
        rate = format_rate(self.count / elapsed_s) if elapsed_s > 0 else "-"
        size = format_bytes(self.byte_count)
        noun = "message" if self.count == 1 else "messages"
        return f"{self._verb} {format_count(self.count)} {noun}, {size}, in {elapsed_s:.3g} s: {rate}"

    def restart_clock(self) -> None:
        """Count the time from now: the first message has been moved."""
        self._started = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def __enter__(self) -> RateLine:
        if self._is_shown:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
