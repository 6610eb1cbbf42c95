"""Parts of a snapshot: what the consensus module and services do alike. Cluster specification 6.4, 6.5."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace._agent.tasks import Task, added
from headrace._base.exceptions import ArchiveError
from headrace._base.results import OfferResult
from headrace.archive.protocol.forcing import forced
from headrace.cluster.common.node_archive import StreamToRecord
from headrace.cluster.errors import ClusterError
from headrace.cluster.protocol.codes import ClusterTimeUnit, SnapshotMark
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.snapshots import SnapshotMarker

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.cluster.common.node_archive import NodeArchive, RecordedStream

__all__ = ["SnapshotPoint", "as_before", "check_place", "other_snapshot", "recorded"]

_OTHER_SNAPSHOT = (
    "`headrace cluster invalidate-latest-snapshot DIRECTORY` has the next start use the snapshot before it"
)
_OFFERS_A_TURN = 100
_CLOCKS = {ClusterTimeUnit.MILLIS: "ms", ClusterTimeUnit.MICROS: "us", ClusterTimeUnit.NANOS: "ns"}


def other_snapshot(failure: BaseException) -> str:
    """Advice for a snapshot that cannot be loaded."""
    if isinstance(failure, ArchiveError) and failure.code_name == "UNKNOWN_RECORDING":
        return (
            "the archive's directory is older than the cluster's, or the recording of the snapshot was purged. Restore "
            "both directories from one copy. Only if you know that the archive has the whole log: "
            + _OTHER_SNAPSHOT
        )
    return _OTHER_SNAPSHOT


@dataclass(frozen=True, slots=True)
class SnapshotPoint:
    """Where in the log a snapshot is taken, and the settings that must be the same when it is loaded."""

    log_position: int
    leadership_term_id: int
    time_unit: ClusterTimeUnit
    app_version: int

    def marker(self, type_id: int, mark: SnapshotMark) -> bytes:
        """Begin or end of a part."""
        return encode(
            SnapshotMarker(
                type_id=type_id,
                log_position=self.log_position,
                leadership_term_id=self.leadership_term_id,
                index=0,
                mark=mark,
                time_unit=self.time_unit,
                app_version=self.app_version,
            )
        )


def as_before(*, clock: ClusterTimeUnit | None = None, app_version: int | None = None) -> str:
    """Advice for a log or a snapshot of other settings: to start with those."""
    if clock is not None:
        setting = f"cluster_clock={_CLOCKS[clock]!r}, the property aeron.cluster.clock={_CLOCKS[clock]},"
    else:
        setting = f"app_version={app_version}"
    return f"start with {setting} as before; the files stay as they are"


def check_place(marker: SnapshotMarker, log_position: int, leadership_term_id: int) -> None:
    """Check that a part of a snapshot is of the place in the log that the recording log has for it.

    Args:
        marker: Begin or end of the part.
        log_position: Of the entry in the recording log; 0 where an operator has begun a new log with the snapshot,
            which may be of any position of the old one.
        leadership_term_id: Of that entry.

    Raises:
        ClusterError: It is of another place, and would load an older or a newer state.
    """
    for name, found, expected in (
        ("log_position", marker.log_position, log_position or marker.log_position),
        ("leadership_term_id", marker.leadership_term_id, leadership_term_id),
    ):
        if found != expected:
            raise ClusterError(
                f"the snapshot is not the one that the recording log names: it has {name}={found}, and its entry in "
                f"the recording log has {name}={expected}"
            )


def recorded(
    client: Client,
    archive: NodeArchive,
    channel: str,
    stream_id: int,
    messages: Callable[[int], Iterable[Any]],
) -> Task[int]:
    """Record a part of a snapshot; returns the id of the complete recording.

    Args:
        client: Publishes it.
        archive: Records it; the caller steps it.
        channel: The channel to publish on.
        stream_id: The stream id on that channel.
        messages: Called with the longest length of a message; returns the messages one after the other.

    Raises:
        HeadraceError: The archive refuses, or is gone.
        Exception: Raised by `messages`.
    """
    publication = yield from added(client.request_exclusive_publication(channel, stream_id))
    with publication:
        # At each level: a start depends on it, and the log before it may be purged.
        heard = StreamToRecord(forced(channel), stream_id, publication.session_id)
        stream = yield from archive.recorded(heard)
        for count, message in enumerate(messages(publication.max_message_length), 1):
            while (result := publication.offer(message)) < 0:
                _check_offer(result)
                _check_active(client, stream)
                yield
            if count % _OFFERS_A_TURN == 0:
                yield
        end = publication.position
        assert end is not None, "open until closed below"
        while stream.position(client) < end:
            _check_active(client, stream)
            yield
    return stream.recording_id


def _check_offer(result: int) -> None:
    if result in (OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED):
        raise ClusterError(f"the snapshot cannot be written: {OfferResult(result).name}")


def _check_active(client: Client, stream: RecordedStream) -> None:
    if not stream.is_active(client):
        raise ClusterError(
            f"the archive no longer records the snapshot, recording_id={stream.recording_id}: it has ended, or was "
            "started anew; if it runs on, its error log says why. The snapshot is not used; have another one taken"
        )
