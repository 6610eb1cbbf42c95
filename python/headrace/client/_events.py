"""What a client logs on `headrace.client`: once for each event, never for a message."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._base.checks import check_callable
from headrace._base.logging import CLIENT

if TYPE_CHECKING:
    from headrace._base.exceptions import HeadraceError
    from headrace._core import Image

__all__ = ["fault", "how_to_start_a_driver", "no_driver", "no_slot", "on_image", "on_lost_image"]


def fault(error: HeadraceError) -> None:
    """Log a failure that no caller waits for, such as the loss of the driver."""
    CLIENT.error("headrace client: %s", error)


def no_slot(reason: str) -> None:
    """Log, once, that nothing wakes this program's waits, so that messages may arrive a millisecond later."""
    CLIENT.warning("headrace client: waiting calls look every millisecond instead of being woken: %s", reason)


def how_to_start_a_driver(directory: str) -> str:
    """How to start the driver that a program waits for."""
    return (
        f"start one with `headrace driver --dir {directory}` or headrace.MediaDriver(directory={directory!r})"
    )


def no_driver(directory: str, timeout_ms: int) -> None:
    """Log that a program has waited a second for its driver."""
    CLIENT.warning(
        "headrace client: waiting up to %g s for a media driver: directory=%s; %s",
        timeout_ms / 1000,
        directory,
        how_to_start_a_driver(directory),
    )


def on_lost_image(directory: str) -> Callable[[Image], object] | None:
    """A handler that logs images that were lost before the end of their stream, if warnings are enabled."""
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
    """The handler, preceded by a line at DEBUG; without DEBUG the handler itself, at no extra cost.

    With `always` the result is a handler even if the program set none.

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
