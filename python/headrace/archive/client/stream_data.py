"""What a named stream has recorded, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace._base.extras import needs
from headrace.archive.client import calls
from headrace.archive.client.waits import POLL_INTERVAL_S

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from headrace.archive.client.named_streams import NamedStreamRequests
    from headrace.client import FragmentBatch

__all__ = ["StreamData", "recorded_data"]

_BATCH = 1 << 16


class StreamData:
    """The messages of a named stream, in memory, by recording and in its order.

    Made with :meth:`headrace.Archive.read`. Iterating returns the payloads.
    """

    def __init__(self, batches: list[tuple[int, FragmentBatch]]) -> None:
        """`batches` are messages of a recording, with its id."""
        self._batches = batches

    def __len__(self) -> int:
        """How many messages."""
        return sum(len(batch) for _, batch in self._batches)

    def __iter__(self) -> Iterator[bytes]:
        for _, batch in self._batches:
            yield from batch

    @property
    def batches(self) -> list[FragmentBatch]:
        """The messages as the batches in which they came."""
        return [batch for _, batch in self._batches]

    def to_arrow(self) -> pa.Table:
        """An Arrow table over the memory of the batches.

        Columns: ``payload`` (binary), ``recording_id``, ``position``, ``session_id``, ``stream_id``,
        ``reserved_value``.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        with needs("arrow"):
            import pyarrow as pa

        names = ["payload", "position", "session_id", "stream_id", "reserved_value"]
        kinds = [pa.binary(), pa.int64(), pa.int32(), pa.int32(), pa.int64()]
        schema = pa.schema(list(zip(names, kinds, strict=True)))
        table = pa.Table.from_batches([batch.to_arrow() for _, batch in self._batches], schema)
        ids = [pa.repeat(pa.scalar(one, pa.int64()), len(batch)) for one, batch in self._batches]
        return table.add_column(1, "recording_id", pa.chunked_array(ids, pa.int64()))

    def to_numpy(self, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """The payloads as one array, copied.

        Args:
            dtype: Type of one message, such as a record type; without it one row of bytes for each message.

        Raises:
            ValueError: The payloads differ in length, or their length is not a multiple of the type's size.
            MissingExtraError: numpy is not installed.
        """
        with needs("numpy"):
            import numpy as np

        arrays = [batch.as_array(dtype) for _, batch in self._batches]
        if not arrays:
            return np.empty((0, 0), np.uint8) if dtype is None else np.empty(0, dtype)
        return np.concatenate(arrays)

    def to_pandas(self) -> Any:
        """The columns of :meth:`to_arrow` as a pandas frame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The columns of :meth:`to_arrow` as a polars frame, over the same memory; needs polars."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return f"StreamData({len(self)} messages of {len({one for one, _ in self._batches})} recordings)"


def recorded_data(archive: NamedStreamRequests, name: str) -> StreamData:
    """See :meth:`headrace.Archive.read`."""
    batches = []
    for recording in archive._run(calls.stream_recordings(name)):
        start = recording.start_position
        stop = archive._run(calls.max_recorded_position(recording.recording_id))
        if stop == start:
            continue
        with archive.replay(recording.recording_id, position=start, length=stop - start) as replay:  # type: ignore[attr-defined]
            while not replay.has_ended:
                batch = replay.subscription.poll_batch(_BATCH)
                if len(batch):
                    batches.append((recording.recording_id, batch))
                else:
                    archive.clock.sleep(POLL_INTERVAL_S)
            replay.confirm_end()
    return StreamData(batches)
