"""What a Python worker of Spark does once, whatever tasks it is given."""

from __future__ import annotations

import gc

from pyspark import TaskContext

__all__ = ["freeze_imports"]

_is_frozen = False


def freeze_imports() -> None:
    """Take what was imported out of the garbage collector's sight, once for each worker process.

    Spark collects garbage after each task of a worker that it keeps. With its modules, numpy and Arrow loaded that
    walk takes some 25 ms, most of what a small task costs, and finds nothing. Does nothing outside of a task: what
    a user's own program does with its collector is not ours to change.
    """
    global _is_frozen
    if not _is_frozen and TaskContext.get() is not None:
        _is_frozen = True
        gc.freeze()
