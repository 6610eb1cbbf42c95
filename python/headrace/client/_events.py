"""What a client tells the logger `headrace.client`: once for each event, never once for a message."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._checks import check_callable
from headrace._logging import CLIENT

if TYPE_CHECKING:
    from headrace._core import Image
    from headrace._exceptions import HeadraceError

__all__ = ["fault", "how_to_start_a_driver", "no_driver", "no_slot", "on_image", "on_lost_image"]


def fault(error: HeadraceError) -> None:
    """A fault that no caller waits for, such as the loss of the driver."""
    CLIENT.error("headrace client: %s", error)


def no_slot(reason: str) -> None:
    """Waits of this program are not woken, so that messages may come a millisecond later. Said once."""
    CLIENT.warning("headrace client: waiting calls look every millisecond instead of being woken: %s", reason)


def how_to_start_a_driver(directory: str) -> str:
    """What a person who waits for a driver does."""
    return (
        f"start one with `headrace driver --dir {directory}` or headrace.MediaDriver(directory={directory!r})"
    )


def no_driver(directory: str, timeout_ms: int) -> None:
    """What a program waits for that has found no driver for a second."""
    CLIENT.warning(
        "headrace client: waiting up to %g s for a media driver: directory=%s; %s",
        timeout_ms / 1000,
        directory,
        how_to_start_a_driver(directory),
    )


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
