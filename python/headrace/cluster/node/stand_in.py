"""Goes on with archive and consensus module while a handler of a service holds up the thread that takes their turns.

Other members wait for a consensus module, which must not wait for a service. A thread for each service would have every
message handed over from one to the other. Here that thread takes all turns as long as handlers are quick, and a second
one takes over those of archive and module when a handler is not.

    thread     archive module service archive module service ................. archive module service
    stand-in                                             archive module archive
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

__all__ = ["StandIn"]

# It takes over from what is under way at two looks in a row.
_LOOK_S = 0.01


class StandIn:
    """The second thread; a context manager that ends it.

    Args:
        take_turns: Takes turns until the function that it is given returns true.
    """

    def __init__(self, take_turns: Callable[[Callable[[], bool]], object]) -> None:
        self._take_turns = take_turns
        # Odd while a service is served. Written by the thread that serves.
        self._count = 0
        # Held while the stand-in takes turns.
        self._turns = threading.Lock()
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="headrace-stand-in", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None, "entered"
        self._stop.set()
        self._thread.join()

    def serve(self, step: Callable[[], int]) -> int:
        """Have a service take a step. Archive and module may take turns on the other thread until this returns."""
        self._count += 1
        try:
            return step()
        finally:
            self._count += 1
            # The stand-in has ended its last turn, or sees the count before the first.
            with self._turns:
                pass

    def check(self) -> None:
        """Raise what a turn of the stand-in has raised."""
        if self._failure is not None:
            raise self._failure

    @property
    def is_this_thread(self) -> bool:
        """Whether the caller is called in one of its turns."""
        return self._thread is threading.current_thread()

    def _run(self) -> None:
        seen = 0
        while not self._stop.wait(_LOOK_S):
            before, seen = seen, self._count
            if seen == before and seen % 2:
                with self._turns:
                    self._stand_in(seen)

    def _stand_in(self, count: int) -> None:
        try:
            self._take_turns(lambda: self._count != count or self._stop.is_set())
        except BaseException as failure:
            self._failure = failure
            self._stop.set()
