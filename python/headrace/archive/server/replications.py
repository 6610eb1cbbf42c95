"""All replications of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError
from headrace.archive.client.session_link import ArchiveLink
from headrace.archive.client.settings import ArchiveClientConfig
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.protocol.requests import ReplicateRequest, ReplicateRequest2, TaggedReplicateRequest
from headrace.archive.server.deletions import ReplyTo
from headrace.archive.server.errors import RequestError
from headrace.archive.server.replication import Replication, Wanted
from headrace.channel import ChannelUri
from headrace.positions import NULL_VALUE, signed_32

if TYPE_CHECKING:
    import random

    from headrace.archive.server.context import Context
    from headrace.archive.server.control_session import ControlSession
    from headrace.archive.server.recordings import Recordings

__all__ = ["Replications"]


class Replications:
    """Starts and stops replications, and steps them.

    Args:
        context: The context of the archive.
        recordings: The recordings of the archive.
        ids: Numbers replications, and control sessions too.
        chance: The source of session ids for the streams to other archives.
    """

    def __init__(
        self, context: Context, recordings: Recordings, ids: Iterator[int], chance: random.Random
    ) -> None:
        self._context = context
        self._recordings = recordings
        self._ids = ids
        self._chance = chance
        self._replications: dict[int, Replication] = {}

    def start(self, session: ControlSession, request: ReplicateRequest) -> None:
        """Begin to replicate; the session gets the id of the replication at once.

        Raises:
            RequestError: The destination is unknown or active, too many replications are active, or a channel is wrong.
        """
        full = _in_full(request)
        self._check(full)
        try:
            channel = self._replication_channel(full)
            source = self._source(full, channel)
            wanted = self._wanted(full, source, channel)
        except ConfigError as wrong:
            raise RequestError(ErrorCode.GENERIC, str(wrong)) from None
        replication_id = next(self._ids)
        context = self._context
        config = ArchiveClientConfig.of(source, client_name=f"replicationSessionId={replication_id}")
        link = ArchiveLink(context.client, config, lambda: signed_32(self._chance.getrandbits(32)))
        replication = Replication(ReplyTo(session, replication_id), wanted, link, context, self._recordings)
        self._replications[replication_id] = replication
        replication.life.begin(
            context.events,
            f"control session {session.session_id} asked for it",
            replication_id,
            parent_id=wanted.destination_id,
            detail=f"recording {wanted.source_id} of {config.control_channel}",
        )
        context.log.info(
            f"replication {replication_id}: recording {wanted.source_id} of {config.control_channel}"
        )
        session.send_ok(request.correlation_id, replication_id)

    def _check(self, request: ReplicateRequest2) -> None:
        """Refuse what can be refused at once."""
        channel, destination_id = request.replication_channel, request.dst_recording_id
        # Before it is taken apart: a channel that is none is refused with its own words.
        if "control-mode=response" in channel:
            if request.live_destination:
                raise _refused("response channels cannot be used with live destinations")
            if (request.channel_tag_id, request.subscription_tag_id) != (NULL_VALUE, NULL_VALUE):
                raise _refused("response channels cannot be used with tagged replication")
        if destination_id != NULL_VALUE:
            self._check_destination(destination_id)
        limit = self._context.config.max_concurrent_recordings
        if len(self._replications) >= limit:
            raise RequestError(ErrorCode.MAX_RECORDINGS, f"max concurrent replications reached {limit}")

    def _check_destination(self, destination_id: int) -> None:
        destination = self._context.catalog.find(destination_id)
        if destination is None:
            text = f"unknown destination recording id {destination_id}"
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, text)
        if destination.is_active or self._recordings.active(destination_id) is not None:
            text = f"cannot replicate to active recording {destination_id}"
            raise RequestError(ErrorCode.ACTIVE_RECORDING, text)
        for replication_id, other in self._replications.items():
            if other.destination_id == destination_id:
                text = f"replication {replication_id} fills recording {destination_id} already"
                raise RequestError(ErrorCode.ACTIVE_RECORDING, text)

    def _replication_channel(self, request: ReplicateRequest2) -> str:
        channel = request.replication_channel or self._context.config.replication_channel
        if not channel:
            raise _refused(
                "no replication channel: give one, or set aeron.archive.replication.channel of this archive"
            )
        return channel

    @staticmethod
    def _wanted(request: ReplicateRequest2, source: ArchiveClientConfig, channel: str) -> Wanted:
        for name, text in (("replication_channel", channel), ("live_destination", request.live_destination)):
            if text and ChannelUri(text).is_spy:
                rule = "a replay of another archive is received, not spied on"
                raise ConfigError(f"{name}={text}: {rule}", name, text, rule)
        uri = ChannelUri(channel)
        source.check_way_back("replication_channel", channel)
        if uri.media == "udp" and not uri.is_response and uri.get("endpoint") is None:
            rule = "the other archive needs an endpoint of this machine to replay to"
            raise ConfigError(f"replication_channel={channel}: {rule}", "replication_channel", channel, rule)
        return Wanted(
            source_id=request.src_recording_id,
            destination_id=_given(request.dst_recording_id),
            stop_position=_given(request.stop_position),
            tags=(_given(request.channel_tag_id), _given(request.subscription_tag_id)),
            live_destination=request.live_destination,
            channel=uri,
            session_id=_given(request.replication_session_id),
            file_io_max_length=request.file_io_max_length,
            timeout_s=ArchiveClientConfig().message_timeout_s,
        )

    def _source(self, request: ReplicateRequest2, channel: str) -> ArchiveClientConfig:
        """The settings to reach the other archive."""
        control = ChannelUri(request.src_control_channel)
        return ArchiveClientConfig.of(
            None,
            control_channel=request.src_control_channel,
            control_stream_id=request.src_control_stream_id,
            response_channel=request.src_response_channel or self._response_channel(control, channel),
            credentials=request.encoded_credentials,
        )

    def _response_channel(self, control: ChannelUri, channel: str) -> str:
        """Where another archive answers: on this driver if it runs there too, else at this archive's address.

        That is the host of the control channel, or without one the host at which the copy arrives.
        """
        if control.media == "ipc":
            return "aeron:ipc"
        config = self._context.config
        own = ChannelUri((config.control_channel if config.control_channel_enabled else None) or channel)
        if own.is_response:
            return channel
        host, _, _ = (own.get("endpoint") or "").rpartition(":")
        if not host:
            raise _refused(
                "no channel for the answers of the source archive: neither the control channel nor the replication "
                f"channel {channel} has an address of this archive, so give srcResponseChannel"
            )
        return ChannelUri("aeron:udp").with_parameters(endpoint=f"{host}:0", interface=own.get("interface"))

    def fills(self, recording_id: int) -> bool:
        """Whether a replication fills a recording, or will."""
        return any(one.destination_id == recording_id for one in self._replications.values())

    def stop(self, replication_id: int) -> None:
        """Stop one.

        Raises:
            RequestError: No active replication has this id.
        """
        replication = self._replications.pop(replication_id, None)
        if replication is None:
            text = f"unknown replication id {replication_id}"
            raise RequestError(ErrorCode.UNKNOWN_REPLICATION, text)
        replication.stop()

    def do_work(self) -> int:
        """One turn of each."""
        work_count = 0
        for replication_id, replication in list(self._replications.items()):
            work_count += replication.do_work()
            if replication.is_done:
                del self._replications[replication_id]
        return work_count

    def close(self) -> None:
        """Leave the other archives, for an archive that ends."""
        for replication in self._replications.values():
            replication.abandon()
        self._replications.clear()


def _in_full(request: ReplicateRequest) -> ReplicateRequest2:
    """The request in its newest form; fields that older clients do not send are left open."""
    if isinstance(request, ReplicateRequest2):
        return request
    tags = request if isinstance(request, TaggedReplicateRequest) else None
    return ReplicateRequest2(
        control_session_id=request.control_session_id,
        correlation_id=request.correlation_id,
        src_recording_id=request.src_recording_id,
        dst_recording_id=request.dst_recording_id,
        src_control_stream_id=request.src_control_stream_id,
        src_control_channel=request.src_control_channel,
        live_destination=request.live_destination,
        channel_tag_id=NULL_VALUE if tags is None else tags.channel_tag_id,
        subscription_tag_id=NULL_VALUE if tags is None else tags.subscription_tag_id,
        stop_position=NULL_VALUE,
        replication_channel="",
    )


def _given(value: int) -> int | None:
    return None if value == NULL_VALUE else value


def _refused(text: str) -> RequestError:
    return RequestError(ErrorCode.GENERIC, text)
