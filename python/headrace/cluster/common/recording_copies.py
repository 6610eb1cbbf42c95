"""Whole copies of another archive's recordings, made by the archive of this node. Cluster specification 6.7, 8.6."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._base.exceptions import ArchiveError
from headrace.archive.client import calls
from headrace.archive.protocol.codes import RecordingSignal
from headrace.archive.protocol.requests import StopReplicationRequest
from headrace.cluster.errors import ClusterError
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace._agent.tasks import Task
    from headrace.archive.client.signals import Watch
    from headrace.client import Client
    from headrace.cluster.common.node_archive import NodeArchive

__all__ = ["OtherArchive", "RecordingCopies"]


@dataclass(frozen=True, slots=True)
class OtherArchive:
    """The channel and stream on which another archive takes requests."""

    control_channel: str
    control_stream_id: int
    credentials: bytes = field(default=b"", repr=False)


class RecordingCopies:
    """Copies recordings one after the other, and deletes the copies that its owner does not keep.

    Args:
        client: The client of the archive's session.
        archive: Makes the copies.
        channel: Where the copies arrive.
        progress_timeout_s: How long a copy may make no progress.
        progress_interval_s: How often its progress is checked.
    """

    def __init__(
        self,
        client: Client,
        archive: NodeArchive,
        channel: str,
        *,
        progress_timeout_s: float,
        progress_interval_s: float,
    ) -> None:
        self._client = client
        self._archive = archive
        self._channel = channel
        self._progress_timeout_s = progress_timeout_s
        self._progress_interval_s = progress_interval_s
        # Recordings of copies that were begun, and that the owner has not kept.
        self._unkept: set[int] = set()

    def copied(self, other: OtherArchive, recording_id: int) -> Task[int]:
        """Copy a recording that has ended; returns the copy's recording id.

        Raises:
            ArchiveError: One of the archives refuses, or is gone.
            ClusterError: The copy makes no progress.
        """
        archive = self._archive
        progress = _Progress(self._client, archive, self._progress_timeout_s, self._progress_interval_s)
        while True:
            watch = yield from archive.asked(
                archive.replication(
                    recording_id,
                    other.control_channel,
                    source_stream_id=other.control_stream_id,
                    destination_id=progress.copy_id,
                    replication_channel=self._channel,
                    credentials=other.credentials,
                )
            )
            try:
                yield from self._ended(watch, progress, recording_id)
            except BaseException:
                archive.send(StopReplicationRequest(replication_id=watch.correlation_id))
                raise
            if watch.error is not None:
                raise watch.error
            # Without this signal the stream broke off, and the next attempt goes on from there.
            if progress.copy_id is not None and _has(watch, RecordingSignal.SYNC):
                return progress.copy_id
            yield

    def _ended(self, watch: Watch, progress: _Progress, recording_id: int) -> Task[None]:
        while True:
            has_stopped = _has(watch, RecordingSignal.STOP) or not _has(watch, RecordingSignal.EXTEND)
            has_ended = has_stopped and _has(watch, RecordingSignal.REPLICATE_END)
            progress.look(watch)
            if progress.copy_id is not None:
                self._unkept.add(progress.copy_id)
            if has_ended:
                return
            if progress.is_over:
                raise ClusterError(
                    f"the copy of recording {recording_id} has made no progress for {self._progress_timeout_s:g} s: "
                    f"does {self._channel} lead to this machine?"
                )
            yield

    def keep(self, recording_ids: Iterable[int]) -> None:
        """Note that the owner keeps these copies."""
        self._unkept.difference_update(recording_ids)

    def cleared(self) -> Task[None]:
        """Delete the copies that the owner has not kept, such as those of failed attempts."""
        for recording_id in sorted(self._unkept):
            try:
                yield from self._archive.asked(calls.purge_recording(recording_id))
            except ArchiveError as refusal:
                if refusal.code_name != "UNKNOWN_RECORDING":
                    # It may not have ended yet, and is deleted before the next copies.
                    continue
            self._unkept.discard(recording_id)


class _Progress:
    """Whether a copy makes progress, over all attempts at it."""

    def __init__(self, client: Client, archive: NodeArchive, timeout_s: float, interval_s: float) -> None:
        self._client = client
        self._archive = archive
        self._timeout_s = timeout_s
        self._interval_s = interval_s
        self._position = NULL_VALUE
        self._deadline, self._next_look = client.clock.deadline(timeout_s), client.clock.deadline(0)
        self.copy_id: int | None = None
        """The recording of the copy, once the archive has named it."""

    def look(self, watch: Watch) -> None:
        """Note how far the copy is, unless it was just noted."""
        self.copy_id = next(
            (one.recording_id for one in watch.signals if one.recording_id >= 0), self.copy_id
        )
        if not self._next_look.is_over:
            return
        clock = self._client.clock
        self._next_look = clock.deadline(self._interval_s)
        copy = None if self.copy_id is None else self._archive.copy_of(self.copy_id)
        position = NULL_VALUE if copy is None else copy.position(self._client)
        if position > self._position:
            self._position = position
            self._deadline = clock.deadline(self._timeout_s)

    @property
    def is_over(self) -> bool:
        """Whether the copy has made no progress for too long."""
        return self._deadline.is_over


def _has(watch: Watch, signal: RecordingSignal) -> bool:
    return any(one.signal is signal for one in watch.signals)
