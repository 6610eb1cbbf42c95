"""The terms of a log and where they begin, as the recording log has them. Cluster specification 6.2."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.positions import NULL_VALUE

__all__ = ["Term", "Terms"]


@dataclass(frozen=True, slots=True)
class Term:
    """A term, where it begins, and where it ends: -1 of the last one."""

    leadership_term_id: int
    term_base_log_position: int
    end_position: int = NULL_VALUE


class Terms:
    """The terms of one log, in order and without gaps.

    Args:
        terms: Ids and bases from the recording log, ascending.
        snapshot_term_id: The term of the snapshot that a log without terms follows; -1 if there is none.
    """

    def __init__(self, terms: Iterable[tuple[int, int]] = (), snapshot_term_id: int = NULL_VALUE) -> None:
        self._bases: dict[int, int] = dict(terms)
        self._snapshot_term_id = snapshot_term_id
        self.last_id = max(self._bases, default=snapshot_term_id)
        """The last term; -1 before the first."""
        self._before = dict(self._bases), self.last_id

    def after(self, term_id: int) -> Term | None:
        """The term that follows another, if the log has it."""
        following = term_id + 1
        base = self._bases.get(following)
        if base is None:
            return None
        return Term(following, base, self._bases.get(following + 1, NULL_VALUE))

    def begin(self, term_id: int, base: int) -> bool:
        """Note that a term begins, and that those skipped before it are empty; returns whether that is news."""
        if term_id in self._bases or term_id <= self.last_id:
            return False
        self._before = dict(self._bases), self.last_id
        for skipped in range(max(self.last_id + 1, 0), term_id + 1):
            self._bases[skipped] = base
        self.last_id = term_id
        return True

    def take_back(self) -> None:
        """Undo the last :meth:`begin` or :meth:`drop_after`: it could not be stored."""
        bases, self.last_id = self._before
        self._bases = dict(bases)

    def drop_after(self, position: int) -> bool:
        """Forget terms that begin after a position; returns whether there were any."""
        self._before = dict(self._bases), self.last_id
        kept = {term_id: base for term_id, base in self._bases.items() if base <= position}
        has_dropped = len(kept) < len(self._bases)
        self._bases = kept
        self.last_id = max(kept, default=self._snapshot_term_id)
        return has_dropped

    def items(self) -> list[tuple[int, int]]:
        """All of them: ids and bases."""
        return sorted(self._bases.items())
