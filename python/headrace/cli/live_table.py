"""A table that fills the terminal, redraws, scrolls and filters until it is closed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from rich.console import RenderableType
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Input, Static

Snapshot = TypeVar("Snapshot")
Table = Callable[[Snapshot, Snapshot | None, str], RenderableType]


class LiveTable(App[None], Generic[Snapshot]):
    """Shows `table(current, previous, search)` anew every `interval_s` seconds.

    SIGINT and SIGTERM close it as `q` does, between two redraws, so that the terminal is always put back.
    """

    CSS = """
    Screen { background: ansi_default; }
    VerticalScroll { background: ansi_default; }
    #search { display: none; height: 1; border: none; }
    #search.is-open { display: block; }
    #paused { display: none; height: 1; text-style: reverse; }
    #paused.is-paused { display: block; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "close"),
        Binding("ctrl+c", "quit", "close", show=False, priority=True),
        Binding("slash", "open_search", "filter", key_display="/"),
        Binding("escape", "clear_search", "show all"),
        Binding("space", "pause", "pause"),
    ]

    def __init__(self, take: Callable[[], Snapshot], table: Table[Snapshot], interval_s: float) -> None:
        super().__init__(ansi_color=True)
        self._take = take
        self._table = table
        self._interval_s = interval_s
        self._previous: Snapshot | None = None
        self._current = take()
        self._search = ""
        self._is_paused = False
        self.fault: Exception | None = None

    def drawn(self) -> RenderableType:
        """The table as it is shown now."""
        return self._table(self._current, self._previous, self._search)

    def compose(self) -> ComposeResult:
        """The table, the filter's line while it is open, a line while it is paused, the keys."""
        with VerticalScroll(id="scroll"):
            yield Static(self.drawn(), id="table")
        yield Input(placeholder="show rows that contain ...", id="search", compact=True)
        yield Static("paused: the table stays as it is until you press space again", id="paused")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Begins to refresh."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.exit)
        self.query_one("#scroll").focus()
        self.set_interval(self._interval_s, self._refresh)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filters while the user types."""
        self._search = event.value.casefold()
        self._draw()

    def on_input_submitted(self) -> None:
        """Keeps the filter and gives the keys back to the table."""
        self.query_one("#scroll").focus()

    def action_open_search(self) -> None:
        """Opens the filter's line."""
        self.query_one("#search").add_class("is-open").focus()

    def action_clear_search(self) -> None:
        """Shows every row again and closes the filter's line."""
        search = self.query_one("#search", Input)
        search.value = ""
        search.remove_class("is-open")
        self.query_one("#scroll").focus()

    def action_pause(self) -> None:
        """Keeps the table as it is and says so, or goes on at once."""
        self._is_paused = not self._is_paused
        self.query_one("#paused").set_class(self._is_paused, "is-paused")
        self._refresh()

    def _refresh(self) -> None:
        if self._is_paused:
            return
        try:
            self._previous, self._current = self._current, self._take()
        except Exception as fault:
            # Raised to the command once the terminal is put back.
            self.fault = fault
            self.exit()
            return
        self._draw()

    def _draw(self) -> None:
        self.query_one("#table", Static).update(self.drawn())
