"""Converts batches to numpy arrays and Arrow record batches, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._base.checks import excerpt
from headrace._base.extras import needs

with needs("numpy"):
    import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from headrace._core import FragmentBatch

__all__ = ["as_array", "from_buffer", "runs", "stream_ids", "to_arrow"]

from_buffer = np.frombuffer


def stream_ids(count: int, stream_id: int) -> npt.NDArray[np.int32]:
    """A column of one value: a subscription has one stream."""
    return np.full(count, stream_id, dtype=np.int32)


def as_array(batch: FragmentBatch, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """The payloads as an array over the batch's memory."""
    if len(batch) == 0:
        return np.empty((0, 0), dtype=np.uint8) if dtype is None else np.empty(0, dtype=dtype)
    length = batch.payload_length
    if length is None:
        raise ValueError(
            f"the {len(batch)} payloads of this batch differ in length, so they cannot be rows of an "
            "array; use batch.payload with batch.offsets, batch.to_arrow(), or iterate"
        )
    if dtype is None:
        return batch.payload.reshape(len(batch), length)
    wanted = np.dtype(dtype)
    if wanted.itemsize == 0 or length % wanted.itemsize != 0:
        raise ValueError(
            f"payload_length={length} is not a multiple of the item size {wanted.itemsize} of dtype={wanted}"
        )
    items = batch.payload.view(wanted)
    return items if length == wanted.itemsize else items.reshape(len(batch), length // wanted.itemsize)


def to_arrow(batch: FragmentBatch) -> pa.RecordBatch:
    """A record batch over the batch's memory."""
    with needs("arrow"):
        import pyarrow as pa

    count = len(batch)
    payload = pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(batch.offsets), pa.py_buffer(batch.payload)]
    )
    return pa.RecordBatch.from_arrays(
        [
            payload,
            _fixed(pa.int64(), batch.positions),
            _fixed(pa.int32(), batch.session_ids),
            _fixed(pa.int32(), batch.stream_ids),
            _fixed(pa.int64(), batch.reserved_values),
        ],
        names=["payload", "position", "session_id", "stream_id", "reserved_value"],
    )


def _fixed(kind: pa.DataType, column: npt.NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(column)])


# A run is (data, item_length, count, offsets): with offsets None, `count` messages of `item_length` bytes one
# after another; else message i is data[offsets[i]:offsets[i + 1]], with `offsets` an int64 array.
Run = tuple[Any, int, int, "npt.NDArray[np.int64] | None"]


def runs(messages: object) -> list[Run]:
    """The messages of an ``offer_batch`` that are not in a list or tuple, as runs of bytes, without copying them."""
    if isinstance(messages, np.ndarray):
        return [_array_run(messages)]
    if isinstance(messages, (bytes, bytearray, memoryview, str)):
        raise TypeError(
            f"offer_batch takes many messages, not one {type(messages).__name__}; use offer() for one message"
        )
    if hasattr(messages, "__arrow_c_array__") or hasattr(messages, "__arrow_c_stream__"):
        return _arrow_runs(messages)
    if hasattr(messages, "__array_interface__"):
        return [_array_run(np.asarray(messages))]
    raise TypeError(
        f"messages={excerpt(repr(messages))}: must be a list or tuple of bytes-like objects, a numpy array of "
        "two dimensions or of records, or an Arrow array of binary, large_binary or fixed-size binary"
    )


def _array_run(array: npt.NDArray[Any]) -> Run:
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects cannot be sent; use a list of bytes")
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise TypeError("the array has masked values; fill them, as with array.filled(0)")
    if array.ndim not in (1, 2) or (array.ndim == 1 and array.dtype.kind not in "VS"):
        raise TypeError(
            f"array of {array.ndim} dimension(s) and dtype={array.dtype}: must have two dimensions (one row a "
            "message) or hold records"
        )
    count = array.shape[0]
    rows = np.ascontiguousarray(array)
    item_length = rows.dtype.itemsize * int(np.prod(rows.shape[1:], dtype=np.int64))
    return rows.reshape(-1).view(np.uint8) if rows.size else np.empty(0, np.uint8), item_length, count, None


def _arrow_runs(messages: Any) -> list[Run]:
    with needs("arrow"):
        import pyarrow as pa

    if isinstance(messages, pa.ChunkedArray):
        chunks = messages.chunks
    elif isinstance(messages, pa.Array):
        chunks = [messages]
    elif hasattr(messages, "__arrow_c_array__"):
        chunks = [pa.array(messages)]
    else:
        chunks = pa.chunked_array(messages).chunks
    return [_arrow_run(chunk) for chunk in chunks]


def _arrow_run(array: Any) -> Run:
    import pyarrow as pa

    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _arrow_run(array.storage)
    if array.null_count:
        raise ValueError(f"the Arrow array has {array.null_count} null(s); a message cannot be null")
    if pa.types.is_fixed_size_binary(kind):
        data = array.buffers()[1]
        start = array.offset * kind.byte_width
        view = np.frombuffer(data, np.uint8)[start : start + len(array) * kind.byte_width]
        return view, kind.byte_width, len(array), None
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        offset_type: type[np.signedinteger[Any]] = np.int32
    elif pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        offset_type = np.int64
    else:
        raise TypeError(f"Arrow type {kind}: must be binary, large_binary or fixed-size binary")
    _, offset_buffer, data = array.buffers()
    if len(array) == 0:
        return np.empty(0, np.uint8), 0, 0, np.zeros(1, np.int64)
    offsets = np.frombuffer(offset_buffer, offset_type)[array.offset : array.offset + len(array) + 1]
    payload = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return payload, 0, len(array), offsets.astype(np.int64, copy=False)
