"""Exactly-once out of marked delivery: rows come out when their batch is whole, and once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.spark._envelope import Attempt, Marker, Row, unpack

__all__ = ["CommittedBatch", "CommittedBatches"]


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """All rows of a micro-batch, in the order of partitions and of rows in them."""

    query_id: uuid.UUID
    batch_id: int
    payloads: list[bytes]


@dataclass(slots=True)
class _Pending:
    """What came of a batch: the rows of each attempt, and which attempts each marker names."""

    rows: dict[int, dict[int, bytes]] = field(default_factory=dict)
    markers: list[tuple[Attempt, ...]] = field(default_factory=list)

    def put(self, message: Row | Marker) -> None:
        if isinstance(message, Row):
            self.rows.setdefault(message.attempt, {}).setdefault(message.row, message.payload)
        elif message.attempts not in self.markers:
            self.markers.append(message.attempts)

    def payloads(self) -> list[bytes] | None:
        """The rows of the first marker all of whose rows are there."""
        for attempts in self.markers:
            # An attempt numbers its rows from 0 on, so their number tells whether all are there.
            if all(len(self.rows.get(each.number, ())) >= each.count for each in attempts):
                return [self.rows[each.number][row] for each in attempts for row in range(each.count)]
        return None


@dataclass(slots=True)
class _Query:
    last: int | None = None
    pending: dict[int, _Pending] = field(default_factory=dict)


class CommittedBatches:
    """Turns the messages of a sink with ``delivery=marked`` into whole batches, each once and in order.

    A task that runs again, a speculative copy of a task, and a batch that Spark runs again after a crash publish
    their rows again, maybe other rows in other partitions. Each run has a number of its own, and the marker of the
    batch names the runs that Spark took: only their rows come out. A batch that began before this reader joined is
    left out. A reader that must survive its own restart keeps :attr:`CommittedBatch.batch_id` together with what it
    made of the rows. One that misses messages waits for their batch without end: where a subscription may be
    interrupted, read a recording of the stream.

    Not thread-safe. Memory: all rows that came of batches that are not whole yet.
    """

    def __init__(self) -> None:
        self._queries: dict[uuid.UUID, _Query] = {}

    def on_message(self, message: bytes) -> list[CommittedBatch]:
        """Take a message; gives the batches that are whole with it, mostly none.

        Raises:
            EnvelopeError: The message is not of marked delivery.
        """
        taken = unpack(message)
        query = self._queries.setdefault(taken.query_id, _Query())
        if query.last is not None and taken.batch_id <= query.last:
            return []
        query.pending.setdefault(taken.batch_id, _Pending()).put(taken)
        return list(_whole(taken.query_id, query, taken.batch_id))


def _whole(query_id: uuid.UUID, query: _Query, batch_id: int) -> Iterator[CommittedBatch]:
    # Batches are numbered one after another; with the first that is whole it shows where this reader joined.
    candidate = batch_id if query.last is None else query.last + 1
    while (pending := query.pending.get(candidate)) is not None and (
        payloads := pending.payloads()
    ) is not None:
        yield CommittedBatch(query_id, candidate, payloads)
        query.last = candidate
        for done in [number for number in query.pending if number <= candidate]:
            del query.pending[done]
        candidate += 1
