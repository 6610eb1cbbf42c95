"""An agent whose turns a program may take, as part of a node too: what a handler asks for in one comes after it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from headrace._agent.agent import Agent
from headrace._base.exceptions import ReentrantError

__all__ = ["OwnTurn", "SteppedAgent"]


class OwnTurn:
    """Which thread takes a turn now; a context manager around each turn that a program asks for."""

    def __init__(self) -> None:
        self._thread_id: int | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether this thread takes one, so that a handler of it is running."""
        return self._thread_id == threading.get_ident()

    def check_is_over(self, what: str) -> None:
        """Refuse what would take another turn.

        Raises:
            ReentrantError: This thread takes one.
        """
        if self.is_under_way:
            raise ReentrantError(
                f"{what}: a handler runs within a turn, and cannot take another one; call it once the turn is over"
            )

    def __enter__(self) -> None:
        self._thread_id = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._thread_id = None


class SteppedAgent(Agent):
    """An agent that a handler may close within a turn, whichever thread takes that: it closes once the turn is over."""

    def __init__(self) -> None:
        super().__init__()
        self._own_turn = OwnTurn()

    def _taken(self, turn: Callable[[], int]) -> int:
        """Take a turn, or a part of one.

        Raises:
            ReentrantError: A handler asks for it.
        """
        if self._threads:
            # Closing it within a turn is known by the thread.
            return turn()
        self._own_turn.check_is_over("do_work")
        try:
            with self._own_turn:
                return turn()
        finally:
            if self._closes_itself:
                super().close()

    def close(self) -> None:
        """See :meth:`Agent.close`. Within a turn that a program takes it does not wait either."""
        if self._own_turn.is_under_way:
            self._closes_itself = True
        else:
            super().close()
