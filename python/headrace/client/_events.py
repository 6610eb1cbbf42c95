"""What a client tells the logger `headrace.client`: once for each event, never once for a message."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace._checks import check_callable
from headrace._exceptions import DriverTimeoutError
from headrace._logging import CLIENT
from headrace.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from headrace._core import Image
    from headrace._exceptions import HeadraceError
    from headrace.clock import Clock

__all__ = ["await_driver", "fault", "no_slot", "on_image", "on_lost_image"]

# How long to wait in silence. A driver that runs answers within milliseconds.
_SILENCE_S = 1.0


def fault(error: HeadraceError) -> None:
    """A fault that no caller waits for, such as the loss of the driver."""
    CLIENT.error("headrace client: %s", error)


def no_slot(reason: str) -> None:
    """Waits of this program are not woken, so that messages may come a millisecond later. Said once."""
    CLIENT.warning("headrace client: waiting calls look every millisecond instead of being woken: %s", reason)


@contextmanager
def await_driver(directory: str, timeout_ms: int, clock: Clock) -> Iterator[None]:
    """Around the wait for a driver: after a second the program's user is told what it waits for.

    A wait on another clock than the machine's is over at once for its user, and needs no word.

    Raises:
        DriverTimeoutError: As the wait itself, with how to start a driver.
    """
    start = f"start one with `headrace driver --dir {directory}` or headrace.MediaDriver({directory!r})"
    notice = threading.Timer(
        _SILENCE_S,
        CLIENT.warning,
        (
            "headrace client: waiting up to %g s for a media driver: directory=%s; %s",
            timeout_ms / 1000,
            directory,
            start,
        ),
    )
    notice.daemon = True
    if clock is SYSTEM_CLOCK:
        notice.start()
    try:
        yield
    except DriverTimeoutError as absent:
        raise DriverTimeoutError(f"{absent}; {start}") from None
    finally:
        notice.cancel()


def on_lost_image(directory: str) -> Callable[[Image], object] | None:
    """What tells of an image that went before the end of its stream, if anything listens for warnings."""
    if not CLIENT.isEnabledFor(logging.WARNING):
        return None

    def lost(image: Image) -> None:
        CLIENT.warning(
            "headrace client: image lost before the end of its stream: session_id=%d stream_id=%d source=%s "
            "position=%d; `headrace events --dir %s --session %d` tells why",
            image.session_id,
            image.stream_id,
            image.source_identity,
            image.position,
            directory,
            image.session_id,
        )

    return lost


def on_image(
    handler: Callable[[Image], object] | None, event: str, *, always: bool = False
) -> Callable[[Image], object] | None:
    """The handler, preceded by a line at DEBUG. Without DEBUG it stays as it is, and costs what it did.

    With `always` there is a handler even if the program gave none.

    Raises:
        TypeError: The handler cannot be called.
    """
    check_callable(f"on_{event}_image", handler)
    if not CLIENT.isEnabledFor(logging.DEBUG) or (handler is None and not always):
        return handler

    def logged(image: Image) -> None:
        CLIENT.debug("headrace client: image %s: %r", event, image)
        if handler is not None:
            handler(image)

    return logged
