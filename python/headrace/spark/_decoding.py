"""Decodes batches in which there may be payloads that cannot be decoded.

A codec takes many payloads at once and says at most that something is wrong with them. Which ones it is shows by
decoding halves, and halves of those, so that good batches cost nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._base.exceptions import HeadraceError
from headrace.spark._decoded import Codec, Decoded, Unreadable

if TYPE_CHECKING:
    from headrace.client import FragmentBatch

__all__ = ["DecodedBatch", "PayloadError", "decode", "payload_array"]


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """What came of a batch.

    Attributes:
        columns: The columns, by name.
        rows: Which messages they are of; ``None`` for all of them.
        errors: Why a row has nulls, by its number; none where all payloads are good.
    """

    columns: dict[str, pa.Array]
    rows: npt.NDArray[np.intp] | None
    errors: dict[int, str]


class PayloadError(HeadraceError, ValueError):
    """A recorded payload is not what the codec was told it is."""


def decode(
    codec: Codec, batch: FragmentBatch, wanted: pa.Schema, *, recording_id: int, nulls: bool
) -> DecodedBatch:
    """The wanted columns of a batch, and which messages they are of.

    Args:
        codec: What makes the columns.
        batch: The messages.
        wanted: Which columns, of the types that they must have.
        recording_id: Where they come from, for errors.
        nulls: What cannot be decoded becomes a row of nulls, and no error.

    Raises:
        PayloadError: A payload cannot be decoded; it names recording and position.
    """
    payloads = payload_array(batch)
    try:
        columns, all_rows = codec.decode(payloads, wanted)
        return DecodedBatch(columns, all_rows, {})
    except Unreadable as error:
        reason = error
    parts, errors, row_count = [], {}, 0
    for start, count, made in _parts(codec, payloads, wanted, 0, reason):
        if isinstance(made, Unreadable):
            if not nulls:
                _refuse(batch, start, recording_id, made)
            errors[row_count] = str(made)
            made = {field.name: pa.nulls(1, field.type) for field in wanted}, None
        parts.append((start, count, made))
        row_count += count if made[1] is None else len(made[1])
    if not nulls:
        text = (
            f"recording_id={recording_id} from position={batch.positions[0]} to position={batch.positions[-1]}: "
            f"each message can be decoded by itself, but not together: {reason}"
        )
        raise PayloadError(text) from reason
    rows = [
        start + (np.arange(count) if of_part is None else of_part) for start, count, (_, of_part) in parts
    ]
    columns = {name: pa.concat_arrays([made[name] for _, _, (made, _) in parts]) for name in wanted.names}
    return DecodedBatch(columns, np.concatenate(rows), errors)


def _parts(
    codec: Codec, payloads: pa.BinaryArray, wanted: pa.Schema, start: int, reason: Unreadable
) -> Iterator[tuple[int, int, Decoded | Unreadable]]:
    """Parts of payloads that were refused for ``reason``, the first of which is number ``start``.

    Where each part begins, how long it is and what came of it: columns, or why one payload has none.
    """
    count = len(payloads)
    if count == 1:
        yield start, 1, reason
        return
    half = count // 2
    for at, part in ((0, payloads[:half]), (half, payloads[half:])):
        copied = _copied(part)
        try:
            made = codec.decode(copied, wanted)
        except Unreadable as error:
            yield from _parts(codec, copied, wanted, start + at, error)
        else:
            yield start + at, len(copied), made


def payload_array(batch: FragmentBatch) -> pa.BinaryArray:
    """The payloads as an Arrow array over the batch's memory."""
    buffers = [None, pa.py_buffer(batch.offsets), pa.py_buffer(batch.payload)]
    return pa.Array.from_buffers(pa.binary(), len(batch), buffers)


def _copied(payloads: pa.BinaryArray) -> pa.BinaryArray:
    """The same with buffers that begin with it, as users' functions may look into them."""
    return payloads.take(pa.array(range(len(payloads))))


def _refuse(batch: FragmentBatch, index: int, recording_id: int, reason: Unreadable) -> NoReturn:
    start = bytes(batch[index][:40])
    text = (
        f"payload of the message that ends at position={batch.positions[index]} in recording_id={recording_id}: "
        f"{reason}: {start!r}"
    )
    raise PayloadError(text) from reason
