"""All counters of a driver, seen through a client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace._counter_record import CounterRecord

if TYPE_CHECKING:
    from headrace import _core

__all__ = ["CounterRecord", "Counters"]


class Counters:
    """The counters of the driver and all its clients, live. Iterating gives a record for each.

    Thread-safe and never blocks. Values are read one by one, so two of them need not be of the same moment.
    """

    def __init__(self, client: _core.Client) -> None:
        self._client = client

    def __iter__(self) -> Iterator[CounterRecord]:
        return (CounterRecord(*values) for values in self._client.counters())

    def __len__(self) -> int:
        return len(self._client.counters())

    def __getitem__(self, counter_id: int) -> CounterRecord:
        """The record of one counter; ``KeyError`` when it is not allocated."""
        values = self._client.counter_record(counter_id)
        if values is None:
            raise KeyError(counter_id)
        return CounterRecord(*values)

    def value(self, counter_id: int) -> int:
        """The value of one counter, at the cost of one load.

        Raises:
            KeyError: No counter has this id.
        """
        value = self._client.counter_value(counter_id)
        if value is None:
            raise KeyError(counter_id)
        return value

    def find(self, type_id: int, registration_id: int) -> int | None:
        """The id of the counter of a type that belongs to a registration; ``None`` when there is none."""
        return self._client.find_counter(type_id, registration_id)

    def __repr__(self) -> str:
        return f"Counters({len(self)} allocated)"
