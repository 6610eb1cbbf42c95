"""Values that say what became of an offer and what to do with a fragment."""

from __future__ import annotations

from typing import Literal, TypeVar

from headrace._base.exceptions import MaxPositionExceededError, PublicationClosedError, PublicationError
from headrace._base.named_number import NamedNumber

__all__ = ["Action", "OfferResult", "accepted"]


class OfferResult(NamedNumber):
    """Why an offer was not accepted.

    Each ``offer`` returns a number that is true when the message was accepted: a stream position above zero, or a
    member of this class, which is below zero and false. So both ``if publication.offer(data) > 0`` and
    ``if publication.offer(data)`` ask whether it was accepted; ``isinstance(result, OfferResult)`` lets a type checker
    know that it was not. ``try_claim`` returns a claim, which is true, or a member of this class.
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


_Result = TypeVar("_Result")


def accepted(result: _Result | OfferResult) -> _Result:
    """Turn the refusal of an offer, claim or batch into an exception. Never blocks.

    For example ``position = headrace.accepted(publication.offer(data))``.

    Args:
        result: What ``offer``, ``try_claim`` or ``offer_batch`` gave.

    Returns:
        The same result, when all of it was accepted.

    Raises:
        PublicationClosedError: The publication is closed.
        MaxPositionExceededError: The stream is used up.
        PublicationError: Refused for now: ``.result`` says why, and ``.accepted`` how many messages of a batch were
            accepted before.
    """
    # Only what became of a batch has these two.
    count: int = getattr(result, "accepted", 0)
    refusal: OfferResult | None = getattr(result, "stopped_by", None)
    if isinstance(result, OfferResult):
        refusal = result
    elif refusal is None:
        return result
    error = _REFUSALS.get(refusal, PublicationError)
    before = f" after {count} messages" if count else ""
    raise error(f"the offer was refused{before}: {refusal.name}: {_REASONS[refusal]}", refusal, count)


_REASONS = {
    OfferResult.NOT_CONNECTED: "no subscriber, or too few of a group, is connected; wait, or drop the message",
    OfferResult.BACK_PRESSURED: "subscribers have not made room yet; try again after a moment",
    OfferResult.ADMIN_ACTION: "the log moved on to its next term; try again at once",
    OfferResult.CLOSED: "the publication, or its client, is closed; trying again cannot help",
    OfferResult.MAX_POSITION_EXCEEDED: "the stream is used up; add a publication with a new session id",
}
_REFUSALS = {
    OfferResult.CLOSED: PublicationClosedError,
    OfferResult.MAX_POSITION_EXCEEDED: MaxPositionExceededError,
}


class Action(NamedNumber):
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
