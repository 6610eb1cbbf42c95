"""Runs of messages as columns, for a service that has ``on_session_messages``.

The committed part of the log is taken as whole frames, up to a mebibyte at once, and cut into runs: of messages that
are whole frames, which become a batch, and of all else, which goes one by one to the handler of single messages. Such
an entry may begin what keeps the log waiting; then the rest of the frames waits too.
"""

from __future__ import annotations

import itertools
import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from headrace._base.results import Action
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE
from headrace.cluster.protocol.messages import SCHEMA_ID
from headrace.cluster.service.joined_log import JoinedLog
from headrace.cluster.service.message_batch import FRAME_HEADER, MessageBatch
from headrace.positions import FRAME_ALIGNMENT

if TYPE_CHECKING:
    from headrace.client import Header, Image, Subscription
    from headrace.cluster.service.state import ServiceState

__all__ = ["BatchedLog", "MessageBatch"]

_FLAGS_OFFSET = 5
_WHOLE, _BEGIN, _END = 0xC0, 0x80, 0x40
_LENGTH = struct.Struct("<i")
_MESSAGE = SESSION_MESSAGE | SCHEMA_ID << 16
_BLOCK_LENGTH = 1 << 20
# Frame header and message header of an entry, as columns.
_ENTRY = np.dtype(
    {
        "names": ["length", "flags", "kind", "session_id", "timestamp"],
        "formats": ["<i4", "u1", "<u4", "<i8", "<i8"],
        "offsets": [0, _FLAGS_OFFSET, FRAME_HEADER + 2, FRAME_HEADER + 16, FRAME_HEADER + 24],
        "itemsize": FRAME_HEADER + HEADER_LENGTH,
    }
)


class _At:
    """Stands for the header of a message, of which handlers want the position alone."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position


class BatchedLog(JoinedLog):
    """A log whose messages are given in batches.

    Args:
        subscription: As for :class:`JoinedLog`.
        image: As for :class:`JoinedLog`.
        limit: As for :class:`JoinedLog`.
        handler: Takes what is not in a batch.
        state: Moved by each batch.
        deliver: The service's ``on_session_messages``.
    """

    def __init__(
        self,
        subscription: Subscription,
        image: Image,
        limit: int,
        handler: Callable[[Any, Header], Action | None],
        state: ServiceState,
        deliver: Callable[[MessageBatch], object],
    ) -> None:
        super().__init__(subscription, image, limit, handler, view=False)
        self._state = state
        self._deliver = deliver
        # What was taken from the image and not yet given: batches, and others with the position after them.
        self._parts: deque[tuple[MessageBatch | bytes, int]] = deque()
        self._given_position = image.position
        # Fragments of a message whose end has not come.
        self._begun: list[bytes] = []

    def go_on_from(self, previous: JoinedLog) -> None:
        """See :class:`JoinedLog`."""
        assert isinstance(previous, BatchedLog), "a service takes all its logs alike"
        self._begun = previous._begun

    @property
    def position(self) -> int:
        """See :class:`JoinedLog`."""
        return self._given_position if self._parts else self._image.position

    @property
    def is_done(self) -> bool:
        """See :class:`JoinedLog`."""
        return not self._parts and super().is_done

    def poll(self, commit_position: int, fragment_limit: int) -> int:
        """See :class:`JoinedLog`; a block counts as what it has parts."""
        parts = self._parts
        if not parts:
            self._take(min(commit_position, self.limit))
        count = 0
        while parts:
            part, self._given_position = parts.popleft()
            count += 1
            if isinstance(part, MessageBatch):
                self._state.time, self._state.position = int(part.timestamps[-1]), self._given_position
                self._deliver(part)
            elif self._handler(part, cast("Header", _At(self._given_position))) is Action.BREAK:
                break
        return count

    def step(self, commit_position: int) -> int:
        """See :class:`JoinedLog`."""
        lengths: list[int] = []

        def look(_: memoryview, header: Header) -> Action:
            lengths.append(header.frame_length)
            return Action.ABORT

        end = min(commit_position, self.limit)
        self._image.controlled_poll(look, 1, limit_position=end, assemble=False, view=True)
        return self.poll(self._image.position + _span(lengths[0]), 1) if lengths else 0

    def _take(self, end: int) -> None:
        """The next block of whole frames."""
        begin = self._image.position
        length = min(end - begin, _BLOCK_LENGTH)
        if length <= 0:
            return
        blocks: list[bytes] = []
        self._image.block_poll(lambda data, *_: blocks.append(data), length)
        # A padding frame comes alone, as a header.
        if blocks and len(blocks[0]) > FRAME_HEADER:
            self._parts.extend(self._cut(blocks[0], begin))

    def _cut(self, block: bytes, begin: int) -> Iterator[tuple[MessageBatch | bytes, int]]:
        starts = _starts(block)
        memory = np.frombuffer(block, np.uint8)
        # Frames begin at multiples of their alignment: a view has what would be an entry at each. Of one at the end
        # that is shorter than any message may be, nothing but the header of its frame counts.
        padded = block if len(block) - starts[-1] >= _ENTRY.itemsize else block + bytes(FRAME_ALIGNMENT)
        count = len(padded) // FRAME_ALIGNMENT - 1
        every: npt.NDArray[Any] = np.ndarray((count,), _ENTRY, padded, 0, (FRAME_ALIGNMENT,))
        entries = every[starts // FRAME_ALIGNMENT]
        ends = begin + np.append(starts[1:], len(block))
        is_message = (
            (entries["flags"] == _WHOLE)
            & (entries["kind"] == _MESSAGE)
            & (entries["length"] >= FRAME_HEADER + HEADER_LENGTH)
        )
        edges = [0, *(np.flatnonzero(is_message[1:] != is_message[:-1]) + 1).tolist(), len(starts)]
        for first, end in itertools.pairwise(edges):
            if is_message[first]:
                run = slice(first, end)
                yield MessageBatch(memory, starts[run], ends[run], entries[run]), int(ends[end - 1])
                continue
            for index in range(first, end):
                entry = self._assembled(block, int(starts[index]), entries[index])
                if entry is not None:
                    yield entry, int(ends[index])

    def _assembled(self, block: bytes, start: int, entry: Any) -> bytes | None:
        """The message that ends with a frame, if one does."""
        flags, length = int(entry["flags"]), int(entry["length"])
        data = block[start + FRAME_HEADER : start + length]
        if flags & _BEGIN:
            self._begun.clear()
        elif not self._begun:
            # The log was joined within a message. What its fragments begin with a client has chosen: no entry.
            return None
        if flags == _WHOLE:
            return data
        self._begun.append(data)
        if not flags & _END:
            return None
        whole = b"".join(self._begun)
        self._begun.clear()
        return whole


def _span(length: int) -> int:
    """What a frame takes in the log."""
    return (length + FRAME_ALIGNMENT - 1) & -FRAME_ALIGNMENT


def _starts(block: bytes) -> npt.NDArray[np.int64]:
    """Where the frames of a block begin."""
    length: int = _LENGTH.unpack_from(block)[0]
    span = _span(length)
    # Most streams have messages of one length, and those need no walk.
    if len(block) % span == 0:
        lengths = np.ndarray((len(block) // span,), "<i4", block, 0, (span,))
        if (lengths == length).all():
            return np.arange(0, len(block), span, dtype=np.int64)
    starts, offset, unpack = [], 0, _LENGTH.unpack_from
    while offset < len(block):
        starts.append(offset)
        offset += (unpack(block, offset)[0] + FRAME_ALIGNMENT - 1) & -FRAME_ALIGNMENT
    return np.array(starts, np.int64)
