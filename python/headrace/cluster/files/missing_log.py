"""What the recording log says that the log has, beside what the archive has of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.cluster.files.recording_log_entries import Entry

__all__ = ["Shortfall", "find_shortfall"]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A part of the log that was committed, and is not there.

    Attributes:
        end: Up to where the archive has the log.
        position: Up to where the log went at least.
        known_from: What the recording log has that says so.
    """

    end: int
    position: int
    known_from: str

    def __str__(self) -> str:
        return (
            f"the archive has the log up to position {self.end} only, but {self.known_from} at position "
            f"{self.position}: the entries between are missing, and clients may have had answers to them"
        )


def find_shortfall(entries: Iterable[Entry], end: int) -> Shortfall | None:
    """What is missing of a log that ends at a position; ``None`` when all is there that is known of."""
    position, known_from = end, ""
    for entry in entries:
        if not (entry.is_term or entry.is_snapshot):
            continue
        is_ended = entry.log_position != NULL_VALUE
        known = entry.log_position if is_ended else entry.term_base_log_position
        if known > position:
            kind = f"term {entry.leadership_term_id} {'ended' if is_ended else 'began'}"
            position, known_from = known, "a snapshot was taken" if entry.is_snapshot else kind
    return Shortfall(end, position, known_from) if known_from else None
