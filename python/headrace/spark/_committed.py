"""Exactly-once out of marked delivery: rows come out when their batch is whole, and once."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headrace._base.checks import wrong
from headrace.spark._envelope import Attempt, EnvelopeError, Marker, Row, unpack

__all__ = ["CommittedBatch", "CommittedBatches"]

_LOG = logging.getLogger(__name__)


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
    counts: dict[int, int] = field(default_factory=dict)

    def put(self, message: Row | Marker) -> None:
        """Keep what came.

        Raises:
            EnvelopeError: It contradicts what came before.
        """
        if isinstance(message, Row):
            count = self.counts.get(message.attempt)
            if count is not None and message.row >= count:
                raise _stray(message.batch_id, message.attempt, message.row, count)
            self.rows.setdefault(message.attempt, {}).setdefault(message.row, message.payload)
        elif message.attempts not in self.markers:
            self._put_marker(message)

    def _put_marker(self, marker: Marker) -> None:
        for each in marker.attempts:
            if (count := self.counts.get(each.number, each.count)) != each.count:
                raise EnvelopeError(
                    f"attempt {each.number} has {count} rows by one marker of batch {marker.batch_id}, and "
                    f"{each.count} by another: another program publishes markers on this stream"
                )
        self.markers.append(marker.attempts)
        self.counts.update((each.number, each.count) for each in marker.attempts)
        strays = [
            (each, number)
            for each in marker.attempts
            for number in self.rows.get(each.number, ())
            if number >= each.count
        ]
        for each, number in strays:
            del self.rows[each.number][number]
        if strays:
            each, number = strays[0]
            raise _stray(marker.batch_id, each.number, number, each.count)

    def row_count(self) -> int:
        """How many rows came, those of attempts that do not count included."""
        return sum(map(len, self.rows.values()))

    def payloads(self) -> list[bytes] | None:
        """The rows of the first marker all of whose rows are there."""
        for attempts in self.markers:
            # An attempt numbers its rows from 0 on, and has none beyond its count, so their number tells whether all
            # are there.
            if all(len(self.rows.get(each.number, ())) >= each.count for each in attempts):
                return [self.rows[each.number][row] for each in attempts for row in range(each.count)]
        return None


def _stray(batch_id: int, attempt: int, row: int, count: int) -> EnvelopeError:
    return EnvelopeError(
        f"row {row} of attempt {attempt} of batch {batch_id} is left out: by the marker the attempt has {count} rows, "
        "numbered from 0 on; another program publishes rows on this stream"
    )


@dataclass(slots=True)
class _Query:
    last: int | None = None
    pending: dict[int, _Pending] = field(default_factory=dict)


class CommittedBatches:
    """Turns the messages of a sink with ``delivery=marked`` into whole batches, each once and in order.

    A task that runs again, a speculative copy of a task, and a batch that Spark runs again after a crash publish
    their rows again, maybe other rows in other partitions. Each run has a number of its own, and the marker of the
    batch names the runs that Spark took: only their rows come out. A reader that must survive its own restart keeps
    :attr:`CommittedBatch.batch_id` together with what it made of the rows, and gives it as ``after`` next time. One
    that misses messages waits for their batch without end: where a subscription may be interrupted, read a recording
    of the stream.

    Without ``after``, the first batch of a query that is whole decides where this reader begins: those before it are
    taken for batches that began before the reader joined, and are left out with a warning in the log. Several processes
    publish a query's rows and markers, so a later batch may be whole first also where the reader was there from the
    beginning. A reader that has the beginning, as of a recording, gives ``after=-1``, and no batch is left out.

    Not thread-safe. Memory: all rows that came of batches that are not whole yet, and some bytes for each query. Each
    write of a frame is a query of its own; the rows of one that failed wait for good. :meth:`waiting` tells of them,
    and :meth:`forget` drops them.

    Args:
        after: The batch after which this reader goes on; -1 to begin with the first. A number is for every query on
            the stream; a mapping has one for each query that it knows.

    Raises:
        ConfigError: A number is below -1.
    """

    def __init__(self, after: int | Mapping[uuid.UUID, int] | None = None) -> None:
        given: Mapping[uuid.UUID, int] = after if isinstance(after, Mapping) else {}
        self._after = None if isinstance(after, Mapping) else after
        for number in (self._after, *given.values()):
            if number is not None and number < -1:
                raise wrong("after", number, "must be at least -1, which is before the first batch")
        if not all(isinstance(query_id, uuid.UUID) for query_id in given):
            raise TypeError(f"after={after!r}: its keys must be query ids, of type uuid.UUID")
        self._queries = {query_id: _Query(number) for query_id, number in given.items()}

    def on_message(self, message: bytes) -> list[CommittedBatch]:
        """Take a message; gives the batches that are whole with it, mostly none.

        Raises:
            EnvelopeError: The message is not of marked delivery, or a row or a marker contradicts a marker. What is
                wrong is left out, and the reader may go on.
        """
        taken = unpack(message)
        query = self._queries.setdefault(taken.query_id, _Query(self._after))
        if query.last is not None and taken.batch_id <= query.last:
            return []
        query.pending.setdefault(taken.batch_id, _Pending()).put(taken)
        return list(_whole(taken.query_id, query, taken.batch_id))

    def waiting(self) -> dict[uuid.UUID, int]:
        """The queries of which something is kept, and how many rows of each wait for their batch."""
        return {
            query_id: sum(pending.row_count() for pending in query.pending.values())
            for query_id, query in self._queries.items()
        }

    def forget(self, query_id: uuid.UUID) -> None:
        """Drop what is kept of a query, of which no more will come; it need not be known.

        What comes of it all the same is taken as of a query that this reader has not seen.
        """
        self._queries.pop(query_id, None)


def _whole(query_id: uuid.UUID, query: _Query, batch_id: int) -> Iterator[CommittedBatch]:
    # Batches are numbered one after another; a reader that was not told where to begins with the first that is whole.
    candidate = batch_id if query.last is None else query.last + 1
    while (pending := query.pending.get(candidate)) is not None and (
        payloads := pending.payloads()
    ) is not None:
        del query.pending[candidate]
        if query.last is None:
            _leave_out(query_id, query, candidate)
        query.last = candidate
        yield CommittedBatch(query_id, candidate, payloads)
        candidate += 1


def _leave_out(query_id: uuid.UUID, query: _Query, first: int) -> None:
    """Drop what came of batches before the first that is whole, and say so: they may be whole later."""
    for number in sorted(number for number in query.pending if number < first):
        _LOG.warning(
            "query_id=%s: batch %d is whole first, so batch %d, of which %d rows came, is left out; to leave out none, "
            "give CommittedBatches the last batch that you have as after=, or -1 to begin with the first",
            query_id,
            first,
            number,
            query.pending.pop(number).row_count(),
        )
