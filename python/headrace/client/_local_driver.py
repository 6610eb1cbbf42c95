"""A driver that a client takes in place of a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headrace import _core
from headrace._base.checks import wrong

if TYPE_CHECKING:
    from headrace.clock import Clock

__all__ = ["LocalDriver", "check_driver"]


class LocalDriver(Protocol):
    """A driver in this process: a :class:`headrace.MediaDriver`, or a node of :class:`headrace.testing.World`."""

    @property
    def directory(self) -> str:
        """The driver's directory."""

    @property
    def _clock(self) -> Clock:
        """The clock of the driver and of its clients."""

    @property
    def _driver(self) -> _core.MediaDriver | _core.Node: ...


def check_driver(driver: object) -> None:
    """Refuse what is neither a driver of this process nor ``None``.

    Raises:
        ConfigError: It is something else.
    """
    if driver is not None and not isinstance(
        getattr(driver, "_driver", None), _core.MediaDriver | _core.Node
    ):
        rule = "must be a driver of this process, such as a headrace.MediaDriver; for a path, use directory="
        raise wrong("driver", driver, rule)
