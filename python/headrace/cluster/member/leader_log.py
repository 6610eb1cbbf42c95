"""The log of a member that leads, or is about to: its publication, and the entries that end turns. Spec. 4.2, 4.3."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._agent.tasks import Task, added
from headrace._base.exceptions import HeadraceError
from headrace.channel import ChannelUri
from headrace.cluster.common.node_archive import StreamToRecord
from headrace.cluster.errors import ClusterError
from headrace.cluster.member.destinations import destination
from headrace.cluster.member.log_joining import services_joined
from headrace.cluster.member.log_writer import LogWriter
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.control import JoinLog
from headrace.positions import signed_32

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication
    from headrace.cluster.consensus import actions as do
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.log_recording import LogRecording
    from headrace.cluster.member.services import Services

__all__ = ["LeaderLog"]

_LONG_MAX = (1 << 63) - 1
# So many turns of a leader, each with entries, may be ahead of the archive before it notes them together.
_ENDS_MAX = 4096
# After so long a follower whose name was unknown is tried again.
_RETRY_NS = 1_000_000_000


class LeaderLog:
    """The publication of the log, which continues where the log was appended.

    Args:
        context: What the module's parts share.
        services: Read the log.
        recording: Has the archive record it.
    """

    def __init__(self, context: Context, services: Services, recording: LogRecording) -> None:
        self._context = context
        self._services = services
        self._recording = recording
        self._publication: ExclusivePublication | None = None
        # Where the archive and services of this member hear it.
        self._heard = ""
        # Destinations that are not added yet; once asked for, each with a poll of the driver's answer.
        self._followers: dict[str, Callable[[], object] | None] = {}
        self._retry_ns = 0
        # All destinations, those that are not added yet too, of this version of the members.
        self._sent_to: set[str] = set()
        self._version = 0
        # Kept until the driver has answered, or the log is left.
        self._removals: list[object] = []
        # Where turns have ended that appended to the log, and which are not committed: ends of entries.
        self._ends: deque[int] = deque()
        self._last_end = 0
        self.writer: LogWriter | None = None
        """Appends to the log, while there is one."""

    # --- the way to a term -----------------------------------------------------------------------------------------

    def created(self, log_position: int) -> Task[int]:
        """Make the publication; returns its session id."""
        context, config = self._context, self._context.config
        uri, client = ChannelUri(config.log_channel), context.client
        tag = client.next_correlation_id()
        parameters: dict[str, str | int | None] = {
            "alias": "log",
            "tags": f"{tag},{client.next_correlation_id()}",
            **self._geometry(log_position),
        }
        others = context.members.spoken_to.values()
        if uri.media == "udp":
            # A cluster of one has spies alone on its log.
            parameters["ssc"] = "true" if len(config.all_members) == 1 else "false"
            if uri.get("endpoint") is None:
                parameters["control_mode"] = "manual"
                if config.log_control_enabled:
                    parameters["control"] = f"{config.member.log_endpoint.rpartition(':')[0]}:0"
                self._sent_to = {destination(config.log_channel, one.log_endpoint) for one in others}
                self._version = context.members.version
                self._followers = dict.fromkeys(self._sent_to)
        self._publication = yield from added(
            client.request_exclusive_publication(uri.with_parameters(**parameters), config.log_stream_id)
        )
        self._heard = f"aeron:udp?tags={tag}|alias=log" if uri.media == "udp" else "aeron:ipc?alias=log"
        self._retry_ns = 0
        self.connect(client.clock.monotonic_ns())
        return self._publication.session_id

    def _geometry(self, position: int) -> dict[str, str | int | None]:
        """Where the stream begins: the initial term and the lengths of the log's recording stay for ever."""
        plan = self._context.plan
        if plan is None or plan.log is None:
            return {"init_term_id": 0, "term_id": 0, "term_offset": 0} if position == 0 else {}
        log = plan.log
        return {
            "init_term_id": log.initial_term_id,
            "term_id": signed_32(log.initial_term_id + position // log.term_buffer_length),
            "term_offset": position % log.term_buffer_length,
            "term_length": log.term_buffer_length,
            "mtu": log.mtu_length,
        }

    def connect(self, now_ns: int) -> None:
        """Send to the followers that it does not send to yet; those whose names are unknown are tried each second."""
        publication = self._publication
        if publication is None:
            return
        if self._sent_to and self._version != self._context.members.version:
            self._move(publication)
        if not self._followers:
            return
        for channel, poll in list(self._followers.items()):
            try:
                if poll is not None:
                    if poll() is not None:
                        del self._followers[channel]
                elif now_ns >= self._retry_ns:
                    self._followers[channel] = publication.request_destination(channel).poll
            except HeadraceError as refusal:
                self._followers[channel] = None
                self._retry_ns = now_ns + _RETRY_NS
                self._context.log.warning(f"the log is not sent to {channel} yet", str(refusal))

    def _move(self, publication: ExclusivePublication) -> None:
        """The members have changed: send to those that are elsewhere no more, and to the new ones."""
        members, channel = self._context.members, self._context.config.log_channel
        self._version = members.version
        wanted = {destination(channel, one.log_endpoint) for one in members.spoken_to.values()}
        for gone in self._sent_to - wanted:
            if gone in self._followers and self._followers.pop(gone) is None:
                continue
            with contextlib.suppress(HeadraceError):
                self._removals.append(publication.request_destination_removal(gone))
        self._followers |= dict.fromkeys(wanted - self._sent_to)
        self._sent_to = wanted

    def joined(self, action: do.JoinLog) -> Task[int]:
        """Have the log recorded, and services join it; returns the recording id."""
        context, config, publication = self._context, self._context.config, self._publication
        assert publication is not None, "the log is created before it is joined"
        recording_id = yield from self._recording.begin(
            StreamToRecord(self._heard, config.log_stream_id, publication.session_id)
        )
        channel = ChannelUri(self._heard).with_parameters(session_id=publication.session_id)
        join = JoinLog(
            log_position=action.log_position,
            max_log_position=_LONG_MAX,
            member_id=config.member_id,
            log_session_id=publication.session_id,
            log_stream_id=config.log_stream_id,
            is_startup=action.is_startup,
            role=Role.LEADER,
            log_channel=channel if channel.startswith("aeron:ipc") else f"aeron-spy:{channel}",
        )
        yield from services_joined(context, self._services, join)
        context.leadership_term_id = action.leadership_term_id
        self._ends.clear()
        self._last_end = action.log_position
        self.writer = LogWriter(publication, action.leadership_term_id)
        return recording_id

    def term_appended(self, action: do.AppendTerm) -> Task[int]:
        """Append the first entry of the term; returns the position after it."""
        context, config = self._context, self._context.config
        assert self.writer is not None, "the log is joined before its term is appended"
        while (
            position := self.writer.new_term(
                action.log_position, context.now, config.member_id, config.time_unit, config.app_version
            )
        ) is None:
            if not self._recording.is_active:
                raise ClusterError("the archive has ended the recording of the log before its term has begun")
            yield
        return position

    # --- while the member leads ------------------------------------------------------------------------------------

    @property
    def session_id(self) -> int | None:
        """The session of the publication, if there is one."""
        return None if self._publication is None else self._publication.session_id

    @property
    def position(self) -> int | None:
        """Up to where the member has appended; ``None`` while it does not."""
        return None if self.writer is None else self.writer.publication.position

    def note_turn(self) -> None:
        """Note where a turn has ended that appended to the log."""
        end = self.position
        if end is not None and end > self._last_end:
            if len(self._ends) == _ENDS_MAX:
                self._ends.pop()
            self._ends.append(end)
            self._last_end = end

    def end_of_entry(self, committed: int) -> int | None:
        """The last position up to one that is committed at which an entry ends; once.

        Services that read up to within a message of several fragments begin it. An election that follows would have the
        module, which has not read what it appended, go on within it.
        """
        # What was appended since the last turn may be on the disk of an archive in another thread already.
        self.note_turn()
        end = None
        while self._ends and self._ends[0] <= committed:
            end = self._ends.popleft()
        return end

    def has_appended_up_to(self, position: int) -> bool:
        """Whether the log ends there, or the member does not append to it."""
        return self.writer is None or self.position == position

    def close(self) -> None:
        """Give the publication up; the archive ends the recording with it."""
        self.writer = None
        self._followers.clear()
        self._sent_to.clear()
        self._removals.clear()
        publication, self._publication = self._publication, None
        if publication is not None:
            publication.close()
