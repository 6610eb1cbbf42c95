"""What a client can take in place of a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headrace import _core

__all__ = ["LocalDriver"]


class LocalDriver(Protocol):
    """A driver in this process: a :class:`headrace.MediaDriver`, or a node of :class:`headrace.testing.World`."""

    @property
    def directory(self) -> str:
        """Where clients find it."""

    @property
    def _driver(self) -> _core.MediaDriver | _core.Node: ...
