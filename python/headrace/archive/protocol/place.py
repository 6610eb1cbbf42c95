"""How far a reader is in a stream of several recordings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace._base.checks import wrong
from headrace._base.exceptions import ArchiveError, ConfigError

if TYPE_CHECKING:
    from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = ["Place"]

# A recording that was read whole may be extended. Of so many the place knows how far they were read.
_ENDS_MAX = 256


@dataclass(frozen=True, slots=True)
class Place:
    """All messages that a reader of a named stream has had. Small, and made to be stored.

    Attributes:
        read_up_to: Recordings up to this id are read whole, except as far as `positions` has them; -1 for none.
        positions: How far some recordings are read.
        as_of_ms: Of those that are read whole none stopped later, by the clock of the archive.
    """

    read_up_to: int = -1
    positions: Mapping[int, int] = field(default_factory=dict)
    as_of_ms: int = 0

    def to_value(self) -> dict[str, Any]:
        """The place as plain values, for :meth:`from_value`."""
        positions = {str(one): end for one, end in self.positions.items()}
        return {"read_up_to": self.read_up_to, "positions": positions, "as_of_ms": self.as_of_ms}

    @classmethod
    def from_value(cls, value: Any) -> Place:
        """The place that :meth:`to_value` returned.

        Raises:
            ConfigError: The value is of something else.
        """
        try:
            positions = {int(one): int(end) for one, end in value["positions"].items()}
            return cls(int(value["read_up_to"]), positions, int(value["as_of_ms"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise wrong("place", value, "must be what Place.to_value returned") from None

    def to_json(self) -> str:
        """The place as a text, for :meth:`from_json`."""
        return json.dumps(self.to_value())

    @classmethod
    def from_json(cls, text: str) -> Place:
        """The place that :meth:`to_json` returned.

        Raises:
            ConfigError: The text is of something else.
        """
        try:
            return cls.from_value(json.loads(text))
        except (ValueError, ConfigError):
            raise wrong("place", text, "must be a text of Place.to_json") from None

    @classmethod
    def after(cls, recordings: Iterable[tuple[RecordingDescriptor, int]]) -> Place:
        """The place after all that is recorded: of each recording its present end."""
        found = {one.recording_id: (one, end) for one, end in recordings}
        place = cls(max(found, default=-1), {one: end for one, (_, end) in found.items()})
        return place.noting(descriptor for descriptor, _ in found.values()).compact(
            {one for one, (descriptor, _) in found.items() if descriptor.is_active}
        )

    def has(self, recording_id: int, position: int) -> bool:
        """Whether a message that ends at a position of a recording is read."""
        read = self.positions.get(recording_id)
        return recording_id <= self.read_up_to if read is None else position <= read

    @classmethod
    def earliest(cls, places: Iterable[Place]) -> Place:
        """The place from which on all is there that one of some places lacks."""
        several = list(places)
        if len(several) == 1:
            return several[0]
        read_up_to = min(one.read_up_to for one in several)
        positions: dict[int, int] = {}
        for recording_id in {one for place in several for one in place.positions}:
            lacking = [
                place.positions.get(recording_id, 0)
                for place in several
                if recording_id in place.positions or recording_id > place.read_up_to
            ]
            if min(lacking) or recording_id <= read_up_to:
                positions[recording_id] = min(lacking)
        return cls(read_up_to, positions, min(one.as_of_ms for one in several))

    def is_unread(self, recording: RecordingDescriptor) -> bool:
        """Whether a recording has messages that were not read, or may get some.

        Raises:
            ArchiveError: It was extended, and the place does not know any more how far it was read.
        """
        position = self.positions.get(recording.recording_id)
        if position is not None:
            return recording.is_active or recording.stop_position > position
        if recording.recording_id > self.read_up_to:
            return True
        if recording.is_active or recording.stop_timestamp > self.as_of_ms:
            raise ArchiveError(
                f"recording {recording.recording_id} was extended after it was read whole, and {_ENDS_MAX} others "
                "since: how far it was read is not known any more; begin anew, or at another place",
                recording_id=recording.recording_id,
            )
        return False

    def having_read(self, positions: Mapping[int, int]) -> Place:
        """The place with more read of some recordings."""
        return dataclasses.replace(self, positions={**self.positions, **positions})

    def advanced(self, positions: Mapping[int, int]) -> Place:
        """As :meth:`having_read`, but what is read already stays read."""
        return self.having_read({one: end for one, end in positions.items() if not self.has(one, end)})

    def noting(self, recordings: Iterable[RecordingDescriptor]) -> Place:
        """The place after some recordings were looked at."""
        stops = (one.stop_timestamp for one in recordings if not one.is_active)
        return dataclasses.replace(self, as_of_ms=max((self.as_of_ms, *stops)))

    def compact(self, unread: set[int]) -> Place:
        """The place as small as it may be, where those are all recordings with more to read."""
        known = max((self.read_up_to, *self.positions))
        read_up_to = known if not unread else max(self.read_up_to, min(unread) - 1)
        whole = sorted(one for one in self.positions if one <= read_up_to and one not in unread)
        dropped = set(whole[:-_ENDS_MAX])
        kept = {one: end for one, end in self.positions.items() if one not in dropped}
        return dataclasses.replace(self, read_up_to=read_up_to, positions=kept)
