"""A forked child owns nothing that its parent opened: it closes its copies, and writes and ends nothing.

Objects of the compiled half know their process themselves (``fork_guard.rs``). This is for those of Python that have an
exit hook, a lock, or an end of a pipe whose other end waits for the last copy to be closed.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["ForkAware", "forget_in_children", "is_own"]


class ForkAware(Protocol):
    """Something that a child must let go of."""

    def _forget(self) -> None:
        """In a forked child: be closed, and touch nothing that the parent still uses."""


_watched: weakref.WeakSet[ForkAware] = weakref.WeakSet()


def forget_in_children(one: ForkAware) -> None:
    """Have an object forget in each child that is forked from now on."""
    _watched.add(one)


def is_own(pid: int) -> bool:
    """Whether the process that remembered its id is this one, and not one it was forked from."""
    return pid == os.getpid()


def _forget_all() -> None:
    for one in list(_watched):
        one._forget()
    _watched.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
