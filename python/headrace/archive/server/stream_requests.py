"""Carries out the requests about named streams and the groups that read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._base.exceptions import ConfigError
from headrace.archive.protocol.answers import NamedStreamDescriptor
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.protocol.messages import encode
from headrace.archive.protocol.named_stream import NamedStream
from headrace.archive.protocol.requests import (
    CommitPlaceRequest,
    DeclareStreamRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListStreamRecordingsRequest,
    ListStreamsRequest,
    Request,
    UndeclareStreamRequest,
)
from headrace.archive.protocol.retention import Retention, without_retention
from headrace.archive.server.errors import RequestError
from headrace.archive.server.groups import Groups, addressed
from headrace.archive.server.listings import MessageListing, encode_descriptor

if TYPE_CHECKING:
    from headrace.archive.server.control_session import ControlSession
    from headrace.archive.server.named_streams import NamedStreams

__all__ = ["StreamRequests"]

R = TypeVar("R", bound=Request)


class StreamRequests:
    """What :class:`Requests` does with named streams, by the kind of the request."""

    def __init__(self, streams: NamedStreams, groups: Groups) -> None:
        self._streams = streams
        self._groups = groups
        self.handlers: dict[type[Request], Callable[[ControlSession, Any], None]] = {
            DeclareStreamRequest: self._declare,
            UndeclareStreamRequest: self._undeclare,
            ListStreamsRequest: self._list_streams,
            ListStreamRecordingsRequest: self._list_recordings,
            JoinGroupRequest: groups.join,
            CommitPlaceRequest: groups.commit,
            LeaveGroupRequest: self._leave_group,
            ListGroupsRequest: self._list_groups,
        }

    def _declare(self, session: ControlSession, request: DeclareStreamRequest) -> None:
        try:
            stream = NamedStream(
                name=request.name,
                channel=without_retention(request.channel),
                stream_id=request.stream_id,
                location=request.source_location,
                retention=Retention.of(request.channel),
                keys=request.keys,
            )
        except ConfigError as wrong:
            raise RequestError(ErrorCode.GENERIC, str(wrong)) from None
        self._streams.declare(stream)
        session.send_ok(request.correlation_id)

    def _undeclare(self, session: ControlSession, request: UndeclareStreamRequest) -> None:
        session.send_ok(request.correlation_id, int(self._streams.undeclare(request.name)))

    def _list_streams(self, session: ControlSession, request: ListStreamsRequest) -> None:
        _list(session, request, [_described(one, session, request) for one in self._streams.all()])

    def _list_recordings(self, session: ControlSession, request: ListStreamRecordingsRequest) -> None:
        found = self._streams.recordings(request.name, request.from_recording_id, request.since_ms)
        messages = [encode_descriptor(session.session_id, request.correlation_id, entry) for entry in found]
        _list(session, request, messages)

    def _list_groups(self, session: ControlSession, request: ListGroupsRequest) -> None:
        found = self._groups.described(request.name)
        _list(session, request, addressed(found, session.session_id, request.correlation_id))

    def _leave_group(self, session: ControlSession, request: LeaveGroupRequest) -> None:
        self._groups.leave(request)
        session.send_ok(request.correlation_id)


def _list(session: ControlSession, request: Request, messages: list[bytes]) -> None:
    if session.listing is not None:
        raise RequestError(ErrorCode.ACTIVE_LISTING, "active listing already in progress")
    session.listing = MessageListing(request.correlation_id, messages)


def _described(stream: NamedStream, session: ControlSession, request: Request) -> bytes:
    retention = stream.retention
    message = NamedStreamDescriptor(
        control_session_id=session.session_id,
        correlation_id=request.correlation_id,
        stream_id=stream.stream_id,
        source_location=stream.location,
        keys=stream.keys,
        name=stream.name,
        channel=stream.channel if retention is None else retention.in_channel(stream.channel),
        former="\n".join(address.encode() for address in stream.former),
    )
    return encode(message)
