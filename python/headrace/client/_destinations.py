"""Where a publication that outlives its driver sends to, or a subscription receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from headrace._core import Publication, Subscription

__all__ = ["Destinations"]

_Native = TypeVar("_Native", bound="Publication | Subscription")

# Drivers count up from 1.
_NO_ID = -1


class Destinations:
    """The destinations that a program has added, which each driver knows by ids of its own.

    The program keeps the id that it was given first. Used by the program's threads and by the reconnecting one: each
    change is a single operation on a dictionary.
    """

    def __init__(self) -> None:
        # By the program's ids: the channel, and the id on the present driver.
        self._added: dict[int, tuple[str, int]] = {}

    def restore(self, native: _Native) -> _Native:
        """Add all to the object of the next driver."""
        for known_id, (channel, _) in list(self._added.items()):
            self._added[known_id] = channel, native.add_destination(channel)
        return native

    def note_added(self, channel: str, native_id: int) -> int:
        """The program's id of a destination that a driver has taken."""
        known_id = native_id
        # The next driver counts from the beginning.
        while known_id in self._added:
            known_id += 1
        self._added[known_id] = channel, native_id
        return known_id

    def note_removed(self, channel: str) -> None:
        """One that was added with this text is gone."""
        for known_id, (added, _) in list(self._added.items()):
            if added == channel:
                self._added.pop(known_id, None)
                return

    def note_removed_by_id(self, known_id: int) -> None:
        """It is gone."""
        self._added.pop(known_id, None)

    def native_id(self, known_id: int) -> int:
        """The id on the present driver; one that no destination has for what is not there.

        The present driver may have given the number of a destination that is gone to another one.
        """
        is_number = isinstance(known_id, int) and -(1 << 63) <= known_id < 1 << 63
        # What is no id at all is refused where any other is.
        return self._added.get(known_id, ("", _NO_ID if is_number else known_id))[1]
