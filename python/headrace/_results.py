"""Values that say what became of an offer and what to do with a fragment."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

__all__ = ["Action", "OfferResult"]


class OfferResult(IntEnum):
    """Why an offer was not accepted.

    ``offer()`` and ``try_claim()`` give a stream position above zero, or a claim, when they succeed, and a
    member of this class when they do not. Every member is negative and false, so both
    ``if publication.offer(data) > 0`` and ``if publication.offer(data)`` ask whether it was accepted.
    """

    NOT_CONNECTED = -1
    """No subscriber is connected. Wait for one, or drop the message."""

    BACK_PRESSURED = -2
    """Subscribers have not made room yet. Try again after a moment."""

    ADMIN_ACTION = -3
    """The log moved on to its next term. Try again at once."""

    CLOSED = -4
    """The publication, or its client, is closed. Trying again cannot help."""

    MAX_POSITION_EXCEEDED = -5
    """The stream is used up. Add a publication with a new session id."""

    def __bool__(self) -> Literal[False]:
        return False


class Action(IntEnum):
    """What a handler of ``controlled_poll`` wants done. ``None`` means ``CONTINUE``.

    ``ABORT`` and ``BREAK`` stop the publisher's stream (:class:`headrace.Image`) that the fragment belongs to. When a
    subscription has several publishers, the poll goes on with the next one's stream, up to its limit. To take a
    single message whatever the number of publishers, use ``poll_message`` or ``receive``.
    """

    ABORT = 1
    """Stop polling this image, and deliver this fragment again at the next poll."""

    BREAK = 2
    """Stop polling this image after this fragment."""

    COMMIT = 3
    """Publish the position now, then go on."""

    CONTINUE = 4
    """Go on; the position is published when the poll ends."""
