"""Choosing counters.

Every condition given must hold. A counter without the attribute asked for does not match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from headrace._base.counter_record import CounterRecord
from headrace.tools.counter_types import channel_of, stream_key


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterFilter:
    """Conditions on counters; empty ones match all.

    `channel` and `label` are regular expressions searched for anywhere in the text. A channel as it is written matches,
    too, although ``?`` and ``|`` mean something else in an expression.
    """

    type_ids: frozenset[int] = frozenset()
    stream_ids: frozenset[int] = frozenset()
    session_ids: frozenset[int] = frozenset()
    channel: re.Pattern[str] | None = None
    label: re.Pattern[str] | None = None

    def matches(self, record: CounterRecord) -> bool:
        """Whether every condition holds for the counter."""
        if self.type_ids and record.type_id not in self.type_ids:
            return False
        if self.label is not None and self.label.search(record.label) is None:
            return False
        if self.channel is not None and not _has(self.channel, channel_of(record) or ""):
            return False
        return self._matches_stream(record)

    def _matches_stream(self, record: CounterRecord) -> bool:
        if not self.stream_ids and not self.session_ids:
            return True
        key = stream_key(record)
        if key is None:
            return False
        if self.stream_ids and key.stream_id not in self.stream_ids:
            return False
        return not self.session_ids or key.session_id in self.session_ids

    def apply(self, records: Iterable[CounterRecord]) -> list[CounterRecord]:
        """The counters that match, in the order given."""
        return [record for record in records if self.matches(record)]


def _has(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None or pattern.pattern in text
