"""Sees a handler ask the machine for what is not in the log: time, chance, hashes of this process, threads.

The interpreter tells of each call that Python code makes, on this thread and while a handler runs, however the program
came by the function. It does not tell of what C code calls, such as `iter(time.time, None)`. That costs much,
so only :class:`headrace.cluster.DeterminismCheck` does it.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from types import CodeType, FrameType
from typing import Any

__all__ = ["Guard"]

_TIME = "use the timestamp of the entry, or cluster.time"
_CHANCE = "use random.Random(seed) that is part of the state, or make ids from the log position"
_HASHES = "hashes of texts and bytes differ between processes: use zlib.crc32 or hashlib"
_THREADS = "let a client of the cluster do it and send the result as a message"
_ADVICE = (
    ("time", ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"), _TIME),
    ("time", ("process_time", "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime"), _TIME),
    # The clock or the time zone of the machine, also where a time is given.
    ("time", ("localtime", "ctime", "strftime"), _TIME),
    ("datetime", ("datetime.now", "datetime.utcnow", "datetime.today", "date.today"), _TIME),
    ("random", ("random", "getrandbits"), _CHANCE),
    ("os", ("urandom", "getrandom"), _CHANCE),
    ("builtins", ("hash",), _HASHES),
    ("_thread", ("start_new_thread", "start_joinable_thread"), _THREADS),
)
# Functions in Python that reach the machine from C, or by what they kept from an earlier call.
_IN_PYTHON: dict[CodeType, str] = {
    getattr(importlib.import_module(module), name).__code__: f"{module}.{name}: {_CHANCE}"
    for module, name in (
        ("uuid", "uuid1"),
        ("tempfile", "mktemp"),
        ("tempfile", "mkstemp"),
        ("tempfile", "mkdtemp"),
    )
}
_SEED = random.Random.seed.__code__
# What is logged is no part of the state.
_PASSED_OVER = ("logging",)


def _forbidden() -> dict[Any, str]:
    """What a handler must not call, with the text for it."""
    found: dict[Any, str] = {}
    for module_name, names, advice in _ADVICE:
        module = importlib.import_module(module_name)
        for name in names:
            try:
                function = reduce(getattr, name.split("."), module)
            except AttributeError:
                # Not in this version of Python, or on this system.
                continue
            found[function] = f"{module_name}.{name}: {advice}"
    return found


class Guard:
    """Notes calls that a handler must not make. One thread at a time."""

    def __init__(self) -> None:
        self._forbidden = _forbidden()
        self._found: list[str] = []
        self._told: set[str] = set()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While a handler runs."""
        before = sys.getprofile()
        sys.setprofile(self._saw)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _saw(self, frame: FrameType, event: str, function: Any) -> None:
        if event == "call":
            text = _called_in_python(frame)
            if text is None:
                return
            caller = frame.f_back
            while caller is not None and caller.f_code.co_filename == frame.f_code.co_filename:
                caller = caller.f_back
        elif event == "c_call":
            try:
                text = self._forbidden.get(function)
            except TypeError:
                # A method of an object that has no hash.
                return
            caller = frame
        else:
            return
        if text is None or caller is None:
            return
        if caller.f_globals.get("__name__", "").partition(".")[0] not in _PASSED_OVER:
            self._found.append(f"{caller.f_code.co_filename}:{caller.f_lineno} calls {text}")

    def taken(self) -> str | None:
        """The first call since this was asked last that was not told of before."""
        found, self._found = self._found, []
        for text in found:
            if text not in self._told:
                self._told.add(text)
                return text
        return None


def _called_in_python(frame: FrameType) -> str | None:
    """What to say of a function in Python that begins."""
    if frame.f_code is _SEED and frame.f_locals.get("a") is None:
        return f"random.Random without a seed: {_CHANCE}"
    return _IN_PYTHON.get(frame.f_code)
