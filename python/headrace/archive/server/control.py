"""The request streams of an archive, the sessions on them, and which request belongs to which session."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError, HeadraceError
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.protocol.messages import PROTOCOL_VERSION, MessageError, decode
from headrace.archive.protocol.requests import (
    AuthConnectRequest,
    ChallengeResponse,
    CloseSessionRequest,
    ReplayRequest,
    Request,
)
from headrace.archive.server.context import Context
from headrace.archive.server.control_session import ControlSession, Refusal
from headrace.archive.server.counters import request_control_session
from headrace.archive.server.states import SessionState
from headrace.archive.server.stream_conflicts import RequestStream, check_stream_conflicts
from headrace.channel import ChannelUri, format_size
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive.server.request_handlers import Requests
    from headrace.client import Header, Image, Subscription
    from headrace.security.verdicts import Verdicts

__all__ = ["Control"]

_FRAGMENTS_A_TURN = 10
# Clients that have not said yet who they are: a place for each is held for as long as the connect time-out.
_UNAUTHENTICATED_MAX = 100


class Control:
    """Control sessions of one archive."""

    def __init__(self, context: Context, requests: Requests, ids: Iterator[int], verdicts: Verdicts) -> None:
        """`ids` numbers sessions, and replications too."""
        self._verdicts = verdicts
        self._context = context
        self._requests = requests
        self._ids = ids
        self._sessions: dict[int, ControlSession] = {}
        self._subscriptions: list[Subscription] = []
        config = context.config
        local = RequestStream(
            "local_control_stream_id", config.local_control_channel, config.local_control_stream_id
        )
        streams = [local]
        if config.control_channel_enabled and config.control_channel:
            sparse = "true" if config.control_term_buffer_sparse else "false"
            channel = ChannelUri(config.control_channel).with_parameters(sparse=sparse)
            streams.append(RequestStream("control_stream_id", channel, config.control_stream_id))
        for stream in streams:
            self._subscriptions.append(context.client.add_subscription(stream.channel, stream.stream_id))
        check_stream_conflicts(context.client, streams)

    @property
    def subscriptions(self) -> list[Subscription]:
        """The local subscription first, then that of the network."""
        return self._subscriptions

    def do_work(self) -> int:
        """One turn: new requests, then each session."""
        work_count = 0
        for subscription in self._subscriptions:
            work_count += subscription.poll(
                lambda payload, header, source=subscription: self._on_message(source, payload, header),
                _FRAGMENTS_A_TURN,
            )
        for session_id, session in list(self._sessions.items()):
            if session.image.is_closed:
                session.leave("its request stream is gone")
            try:
                work_count += session.do_work()
            except Exception as failure:
                self._fail(session, failure)
            if session.is_done:
                del self._sessions[session_id]
                try:
                    self._close(session)
                except Exception as failure:
                    self._fail(session, failure)
        return work_count

    def _fail(self, session: ControlSession, failure: Exception) -> None:
        """End only this session because of an unexpected exception."""
        self._context.log.error(
            "a control session failed", failure, f"control session {session.session_id}: {failure!r}"
        )
        session.abort(f"the archive failed: {failure!r}")

    def _on_message(self, source: Subscription, payload: bytes, header: Header) -> None:
        """Handle one request; no failure of it may end the poll, which has others to deliver."""
        image = source.image_by_session_id(header.session_id)
        if image is None:
            return
        try:
            self._on_payload(image, payload, header)
        except Exception as failure:
            detail = f"session_id={header.session_id}: {failure!r}"
            self._context.log.error("a request failed", failure, detail)

    def _on_payload(self, image: Image, payload: bytes, header: Header) -> None:
        try:
            request = decode(payload)
        except MessageError as wrong:
            detail = f"session_id={header.session_id}: {wrong}"
            self._context.log.warning("a client sent a request that cannot be read", detail)
            self._refuse(image, wrong)
            return
        if isinstance(request, AuthConnectRequest):
            self._connect(image, request)
        elif isinstance(request, ReplayRequest) and request.replay_token != NULL_VALUE:
            self._on_tokened_replay(image, request)
        elif isinstance(request, ChallengeResponse):
            self._on_challenge_response(image, request)
        elif isinstance(request, CloseSessionRequest | Request):
            self._on_request(image, request)

    def _refuse(self, image: Image, wrong: MessageError) -> None:
        """Answer a request that cannot be read, so that its sender need not wait in vain."""
        session_id, correlation_id = wrong.ids or (NULL_VALUE, NULL_VALUE)
        session = self._sessions.get(session_id)
        if session is not None and session.image == image and session.state is SessionState.ACTIVE:
            session.send_error(correlation_id, ErrorCode.GENERIC, f"malformed request: {wrong}")

    def _session_of(self, image: Image, request: CloseSessionRequest | Request) -> ControlSession | None:
        """The session that a request names, if the request came from that session's client."""
        session = self._sessions.get(request.control_session_id)
        if session is not None and session.image == image:
            return session
        # A client may close twice, or a session that the archive has given up.
        if isinstance(request, Request):
            self._context.log.warning(
                f"{request.template} names a control session that this client does not have"
            )
        return None

    def _on_challenge_response(self, image: Image, request: ChallengeResponse) -> None:
        session = self._session_of(image, request)
        if session is None:
            return
        if not session.on_challenge_response(request.correlation_id, request.encoded_credentials):
            which = f"control session {session.session_id}"
            self._context.log.warning("a client answered a challenge that it was not sent", which)

    def _on_request(self, image: Image, request: CloseSessionRequest | Request) -> None:
        session = self._session_of(image, request)
        if session is None:
            return
        if isinstance(request, CloseSessionRequest):
            session.leave("it closed the session")
            return
        session.activate()
        if session.state is SessionState.ACTIVE:
            self._requests.handle(session, request)
        elif not session.is_done:
            self._context.log.warning(
                f"{request.template} came before its client was authenticated",
                f"control session {session.session_id}",
            )

    def _on_tokened_replay(self, image: Image, request: ReplayRequest) -> None:
        """Handle a request for a replay over a connection that is not the session's, and through which it goes back."""
        try:
            uri = ChannelUri(request.replay_channel)
        except ConfigError:
            uri = None
        if uri is None or not uri.is_response:
            self._on_request(image, request)
            return
        session = self._requests.tokens.session_of(request.replay_token, request.recording_id)
        if session is None or session.state is not SessionState.ACTIVE:
            self._context.log.warning(
                "a client asked for a replay with an unknown or expired replay token",
                f"recording_id={request.recording_id}, from {image.source_identity}",
            )
            return
        channel = uri.with_parameters(response_correlation_id=image.correlation_id)
        self._requests.handle(session, dataclasses.replace(request, replay_channel=channel))

    def _connect(self, image: Image, request: AuthConnectRequest) -> None:
        context, config = self._context, self._context.config
        text = self._reached_limit()
        if text is not None:
            # An answer would take a stream of its own, which is what is limited.
            context.log.warning(f"a client cannot connect: {text}")
            if all(session.image != image for session in self._sessions.values()):
                self._reject(image, text)
            return
        session_id = next(self._ids)
        try:
            uri = ChannelUri(request.response_channel)
            channel = uri.stripped(
                term_length=uri.get("term-length") or format_size(config.control_term_buffer_length),
                mtu=uri.get("mtu") or config.control_mtu_length,
                sparse=uri.get("sparse") or ("true" if config.control_term_buffer_sparse else "false"),
                # The answers go back through the connection of the requests.
                response_correlation_id=image.correlation_id if uri.is_response else None,
            )
            publication = context.client.request_exclusive_publication(channel, request.response_stream_id)
            try:
                counter = request_control_session(
                    context.client,
                    context.archive_id,
                    session_id,
                    request.client_info,
                    image.source_identity,
                    image.session_id,
                )
            except HeadraceError:
                # No session uses it any more, and the driver would keep it.
                publication.cancel()
                raise
        except HeadraceError as refusal:
            context.log.warning(
                "cannot answer a client that connects", f"on {request.response_channel}: {refusal}"
            )
            return
        context.log.info(
            f"control session {session_id}: a client connects: {request.client_info or image.source_identity}"
        )
        self._sessions[session_id] = ControlSession(
            session_id,
            request.correlation_id,
            image,
            publication,
            counter,
            context.clock,
            config.connect_timeout_ns,
            config.session_liveness_check_interval_ns,
            context.log,
            self._verdicts,
            self._refusal(session_id, request) or request.encoded_credentials,
        )
        self._sessions[session_id].life.begin(
            context.events,
            f"a client connects from {image.source_identity}",
            session_id,
            stream_id=request.response_stream_id,
            session_id=image.session_id,
            detail=request.client_info or request.response_channel,
        )
        context.counters.control_sessions.get_and_add(1)

    def _reached_limit(self) -> str | None:
        limit = self._context.config.max_control_sessions
        if len(self._sessions) >= limit:
            return f"max control sessions reached {limit}"
        half_open = sum(not session.is_authenticated for session in self._sessions.values())
        if half_open >= _UNAUTHENTICATED_MAX and not self._verdicts.accepts_everyone:
            return f"max control sessions that are not authenticated reached {_UNAUTHENTICATED_MAX}"
        return None

    @staticmethod
    def _refusal(session_id: int, request: AuthConnectRequest) -> Refusal | None:
        if request.version >> 16 != PROTOCOL_VERSION >> 16:
            text = f"invalid client version {request.version >> 16}.{request.version >> 8 & 255}, archive is 1.12"
            return Refusal(session_id, text)
        return None

    def _close(self, session: ControlSession) -> None:
        is_aborted = session.state is SessionState.ABORTED
        if is_aborted:
            detail = f"control session {session.session_id}: {session.end_reason}"
            self._context.log.warning("a control session ended although its client had not closed it", detail)
        else:
            self._context.log.info(
                f"control session {session.session_id}: the client left: {session.end_reason}"
            )
        self._release(session)
        if session.is_revoked:
            self._requests.end_replays_of(session)
        if is_aborted:
            self._reject(session.image, session.end_reason)
        self._context.counters.control_sessions.get_and_add(-1)

    def _reject(self, image: Image, reason: str) -> None:
        """Reject the image of a client that the archive does not serve, if it is still connected."""
        if not image.is_closed:
            try:
                image.reject(reason)
            except HeadraceError as refusal:
                # A client that left meanwhile needs to be told nothing.
                if not image.is_closed and image.end_of_stream_position is None:
                    self._context.log.warning("a request image could not be rejected", str(refusal))

    def close(self) -> None:
        """End all sessions."""
        self._verdicts.close()
        for session in self._sessions.values():
            self._release(session)
        self._sessions.clear()

    def _release(self, session: ControlSession) -> None:
        self._requests.tokens.drop(session)
        try:
            session.close()
        except HeadraceError as failure:
            self._context.log.error(
                "a control session cannot be closed",
                failure,
                f"control session {session.session_id}: {failure}",
            )
