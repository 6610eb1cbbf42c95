"""Exactly-once out of marked delivery: rows come out when their batch is whole, and once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.spark._envelope import KIND_MARKER, Envelope, unpack

__all__ = ["CommittedBatch", "CommittedBatches"]


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """All rows of a micro-batch, in the order of partitions and of rows in them."""

    query_id: uuid.UUID
    batch_id: int
    payloads: list[bytes]


@dataclass(slots=True)
class _Pending:
    rows: dict[tuple[int, int], bytes] = field(default_factory=dict)
    counts: tuple[int, ...] | None = None

    def is_whole(self) -> bool:
        if self.counts is None or len(self.rows) < sum(self.counts):
            return False
        return all(key in self.rows for key in self._keys())

    def payloads(self) -> list[bytes]:
        return [self.rows[key] for key in self._keys()]

    def _keys(self) -> Iterator[tuple[int, int]]:
        for partition, count in enumerate(self.counts or ()):
            yield from ((partition, row) for row in range(count))


@dataclass(slots=True)
class _Query:
    last: int | None = None
    pending: dict[int, _Pending] = field(default_factory=dict)


class CommittedBatches:
    """Turns the messages of a sink with ``delivery=marked`` into whole batches, each once and in order.

    A task that was tried again, and a batch that Spark ran again after a crash, send rows again; they are known by
    query, batch, partition and row. That takes a query whose rows come in the same order each time: no
    ``repartition`` without a key before the sink. A batch that began before this reader joined is left out. A reader
    that must survive its own restart keeps :attr:`CommittedBatch.batch_id` together with what it made of the rows.

    Not thread-safe. Memory: the rows of batches that are not whole yet.
    """

    def __init__(self) -> None:
        self._queries: dict[uuid.UUID, _Query] = {}

    def on_message(self, message: bytes) -> list[CommittedBatch]:
        """Take a message; gives the batches that are whole with it, mostly none.

        Raises:
            EnvelopeError: The message is not of marked delivery.
        """
        envelope = unpack(message)
        query = self._queries.setdefault(envelope.query_id, _Query())
        if query.last is not None and envelope.batch_id <= query.last:
            return []
        _put(query.pending.setdefault(envelope.batch_id, _Pending()), envelope)
        return list(self._whole(envelope.query_id, query, envelope.batch_id))

    def _whole(self, query_id: uuid.UUID, query: _Query, batch_id: int) -> Iterator[CommittedBatch]:
        # Batches are numbered one after another; with the first that is whole it shows where this reader joined.
        candidate = batch_id if query.last is None else query.last + 1
        while (pending := query.pending.get(candidate)) is not None and pending.is_whole():
            yield CommittedBatch(query_id, candidate, pending.payloads())
            query.last = candidate
            for done in [number for number in query.pending if number <= candidate]:
                del query.pending[done]
            candidate += 1


def _put(pending: _Pending, envelope: Envelope) -> None:
    if envelope.kind == KIND_MARKER:
        pending.counts = envelope.counts
    else:
        pending.rows.setdefault((envelope.partition, envelope.row), envelope.payload)
