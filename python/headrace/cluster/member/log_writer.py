"""Appends the entries of the log, at the leader. Cluster specification 4.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._base.results import OfferResult
from headrace.client import Sequencer
from headrace.cluster.errors import ClusterError
from headrace.cluster.protocol.codes import CloseReason, ClusterAction, ClusterTimeUnit
from headrace.cluster.protocol.header import HEADER_LENGTH, pack_header, with_header
from headrace.cluster.protocol.log import (
    ClusterActionRequest,
    MemberReplacement,
    NewLeadershipTermEvent,
    SessionCloseEvent,
    SessionOpenEvent,
    TimerEvent,
)
from headrace.cluster.protocol.messages import encode

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication
    from headrace.cluster.member.sessions import Session

__all__ = ["EntryTooLongError", "LogWriter"]

_ATTEMPTS = 3
_ENDED = (OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED)


class EntryTooLongError(Exception):
    """An entry that the log never takes: its length, and the greatest one."""


class LogWriter:
    """The leader's publication of the log. Each append gives the position after the entry, or ``None`` without room."""

    def __init__(self, publication: ExclusivePublication, leadership_term_id: int) -> None:
        self.publication = publication
        self._term_id = leadership_term_id

    @property
    def position(self) -> int:
        """After the last entry."""
        position = self.publication.position
        if position is None:
            raise ClusterError("the publication of the log is closed")
        return position

    @property
    def max_message_length(self) -> int:
        """Of what a client sends, without the header."""
        return self.publication.max_message_length - HEADER_LENGTH

    def sequencer(self) -> Sequencer:
        """What puts the messages of clients into the log."""
        return Sequencer(self.publication, self._term_id)

    def message(self, session_id: int, timestamp: int, payload: bytes | memoryview) -> int | None:
        """A message of a client or of a service."""
        return self._offered(with_header(pack_header(self._term_id, session_id, timestamp), payload))

    def session_open(self, session: Session, timestamp: int) -> int | None:
        """A session is open.

        Raises:
            EntryTooLongError: The entry is longer than the log takes.
        """
        event = SessionOpenEvent(
            leadership_term_id=self._term_id,
            correlation_id=session.correlation_id,
            cluster_session_id=session.session_id,
            timestamp=timestamp,
            response_stream_id=session.response_stream_id,
            response_channel=session.response_channel,
            encoded_principal=session.principal,
        )
        data = encode(event)
        if len(data) > self.publication.max_message_length:
            raise EntryTooLongError(len(data), self.publication.max_message_length)
        return self._offered(data)

    def session_close(self, session_id: int, timestamp: int, reason: CloseReason) -> int | None:
        """A session is closed."""
        event = SessionCloseEvent(
            leadership_term_id=self._term_id,
            cluster_session_id=session_id,
            timestamp=timestamp,
            close_reason=reason,
        )
        return self._offered(encode(event))

    def timer(self, correlation_id: int, timestamp: int) -> int | None:
        """A timer fires."""
        event = TimerEvent(
            leadership_term_id=self._term_id, correlation_id=correlation_id, timestamp=timestamp
        )
        return self._offered(encode(event))

    def action(self, action: ClusterAction, timestamp: int, flags: int = 0) -> int | None:
        """Suspend, resume or take a snapshot here."""
        return self._claimed(
            lambda position: encode(
                ClusterActionRequest(
                    leadership_term_id=self._term_id,
                    log_position=position,
                    timestamp=timestamp,
                    action=action,
                    flags=flags,
                )
            )
        )

    def replacement(self, member_id: int, timestamp: int, members: str) -> int | None:
        """A member is elsewhere from here on."""
        entry = MemberReplacement(
            leadership_term_id=self._term_id, timestamp=timestamp, member_id=member_id, members=members
        )
        return self._offered(encode(entry))

    def new_term(
        self, base_position: int, timestamp: int, member_id: int, time_unit: ClusterTimeUnit, app_version: int
    ) -> int | None:
        """The term begins."""
        return self._claimed(
            lambda position: encode(
                NewLeadershipTermEvent(
                    leadership_term_id=self._term_id,
                    log_position=position,
                    timestamp=timestamp,
                    term_base_log_position=base_position,
                    leader_member_id=member_id,
                    log_session_id=self.publication.session_id,
                    time_unit=time_unit,
                    app_version=app_version,
                )
            )
        )

    def _offered(self, data: bytes | tuple[bytes | memoryview, ...]) -> int | None:
        for _ in range(_ATTEMPTS):
            result = self.publication.offer(data)
            if result > 0:
                return int(result)
            self._check(result)
        return None

    def _claimed(self, entry: Callable[[int], bytes]) -> int | None:
        """An entry that has the position after itself, for which it must be claimed first."""
        length = len(entry(0))
        for _ in range(_ATTEMPTS):
            claim = self.publication.try_claim(length)
            if not isinstance(claim, OfferResult):
                with claim as view:
                    view[:] = entry(claim.position)
                return claim.position
            self._check(claim)
        return None

    @staticmethod
    def _check(result: int) -> None:
        if result in _ENDED:
            raise ClusterError(f"the log does not accept more entries: {OfferResult(result).name}")
