"""Many encoded messages as one run of bytes and where each of them begins and ends."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Batch", "Bytes", "Integers", "as_batch", "as_lengths", "gather", "windows"]

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]


class Batch:
    """Messages ``payload[starts[i]:ends[i]]``.

    `stride` is the length of each message if all have the same length, else 0. Arrays as long as the batch are only
    made on demand, which messages of the same length never need.
    """

    def __init__(self, payload: Bytes, offsets: npt.NDArray[Any], stride: int) -> None:
        self.payload = payload
        self.stride = stride
        self.first = int(offsets[0])
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @cached_property
    def starts(self) -> Integers:
        """Where each message begins."""
        return self._offsets[:-1].astype(np.int64, copy=False)

    @cached_property
    def ends(self) -> Integers:
        """Where each message ends."""
        return self._offsets[1:].astype(np.int64, copy=False)

    def message(self, index: int) -> memoryview:
        """The bytes of one message."""
        return self.payload[self.starts[index] : self.ends[index]].data


def as_batch(messages: Any, offsets: Any = None) -> Batch:
    """Make a batch of the many messages that a caller passes.

    Args:
        messages: With `offsets`: a bytes-like object that holds all of them. Without: a ``FragmentBatch``, a list or
            tuple of bytes-like objects, a two-dimensional ``uint8`` array with one message a row, or an Arrow array
            of binary.
        offsets: Where each message begins, and where the last ends: one integer more than messages.

    Raises:
        TypeError: `messages` is of another type.
        ValueError: Offsets run backwards or outside the bytes.
    """
    if offsets is not None:
        return _from_offsets(_flat(messages), np.asarray(offsets))
    if hasattr(messages, "payload") and hasattr(messages, "offsets"):
        return _from_offsets(_flat(messages.payload), np.asarray(messages.offsets))
    if isinstance(messages, (list, tuple)):
        lengths = np.fromiter((memoryview(item).nbytes for item in messages), np.int64, len(messages))
        return _from_offsets(_flat(b"".join(messages)), _running_sum(lengths))
    if isinstance(messages, np.ndarray) and messages.ndim == 2 and messages.dtype == np.uint8:
        return _from_offsets(
            _flat(messages), np.arange(len(messages) + 1, dtype=np.int64) * messages.shape[1]
        )
    if hasattr(messages, "__arrow_c_array__") or hasattr(messages, "combine_chunks"):
        return _from_arrow(messages)
    raise TypeError(
        f"messages={type(messages).__name__}: must be a FragmentBatch, a list of bytes, a two-dimensional uint8 array, "
        "an Arrow array of binary, or bytes together with offsets"
    )


def _flat(data: Any) -> Bytes:
    if isinstance(data, np.ndarray):
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return np.frombuffer(data, np.uint8)


def _running_sum(lengths: Integers) -> Integers:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _from_arrow(messages: Any) -> Batch:
    import pyarrow as pa

    array = messages.combine_chunks() if hasattr(messages, "combine_chunks") else pa.array(messages)
    if array.null_count:
        raise ValueError(f"the Arrow array has {array.null_count} null(s); a message cannot be null")
    if pa.types.is_binary(array.type):
        dtype: type[np.signedinteger[Any]] = np.int32
    elif pa.types.is_large_binary(array.type):
        dtype = np.int64
    else:
        raise TypeError(f"Arrow type {array.type}: must be binary or large_binary")
    if len(array) == 0:
        return _from_offsets(np.empty(0, np.uint8), np.zeros(1, np.int64))
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype)[array.offset : array.offset + len(array) + 1]
    return _from_offsets(np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), bounds)


def _from_offsets(payload: Bytes, offsets: npt.NDArray[Any]) -> Batch:
    if offsets.ndim != 1 or len(offsets) == 0 or offsets.dtype.kind not in "iu":
        raise ValueError("offsets must be one row of integers, one more than the messages")
    lengths = np.diff(offsets)
    stride = int(lengths[0]) if len(lengths) else 0
    is_even = bool((lengths == stride).all())
    if (
        int(offsets[0]) < 0
        or int(offsets[-1]) > len(payload)
        or bool(stride < 0 if is_even else (lengths < 0).any())
    ):
        raise ValueError(f"offsets must rise from 0 or more to at most the {len(payload)} bytes given")
    return Batch(payload, offsets, stride if is_even else 0)


def windows(payload: Bytes, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Every place in `payload` at which an item of `dtype` fits, as an array that overlaps itself."""
    wanted = np.dtype(dtype)
    count = max(len(payload) - wanted.itemsize + 1, 0)
    if not count or not wanted.itemsize:
        return np.empty(0, wanted)
    return np.ndarray((count,), wanted, buffer=payload, strides=(1,))


def gather(payload: Bytes, starts: Integers, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The items of `dtype` that begin at `starts`, copied. An index outside the payload raises ``IndexError``."""
    wanted = np.dtype(dtype)
    if not len(starts) or not wanted.itemsize:
        return np.zeros(len(starts), wanted)
    # Records are taken as runs of bytes, which numpy copies whole instead of field by field.
    plain = np.dtype((np.void, wanted.itemsize)) if wanted.names else wanted
    return windows(payload, plain)[starts].view(wanted)


def as_lengths(numbers: npt.NDArray[np.unsignedinteger[Any]]) -> Integers:
    """Unsigned numbers from the wire, cut where a sum of two of them could overflow. Nothing is 2**62 bytes long."""
    limit = numbers.dtype.type(min(1 << 62, np.iinfo(numbers.dtype).max))
    cut: Integers = np.minimum(numbers, limit).astype(np.int64)
    return cut
