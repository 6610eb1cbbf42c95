"""SIGTERM as an orderly end: `with` blocks close what they opened."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["exit_on_sigterm"]


@contextlib.contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Within the block SIGTERM ends the program in order, as Ctrl-C does; without, it ends it on the spot.

    The signal raises ``SystemExit`` in the main thread, so ``with`` blocks and ``finally`` clauses run: publications,
    clients, drivers and archives close, and their peers learn of it at once. The exit status is 143 (128 and the
    signal's number). Blocking calls of this package end within some milliseconds. A second SIGTERM, for a program
    whose closing does not end, does what the signal did before the block; so does one after the block.

    Put it around everything else::

        with headrace.exit_on_sigterm(), headrace.connect() as client:
            ...

    Does not block.

    Raises:
        ValueError: Not called from the main thread, which alone may set signal handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        raise ValueError(
            f"exit_on_sigterm() in thread {threading.current_thread().name!r}: must be called from the main thread"
        )
    previous = signal.getsignal(signal.SIGTERM)
    # None stands for a handler that was not set from Python, and which Python cannot set again.
    before = signal.SIG_DFL if previous is None else previous

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, before)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
