"""Handlers that keep nothing alive.

The compiled half holds the handlers of a client until that is closed, and Python's collector does not see there. So a
handler that holds its agent, which holds the client, would keep all of it for ever if the program forgets it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import ParamSpec

__all__ = ["weakly"]

P = ParamSpec("P")


def weakly(method: Callable[P, object]) -> Callable[P, None]:
    """A bound method as a handler that does not keep its object; once that is gone it does nothing."""
    reference = weakref.WeakMethod(method)

    def call(*args: P.args, **keywords: P.kwargs) -> None:
        bound = reference()
        if bound is not None:
            bound(*args, **keywords)

    return call
