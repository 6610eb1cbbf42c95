"""Keeps the clients of a thread alive while a handler of a service holds the thread up.

A driver takes a client for dead that shows no sign of life for `aeron.client.liveness.timeout`. A handler that takes
longer must not end the member at each start anew, since each start replays its entry. So where the member does not
lead, as in a replay, a handler may take its time. Where it leads, others wait for it: only time counts in which nothing
came out of the handler.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from headrace._base.exceptions import HeadraceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from headrace.client import Client
    from headrace.cluster.service.callbacks import Callbacks
    from headrace.cluster.service.state import ServiceState

__all__ = ["LOOK_NS", "KeepAlive", "Watched"]

LOOK_NS = 500_000_000
"""Between two looks: well below any time-out of a driver that is in use."""


class Watched:
    """A service, as the keeper sees it.

    Args:
        callbacks: Says which handler runs, and since when.
        state: Says whether the member leads, and counts what the service asks for.
    """

    def __init__(self, callbacks: Callbacks, state: ServiceState) -> None:
        self._callbacks = callbacks
        self._state = state
        self._seen: tuple[int | None, int] = (None, 0)

    def look(self) -> bool:
        """Whether a handler runs that the thread may be kept alive for, since the last look."""
        before = self._seen
        self._seen = now = self._callbacks.running_since_ns, self._state.output_count
        if now[0] is None:
            return False
        return not self._state.is_leader or before[0] != now[0] or before[1] != now[1]


class KeepAlive:
    """Looks from a thread beside the one that takes the turns: of its own within a ``with`` block, else the caller's.

    Args:
        clients: Those that the other thread services.
        services: Those whose handlers it runs.
    """

    def __init__(self, clients: Sequence[Client], services: Sequence[Watched]) -> None:
        self._clients = clients
        self._services = services
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-keeper", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_NS / 1e9):
            self.look()

    def look(self) -> None:
        """Keep the clients alive if a handler runs; each ``LOOK_NS``."""
        # Each is looked at, also after one that is busy.
        busy_count = sum(one.look() for one in self._services)
        if busy_count:
            for client in self._clients:
                # One that has ended says so to the thread that services it.
                with contextlib.suppress(HeadraceError):
                    client._keep_alive()
