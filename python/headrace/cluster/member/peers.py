"""The other members: where this one hears them, and a stream to each. Cluster specification 1.2, 1.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import HeadraceError
from headrace._base.results import OfferResult
from headrace.channel import ChannelUri
from headrace.cluster.member.member_lists import MemberLists
from headrace.cluster.protocol.consensus import (
    BackupQuery,
    CommitPosition,
    HeartbeatRequest,
    MemberList,
    NewLeadershipTerm,
    StandbySnapshot,
)
from headrace.cluster.protocol.messages import MessageError, decode, encode
from headrace.cluster.protocol.session import ChallengeResponse

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication, Header, Pending, Subscription
    from headrace.cluster.common.members import Member
    from headrace.cluster.member.context import Context

__all__ = ["Peers"]

# What is not sent by members, and what members say of their lists.
_OF_OTHERS = (BackupQuery, HeartbeatRequest, StandbySnapshot, ChallengeResponse, MemberList)

_FRAGMENT_LIMIT = 10
_ATTEMPTS = 3
# After so long a member that could not be addressed, as its name was unknown, is tried again.
_RETRY_NS = 1_000_000_000


class Peers:
    """The consensus stream of this member, and those to the others.

    Args:
        context: What the module's parts share.
        on_message: Called with each message and its header.
    """

    def __init__(self, context: Context, on_message: Callable[[Any, Header], object]) -> None:
        self._context = context
        self._on_message = on_message
        config = context.config
        self._count = len(config.all_members) - 1
        self._version = context.members.version
        self._members = context.members.spoken_to
        self._publications: dict[int, ExclusivePublication] = {}
        self._pending: dict[int, Pending[ExclusivePublication]] = {}
        self._retry_ns: dict[int, int] = {}
        # The last message, which may go to each of them, and its bytes.
        self._encoded: tuple[Any, bytes] = (None, b"")
        # On which session each was heard last.
        self._sessions: dict[int, int] = {}
        uri = ChannelUri(config.consensus_channel)
        endpoint = uri.get("endpoint") or config.member.consensus_endpoint
        self.subscription: Subscription | None = None
        """Where members and backups are heard. A member that nobody could address, at a port that is free, has none."""
        if self._count or not endpoint.endswith(":0"):
            self.subscription = context.client.add_subscription(
                uri.with_parameters(endpoint=endpoint), config.consensus_stream_id
            )
        self.lists = MemberLists(context, self)
        """What each member has listed."""

    def __len__(self) -> int:
        return self._count

    def poll(self) -> int:
        """Take what has come."""
        if self.subscription is None:
            return 0
        return self.subscription.poll(self._take, _FRAGMENT_LIMIT)

    def _take(self, data: bytes, header: Header) -> None:
        try:
            message = decode(data)
        except MessageError as wrong:
            self._context.log.warning("a message on the consensus stream is not one of a cluster", str(wrong))
            return
        if isinstance(message, NewLeadershipTerm | CommitPosition):
            self._sessions[message.leader_member_id] = header.session_id
        self.lists.on_message(message, header)
        if not isinstance(message, _OF_OTHERS) and not self.lists.counts(header):
            return
        if message is not None:
            self._on_message(message, header)

    @property
    def own_address(self) -> str | None:
        """Where this member is heard, as ``ip:port``."""
        addresses = [] if self.subscription is None else self.subscription.local_socket_addresses
        return addresses[0] if addresses else None

    def leader_address(self, member_id: int) -> str | None:
        """Where another member that leads is heard, as ``ip:port``: by the address that it sends from, not by name."""
        member, session_id = self._members.get(member_id), self._sessions.get(member_id)
        if member is None or session_id is None or self.subscription is None:
            return None
        image = self.subscription.image_by_session_id(session_id)
        if image is None:
            return None
        port = member.consensus_endpoint.rpartition(":")[2]
        return f"{image.source_identity.rpartition(':')[0]}:{port}"

    def archive_endpoint(self, member_id: int) -> str | None:
        """Where the archive of another member takes requests."""
        member = self._members.get(member_id)
        return None if member is None else member.archive_endpoint

    def connect(self, now_ns: int) -> None:
        """Open the streams that are missing; the driver's answers are taken in later calls. Tell the own list there."""
        if self._version != self._context.members.version:
            self._move()
        for member_id, member in self._members.items():
            if member_id in self._pending:
                self._take_answer(member_id, now_ns)
            elif member_id not in self._publications and now_ns >= self._retry_ns.get(member_id, now_ns):
                self._request(member_id, member, now_ns)
        self.lists.tell(now_ns)

    def _move(self) -> None:
        """The members have changed: send to those that are elsewhere no more, and to the new ones."""
        self._version = self._context.members.version
        before, self._members = self._members, self._context.members.spoken_to
        for member_id in [one for one, member in before.items() if self._members.get(one) != member]:
            pending = self._pending.pop(member_id, None)
            if pending is not None:
                pending.cancel()
            publication = self._publications.pop(member_id, None)
            if publication is not None:
                publication.close()

    def _request(self, member_id: int, member: Member, now_ns: int) -> None:
        config = self._context.config
        parameters = {"endpoint": member.consensus_endpoint}
        if config.consensus_control_enabled:
            parameters["control"] = f"{config.member.consensus_endpoint.rpartition(':')[0]}:0"
        channel = ChannelUri(config.consensus_channel).with_parameters(**parameters)
        try:
            self._pending[member_id] = self._context.client.request_exclusive_publication(
                channel, config.consensus_stream_id
            )
        except HeadraceError as failure:
            self._failed(member_id, failure, now_ns)

    def _take_answer(self, member_id: int, now_ns: int) -> None:
        try:
            publication = self._pending[member_id].poll()
        except HeadraceError as failure:
            del self._pending[member_id]
            self._failed(member_id, failure, now_ns)
            return
        if publication is not None:
            del self._pending[member_id]
            self._publications[member_id] = publication

    def _failed(self, member_id: int, failure: HeadraceError, now_ns: int) -> None:
        self._retry_ns[member_id] = now_ns + _RETRY_NS
        self._context.log.warning(
            f"failed to add consensus publication for member: {member_id}: the module tries again each second",
            str(failure),
        )

    def send(self, member_id: int, message: Any) -> bool:
        """Send a message; returns whether the stream took it. The sender's own timers repeat a lost one."""
        publication = self._publications.get(member_id)
        if publication is None:
            return False
        if message is not self._encoded[0]:
            self._encoded = message, encode(message)
        data = self._encoded[1]
        for _ in range(_ATTEMPTS):
            result = publication.offer(data)
            if result > 0:
                return True
            if result in (OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED):
                del self._publications[member_id]
                publication.close()
                return False
        return False

    def send_all(self, message: Any) -> None:
        """Send a message to all."""
        for member_id in self._members:
            self.send(member_id, message)

    def close(self) -> None:
        """Close all streams."""
        for pending in self._pending.values():
            pending.cancel()
        for publication in self._publications.values():
            publication.close()
        self._pending.clear()
        self._publications.clear()
        if self.subscription is not None:
            self.subscription.close()
