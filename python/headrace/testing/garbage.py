"""Python's own collection of garbage, which stands still while a world is open."""

from __future__ import annotations

import gc
import threading

__all__ = ["NO_COLLECTION"]


class _NoCollection:
    """Python collects no cycles by itself from the first `begin` to the last `end`, and then as it did before."""

    def __init__(self) -> None:
        # One that the same thread may take again: an object that goes may end a world.
        self._lock = threading.RLock()
        self._count = 0
        self._collected = False

    def begin(self) -> None:
        """One more world is open."""
        with self._lock:
            if self._count == 0:
                self._collected = gc.isenabled()
                gc.disable()
            self._count += 1

    def end(self) -> None:
        """One world less is open."""
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._collected:
                gc.enable()


NO_COLLECTION = _NoCollection()
"""Of this process."""
