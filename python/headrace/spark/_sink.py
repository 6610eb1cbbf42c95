"""Publishes rows. Delivery is at least once: a task or batch that is run again publishes its rows again.

With ``delivery=marked`` rows carry query, batch and the attempt that published them. When Spark commits the batch, a
marker follows that names the attempts which count, so :class:`headrace.spark.CommittedBatches` takes each row once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headrace._base.exceptions import HeadraceError
from headrace.spark._envelope import Attempt, marker_message, new_attempt, row_messages
from headrace.spark._option_values import refuse
from headrace.spark._publishing import send
from headrace.spark._worker import freeze_imports

if TYPE_CHECKING:
    from headrace.spark._sink_options import SinkOptions

__all__ = ["BatchSink", "Published", "StreamSink"]


@dataclass
class Published(WriterCommitMessage):
    """What one run of one task published."""

    query_id: str
    attempt: int
    count: int
    position: int


class BatchSink(DataSourceArrowWriter):
    """Publishes a data frame; with markers it is batch 0 of a query of its own."""

    def __init__(self, options: SinkOptions, overwrite: bool) -> None:
        if overwrite:
            refuse("mode", "overwrite", "a stream can only be appended to: use mode('append')")
        self._options = options
        self._query_id = str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        """Publish one partition."""
        return _publish(self._options, iterator, self._query_id, 0)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Say that everything was published."""
        _commit(self._options, messages, 0)


class StreamSink(DataSourceStreamArrowWriter):
    """Publishes the micro-batches of a query."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        """Publish one partition of one micro-batch."""
        context = TaskContext.get()
        query_id = context.getLocalProperty("sql.streaming.queryId") if context is not None else None
        batch_id = context.getLocalProperty("streaming.sql.batchId") if context is not None else None
        if query_id is None or batch_id is None:
            raise HeadraceError("Spark does not say which query and which batch this task is of")
        return _publish(self._options, iterator, query_id, int(batch_id))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Say that a micro-batch was published. Saying it again changes nothing."""
        _commit(self._options, messages, batchId)


def _publish(
    options: SinkOptions, batches: Iterator[pa.RecordBatch], query_id: str, batch_id: int
) -> Published:
    attempt, count, position = new_attempt(), 0, 0
    freeze_imports()
    for batch in batches:
        if not batch.num_rows:
            continue
        payloads = batch.column(options.payload_column)
        if payloads.null_count:
            refuse("payloadColumn", options.payload_column, "has a null, which cannot be a message")
        payloads = payloads.cast(pa.binary())
        if options.is_marked:
            payloads = row_messages(payloads, uuid.UUID(query_id), batch_id, attempt, count)
        position = send(options, payloads)
        count += batch.num_rows
    return Published(query_id, attempt, count, position)


def _commit(options: SinkOptions, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
    # In the order of partitions: of several runs of a task, Spark hands over the message of the one that it took.
    published = [each for each in messages if isinstance(each, Published)]
    if not options.is_marked or not published:
        return
    attempts = [Attempt(each.attempt, each.count) for each in published if each.count]
    send(options, [marker_message(uuid.UUID(published[0].query_id), batch_id, attempts)])
