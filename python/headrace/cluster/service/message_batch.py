"""Messages of a log as columns. Loads numpy, which other services need not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace._base.extras import needs
from headrace.cluster.protocol.header import HEADER_LENGTH

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FRAME_HEADER", "MessageBatch"]

FRAME_HEADER = 32


class MessageBatch:
    """Messages that follow each other in the log, as columns. Indexing and iterating give ``bytes``.

    Where a batch begins and ends differs between members: what a service makes of the messages must not follow from
    that. ``cluster.time`` and ``cluster.log_position`` are those of the last message; those of each are columns.

    Attributes:
        session_ids: Who sent each message: an id for ``cluster.session``, negative for those of services.
        timestamps: When the leader took each, in ``cluster.time_unit``.
        positions: Of the log after each.
        memory: The bytes of all, with what is between them. Read-only.
        starts: Where each message begins in the memory.
        lengths: Bytes of each.
    """

    __slots__ = ("lengths", "memory", "positions", "session_ids", "starts", "timestamps")

    def __init__(
        self,
        memory: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        positions: npt.NDArray[np.int64],
        entries: npt.NDArray[Any],
    ) -> None:
        self.memory = memory
        self.starts = starts + (FRAME_HEADER + HEADER_LENGTH)
        self.lengths: npt.NDArray[np.int64] = entries["length"].astype(np.int64) - (
            FRAME_HEADER + HEADER_LENGTH
        )
        self.positions = positions
        self.session_ids: npt.NDArray[np.int64] = entries["session_id"]
        self.timestamps: npt.NDArray[np.int64] = entries["timestamp"]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> bytes:
        start = int(self.starts[index])
        return self.memory[start : start + int(self.lengths[index])].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return (self[index] for index in range(len(self)))

    def _columns(self) -> tuple[Any, Any, Any]:
        """What answers need to know of each message."""
        columns = self.session_ids, self.timestamps, self.positions
        ids, timestamps, positions = (np.ascontiguousarray(column, np.int64) for column in columns)
        return ids, timestamps, positions

    def to_arrow(self) -> pa.RecordBatch:
        """The messages as an Arrow record batch: payload, position, session_id, timestamp. Payloads are copied.

        Raises:
            MissingExtraError: Arrow is not installed: ``pip install headrace[arrow]``.
        """
        with needs("arrow"):
            import pyarrow as pa

        return pa.RecordBatch.from_arrays(
            [
                pa.array(list(self), pa.binary()),
                pa.array(self.positions, pa.int64()),
                pa.array(self.session_ids, pa.int64()),
                pa.array(self.timestamps, pa.int64()),
            ],
            names=["payload", "position", "session_id", "timestamp"],
        )

    def as_array(self, dtype: npt.DTypeLike = np.uint8) -> npt.NDArray[Any]:
        """The messages as an array, without a copy where they lie at equal distances, as those of one length do.

        Args:
            dtype: Type of one message, such as a record type, or of one item of it; by default a row of bytes for each.

        Raises:
            ValueError: The messages differ in length, or are no multiple of the type's size.
        """
        kind = np.dtype(dtype)
        length = int(self.lengths[0])
        if (self.lengths != length).any() or length % kind.itemsize:
            raise ValueError(
                f"messages of {self.lengths.min()} to {self.lengths.max()} bytes cannot be an array of {kind}: all "
                f"must be equally long, a multiple of {kind.itemsize} bytes"
            )
        gaps = np.diff(self.starts)
        stride = int(gaps[0]) if len(gaps) else length
        if (gaps == stride).all():
            count = length // kind.itemsize
            first = int(self.starts[0])
            rows: npt.NDArray[Any] = np.ndarray(
                (len(self), count), kind, self.memory.data, first, (stride, kind.itemsize)
            )
        else:
            taken = self.memory[self.starts[:, None] + np.arange(length)]
            rows = np.ascontiguousarray(taken).view(kind)
        return rows[:, 0] if rows.shape[1] == 1 and kind != np.uint8 else rows
