"""The requests of a client as steps of exchanges, with the names and parameters of the methods of `Archive`.

:class:`headrace.Archive` runs and documents them; :class:`headrace.archive.aio.AsyncArchive` awaits them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.checks import wrong
from headrace.archive.client.exchange import Steps
from headrace.archive.client.replay import ReplayRange
from headrace.archive.client.steps import (
    all_listed,
    answered,
    done,
    listed,
    position_or_none,
    recording_started,
    replay_started,
    streams_listed,
    subscriptions_listed,
    unknown_recording,
)
from headrace.archive.protocol import requests
from headrace.archive.protocol.codes import SourceLocation
from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.archive.protocol.named_stream import NamedStream
from headrace.archive.protocol.retention import Retention, without_retention
from headrace.channel import ChannelUri
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication

__all__ = [
    "COUNT_MAX",
    "attach_segments",
    "declare",
    "delete_detached_segments",
    "detach_segments",
    "extend_recording",
    "extension_of",
    "find_last_matching_recording",
    "find_recording",
    "list_recording_subscriptions",
    "list_recordings",
    "max_recorded_position",
    "migrate_segments",
    "purge_recording",
    "purge_segments",
    "recording_of",
    "recording_position",
    "set_retention",
    "start_position",
    "start_recording",
    "start_replay",
    "stop_all_replays",
    "stop_position",
    "stop_recording",
    "stop_recording_by_id",
    "stop_recording_subscription",
    "stop_replay",
    "stop_replication",
    "stream_recordings",
    "streams",
    "truncate_recording",
    "undeclare",
    "update_channel",
]

COUNT_MAX = (1 << 31) - 1

# --- recording -----------------------------------------------------------------------------------------------------


def start_recording(
    channel: str,
    stream_id: int,
    *,
    location: SourceLocation = SourceLocation.LOCAL,
    auto_stop: bool = False,
    retention: Retention | None = None,
) -> Steps[int]:
    """Record every publisher of a channel and stream; returns the subscription's id."""
    if retention is not None:
        channel = retention.in_channel(channel)
    request = requests.StartRecordingRequest2(
        stream_id=stream_id, source_location=location, auto_stop=auto_stop, channel=channel
    )
    return recording_started(request)


def recording_of(
    publication: ExclusivePublication, channel: str, retention: Retention | None
) -> requests.StartRecordingRequest2:
    """The request to record a publication of this program until it ends."""
    if retention is not None:
        channel = retention.in_channel(channel)
    return requests.StartRecordingRequest2(
        stream_id=publication.stream_id,
        source_location=SourceLocation.LOCAL,
        auto_stop=True,
        channel=ChannelUri(channel).with_parameters(session_id=publication.session_id),
    )


def extension_of(
    publication: ExclusivePublication, channel: str, recording_id: int
) -> requests.ExtendRecordingRequest2:
    """The request to extend a recording by a publication of this program until it ends."""
    return requests.ExtendRecordingRequest2(
        recording_id=recording_id,
        stream_id=publication.stream_id,
        source_location=SourceLocation.LOCAL,
        auto_stop=True,
        channel=ChannelUri(without_retention(channel)).with_parameters(session_id=publication.session_id),
    )


def extend_recording(
    recording_id: int,
    channel: str,
    stream_id: int,
    *,
    location: SourceLocation = SourceLocation.LOCAL,
    auto_stop: bool = False,
) -> Steps[int]:
    """Continue a stopped recording; returns the subscription's id."""
    request = requests.ExtendRecordingRequest2(
        recording_id=recording_id,
        stream_id=stream_id,
        source_location=location,
        auto_stop=auto_stop,
        channel=channel,
    )
    return recording_started(request)


def stop_recording(channel: str, stream_id: int) -> Steps[None]:
    """Stop the recordings of a channel and stream."""
    return done(requests.StopRecordingRequest(stream_id=stream_id, channel=channel))


def stop_recording_subscription(subscription_id: int) -> Steps[None]:
    """Stop the recordings of an archive's subscription."""
    return done(requests.StopRecordingSubscriptionRequest(subscription_id=subscription_id))


def stop_recording_by_id(recording_id: int) -> Steps[bool]:
    """Stop one recording; returns whether it was active."""
    return bool((yield from answered(requests.StopRecordingByIdentityRequest(recording_id=recording_id))))


# --- replay --------------------------------------------------------------------------------------------------------


def start_replay(
    recording_id: int,
    channel: str,
    stream_id: int,
    *,
    position: int | None = None,
    length: int | None = None,
    limit_counter_id: int | None = None,
    file_io_max_length: int = NULL_VALUE,
) -> Steps[int]:
    """Replay to a channel; returns the replay's id."""
    if ChannelUri(channel).is_response:
        raise wrong(
            "channel", channel, "goes back to a subscription of this program: Archive.replay makes it"
        )
    what = ReplayRange(recording_id, position, length, limit_counter_id, file_io_max_length)
    return (yield from replay_started(what.request(channel, stream_id)))[0]


def stop_replay(replay_id: int) -> Steps[None]:
    """Stop one replay."""
    return done(requests.StopReplayRequest(replay_session_id=replay_id))


def stop_all_replays(recording_id: int | None = None) -> Steps[None]:
    """Stop all replays, of a recording or of the archive."""
    which = NULL_VALUE if recording_id is None else recording_id
    return done(requests.StopAllReplaysRequest(recording_id=which))


def stop_replication(replication_id: int) -> Steps[None]:
    """Stop one replication."""
    return done(requests.StopReplicationRequest(replication_id=replication_id))


# --- queries -------------------------------------------------------------------------------------------------------


def list_recordings(
    from_recording_id: int = 0,
    count: int = COUNT_MAX,
    *,
    channel: str | None = None,
    stream_id: int | None = None,
) -> Steps[list[RecordingDescriptor]]:
    """List recordings from an id on."""
    if count <= 0:
        return []
    count = min(count, COUNT_MAX)
    if stream_id is not None:
        of_stream = requests.ListRecordingsForUriRequest(
            from_recording_id=from_recording_id,
            record_count=count,
            stream_id=stream_id,
            channel=channel or "",
        )
        return (yield from listed(of_stream, count))
    # The protocol looks for a channel only together with a stream.
    most = count if channel is None else COUNT_MAX
    request = requests.ListRecordingsRequest(from_recording_id=from_recording_id, record_count=most)
    found = yield from listed(request, most)
    return [one for one in found if (channel or "") in one.original_channel][:count]


def find_recording(recording_id: int) -> Steps[RecordingDescriptor | None]:
    """The description of a recording; ``None`` when it is unknown."""
    found = yield from listed(requests.ListRecordingRequest(recording_id=recording_id), 1)
    return found[0] if found else None


def list_recording_subscriptions(
    channel: str = "", stream_id: int | None = None
) -> Steps[list[tuple[int, int, str]]]:
    """The archive's subscriptions for recordings."""
    request = requests.ListRecordingSubscriptionsRequest(
        pseudo_index=0,
        subscription_count=COUNT_MAX,
        apply_stream_id=stream_id is not None,
        stream_id=stream_id or 0,
        channel=channel,
    )
    return subscriptions_listed(request)


def find_last_matching_recording(
    channel: str, stream_id: int, session_id: int, *, min_recording_id: int = 0
) -> Steps[int | None]:
    """The latest recording of a publisher."""
    request = requests.FindLastMatchingRecordingRequest(
        min_recording_id=min_recording_id, session_id=session_id, stream_id=stream_id, channel=channel
    )
    return position_or_none(request)


def start_position(recording_id: int) -> Steps[int]:
    """Where a recording begins."""
    return answered(requests.StartPositionRequest(recording_id=recording_id))


def stop_position(recording_id: int) -> Steps[int | None]:
    """Where a recording ended; ``None`` while it is active."""
    return position_or_none(requests.StopPositionRequest(recording_id=recording_id))


def recording_position(recording_id: int) -> Steps[int | None]:
    """The position that an active recording has reached; ``None`` when it is not active."""
    return position_or_none(requests.RecordingPositionRequest(recording_id=recording_id))


def max_recorded_position(recording_id: int) -> Steps[int]:
    """The position that a recording has reached, active or not."""
    return answered(requests.MaxRecordedPositionRequest(recording_id=recording_id))


# --- storage -------------------------------------------------------------------------------------------------------


def truncate_recording(recording_id: int, position: int) -> Steps[int]:
    """Delete everything recorded after a position; returns the number of files."""
    return answered(requests.TruncateRecordingRequest(recording_id=recording_id, position=position))


def purge_recording(recording_id: int) -> Steps[int]:
    """Delete a whole recording; returns the number of files."""
    return answered(requests.PurgeRecordingRequest(recording_id=recording_id))


def detach_segments(recording_id: int, new_start_position: int) -> Steps[None]:
    """Make a recording begin in a later segment file."""
    return done(
        requests.DetachSegmentsRequest(recording_id=recording_id, new_start_position=new_start_position)
    )


def delete_detached_segments(recording_id: int) -> Steps[int]:
    """Delete the segment files before the start of a recording; returns how many."""
    return answered(requests.DeleteDetachedSegmentsRequest(recording_id=recording_id))


def purge_segments(recording_id: int, new_start_position: int) -> Steps[int]:
    """Detach segment files and delete them; returns how many."""
    return answered(
        requests.PurgeSegmentsRequest(recording_id=recording_id, new_start_position=new_start_position)
    )


def attach_segments(recording_id: int) -> Steps[int]:
    """Attach the segment files that end where a recording begins again; returns how many."""
    return answered(requests.AttachSegmentsRequest(recording_id=recording_id))


def migrate_segments(source_id: int, destination_id: int) -> Steps[int]:
    """Make one recording the beginning, or the end, of another; returns how many segment files moved."""
    return answered(
        requests.MigrateSegmentsRequest(src_recording_id=source_id, dst_recording_id=destination_id)
    )


def set_retention(recording_id: int, retention: Retention | None) -> Steps[None]:
    """Set how long a recording keeps its segment files."""
    recording = yield from find_recording(recording_id)
    if recording is None:
        raise unknown_recording(recording_id)
    channel = recording.original_channel
    channel = without_retention(channel) if retention is None else retention.in_channel(channel)
    yield from update_channel(recording_id, channel)


def update_channel(recording_id: int, channel: str) -> Steps[None]:
    """Replace the channel in a recording's description."""
    return done(requests.UpdateChannelRequest(recording_id=recording_id, channel=channel))


# --- named streams -------------------------------------------------------------------------------------------------


def declare(
    name: str,
    channel: str,
    stream_id: int,
    *,
    location: SourceLocation = SourceLocation.LOCAL,
    retention: Retention | None = None,
    keys: bool = False,
) -> Steps[None]:
    """Have a stream recorded whenever the archive runs."""
    stream = NamedStream(name, without_retention(channel), stream_id, location, retention)
    channel = stream.channel if retention is None else retention.in_channel(stream.channel)
    return done(
        requests.DeclareStreamRequest(
            name=name, channel=channel, stream_id=stream_id, source_location=location, keys=keys
        )
    )


def undeclare(name: str) -> Steps[bool]:
    """Have a stream recorded no longer; returns whether it was."""
    return bool((yield from answered(requests.UndeclareStreamRequest(name=name))))


def streams() -> Steps[list[NamedStream]]:
    """The declared streams."""
    return streams_listed(requests.ListStreamsRequest())


def stream_recordings(
    name: str, from_recording_id: int = 0, since_ms: int = 0
) -> Steps[list[RecordingDescriptor]]:
    """The recordings of a stream from an id on, those that are active, and those that stopped since a time."""
    return all_listed(
        requests.ListStreamRecordingsRequest(
            name=name, from_recording_id=from_recording_id, since_ms=since_ms
        )
    )
