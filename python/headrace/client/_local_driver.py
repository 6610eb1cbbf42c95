"""What a client can take in place of a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headrace import _core
    from headrace.clock import Clock

__all__ = ["LocalDriver"]


class LocalDriver(Protocol):
    """A driver in this process: a :class:`headrace.MediaDriver`, or a node of :class:`headrace.testing.World`."""

    @property
    def directory(self) -> str:
        """Where clients find it."""

    @property
    def _clock(self) -> Clock:
        """What it and its clients go by."""

    @property
    def _driver(self) -> _core.MediaDriver | _core.Node: ...
