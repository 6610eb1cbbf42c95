"""The latest value of each key of a named stream, as a dictionary that is kept current."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from headrace._base.closing import Closing
from headrace._base.exceptions import ArchiveTimeoutError
from headrace.archive.client.following.states import FollowState
from headrace.archive.client.waits import POLL_INTERVAL_S
from headrace.archive.envelope import Envelope

if TYPE_CHECKING:
    from headrace.archive.client.following.stream_follow import StreamFollow
    from headrace.clock import Clock

__all__ = ["Table"]

K = TypeVar("K")
V = TypeVar("V")

_MESSAGES_A_REFRESH = 100_000


class Table(Closing, Mapping[K, V]):
    """The latest value of each key of a named stream: a read-only dictionary.

    Made with :meth:`headrace.Archive.table`. :meth:`refresh` takes what has come; nothing changes between two of its
    calls. A context manager. Used by one thread at a time.
    """

    def __init__(
        self,
        follow: StreamFollow,
        clock: Clock,
        entry: Callable[[bytes], tuple[K, V | None]],
        on_change: Callable[[K, V | None], object] | None,
    ) -> None:
        """Called by :meth:`headrace.Archive.table`; `entry` returns a message's key and value."""
        self._follow = follow
        self._clock = clock
        self._entry = entry
        self._on_change = on_change
        self._values: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def is_current(self) -> bool:
        """Whether everything that was recorded has come, and only publishers can send more."""
        return self._follow.is_live or self._follow.state is FollowState.WAITING

    def refresh(self, limit: int = _MESSAGES_A_REFRESH) -> int:
        """Take the messages that have come; returns how many. Never blocks.

        Args:
            limit: Most messages to take.

        Raises:
            ArchiveError: The stream cannot be read.
            EnvelopeError: A message has no envelope, which the stream's messages have.
        """
        count = 0
        while count < limit and (message := self._follow.poll_message()) is not None:
            key, value = self._entry(message.payload)
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
            if self._on_change is not None:
                self._on_change(key, value)
            count += 1
        return count

    def wait_until_current(self, timeout_s: float | None = 60.0) -> None:
        """Wait until everything that was recorded has come.

        Raises:
            ArchiveTimeoutError: It has not come in time; the text says for what the table waits.
            ArchiveError: As :meth:`refresh`.
        """
        deadline = self._clock.deadline(timeout_s)
        while self.refresh() or not self.is_current:
            if deadline.is_over:
                raise ArchiveTimeoutError(
                    f"the table is not current: it waits for {self._follow.waiting_for}"
                )
            self._clock.sleep(POLL_INTERVAL_S)

    def close(self) -> None:
        """Leave the stream; the values stay."""
        self._follow.close()

    def __repr__(self) -> str:
        return f"Table({len(self)} keys, is_current={self.is_current})"


def keyed_entry(data: bytes) -> tuple[bytes, bytes | None]:
    """The key and the value of a message in an envelope; an empty payload takes the key away."""
    envelope = Envelope.decode(data)
    return envelope.key, envelope.payload or None
