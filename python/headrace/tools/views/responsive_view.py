"""One of two drawings, by the width of the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType


@dataclass(frozen=True)
class ResponsiveView:
    """Draws `wide` where at least `width` columns are free, else `narrow`."""

    wide: RenderableType
    narrow: RenderableType
    width: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """What fits."""
        yield self.wide if options.max_width >= self.width else self.narrow
