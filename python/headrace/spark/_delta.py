"""Delta tables through the delta-rs library: each micro-batch exactly once."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._base.exceptions import HeadraceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["delta_sink"]


def delta_sink(table: str | os.PathLike[str], application: str) -> Callable[[DataFrame, int], None]:
    """What ``foreachBatch`` is given to append every micro-batch once to a Delta table.

    Batch number and rows are committed to the table together, so a batch that comes again is known and left out.
    Rows go through the driver program: keep ``maxBytesPerTrigger`` to what fits its memory. Needs ``deltalake``.

    Args:
        table: Where the table is or will be.
        application: Names the query; a query with another checkpoint must have another name. One that has not is
            refused with a :class:`headrace.HeadraceError` at its first batch, unless the table holds that one alone.
    """
    path = os.fspath(table)

    def append(frame: DataFrame, batch_id: int) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

        if DeltaTable.is_deltatable(path):
            last = DeltaTable(path).transaction_version(application)
            if last is not None and last > batch_id:
                raise HeadraceError(
                    f"{path}: application={application} already has batch {last}, and this is batch "
                    f"{batch_id}. Only the last batch can repeat, so this query has another "
                    "checkpoint: give it another application name"
                )
            if last == batch_id:
                return
        committed = CommitProperties(app_transactions=[Transaction(application, batch_id)])
        write_deltalake(path, frame.toArrow(), mode="append", commit_properties=committed)

    return append
