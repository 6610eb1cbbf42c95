"""The destinations of a publication or subscription that outlives its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from headrace._core import Publication, Subscription

__all__ = ["Destinations"]

_Native = TypeVar("_Native", bound="Publication | Subscription")

# Drivers count up from 1.
_NO_ID = -1


class Destinations:
    """The destinations that a program has added, whose ids differ on each driver.

    The program keeps the first id; no other destination gets it. The reconnecting client lets one thread at a time
    change something. Its own thread may restore meanwhile, and then restores again.
    """

    def __init__(self) -> None:
        # By the program's ids.
        self._channels: dict[int, str] = {}
        # From the program's ids to those of the present driver.
        self._native_ids: dict[int, int] = {}
        self._last_id = 0

    def restore(self, native: _Native) -> _Native:
        """Add all to the object of the next driver."""
        channels = list(self._channels.items())
        self._native_ids = {known_id: native.add_destination(channel) for known_id, channel in channels}
        return native

    def note_added(self, channel: str, native_id: int) -> int:
        """Note a destination that a driver has added; returns its id for the program."""
        # The next driver counts from the beginning.
        self._last_id = max(native_id, self._last_id + 1)
        self._channels[self._last_id] = channel
        self._native_ids[self._last_id] = native_id
        return self._last_id

    def note_removed(self, channel: str) -> bool:
        """Note that a destination with this text was removed; false when none is known."""
        for known_id, added in self._channels.items():
            if added == channel:
                return self.note_removed_by_id(known_id)
        return False

    def note_removed_by_id(self, known_id: int) -> bool:
        """Note that a destination was removed; false when it is not known."""
        self._native_ids.pop(known_id, None)
        return self._channels.pop(known_id, None) is not None

    def native_id(self, known_id: int) -> int:
        """The id on the present driver; for an unknown destination an id that none has.

        The present driver may have reused the number of a removed destination.
        """
        is_number = isinstance(known_id, int) and -(1 << 63) <= known_id < 1 << 63
        if is_number and known_id in self._channels:
            return self._native_ids.get(known_id, _NO_ID)
        # What is no id at all is refused where any other is.
        return _NO_ID if is_number else known_id
