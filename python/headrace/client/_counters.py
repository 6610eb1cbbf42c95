"""All counters of a driver, seen through a client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace._base.counter_record import CounterRecord

if TYPE_CHECKING:
    from headrace import _core

__all__ = ["CounterRecord", "Counters"]


class Counters:
    """The counters of the driver and all its clients, live. Iterating yields a record for each.

    Thread-safe and never blocks. Values are read one by one, so two of them may be of different moments.
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

    def compare_and_set(self, record: CounterRecord, value: int) -> bool:
        """Set a counter of any client if it still has the value of a record, atomically for all processes.

        Never blocks. Only for counters that are meant to be changed by others, such as the control toggle of a cluster:
        moving the limit of another client's publication loses messages.

        Args:
            record: A record of the counter, with the expected value.
            value: The new value.

        Returns:
            True if the counter was set, false if another writer was faster.

        Raises:
            KeyError: The counter is gone.
            ConfigError: The new value does not fit 64 bits.
        """
        is_set = self._client.compare_and_set_counter(
            record.counter_id, record.value, value, record.registration_id
        )
        if is_set is None:
            raise KeyError(record.counter_id)
        return is_set

    def find(self, type_id: int, registration_id: int) -> int | None:
        """The id of the counter of a type that belongs to a registration; ``None`` when there is none."""
        return self._client.find_counter(type_id, registration_id)

    def __repr__(self) -> str:
        return f"Counters({len(self)} allocated)"
