"""Carries out what an election decides: makes, replays, records, joins, leaves the log. Specification 4.2 to 4.7."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from headrace._exceptions import HeadraceError
from headrace.archive.client import requests
from headrace.channel import ChannelUri
from headrace.cluster.errors import ClusterError, ClusterTerminalError
from headrace.cluster.ground.courses import Course, added
from headrace.cluster.log.entries import Entry, EntryType
from headrace.cluster.member.election import (
    AppendTerm,
    CreateLog,
    JoinLog,
    LeaveTerm,
    ReplayLog,
    StandForTerm,
)
from headrace.cluster.member.log_reader import LogReader, is_snapshot
from headrace.cluster.member.log_writer import LogWriter
from headrace.cluster.member.planning import find_plan, note_log
from headrace.cluster.member.states import ModuleState, Toggle
from headrace.cluster.node_state import CandidateTerm
from headrace.cluster.protocol import control
from headrace.cluster.protocol.codes import ClusterAction, Role
from headrace.positions import NULL_VALUE, signed_32

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication
    from headrace.cluster.ground.node_archive import RecordedStream
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.services import Services
    from headrace.cluster.member.snapshotting import Snapshotting

__all__ = ["Leadership"]

_LONG_MAX = (1 << 63) - 1
# So long a replay that brings nothing is taken for one that waits for services.
_PATIENCE_S = 1.0
# So many turns of a leader, each with entries, may be ahead of the archive before it notes them together.
_ENDS_MAX = 4096


class Leadership:
    """The log of a member that leads, or is about to."""

    def __init__(self, context: Context, services: Services, snapshotting: Snapshotting) -> None:
        self._context = context
        self._services = services
        self._snapshotting = snapshotting
        self._publication: ExclusivePublication | None = None
        self._recorded: RecordedStream | None = None
        self._heard = ""
        # Where turns have ended that appended to the log, which the archive does not have up to there: ends of entries.
        self._ends: deque[int] = deque()
        self._last_end = 0
        self.writer: LogWriter | None = None
        """Appends to the log, while there is one."""

    # --- what an election has done, one course each ----------------------------------------------------------------

    def stood(self, action: StandForTerm) -> None:
        """Note the term in the node-state file; it is on the medium, as the sync level says, on return.

        A term that the member stands for again, since it could not begin it, is there.
        """
        if action.candidate_term_id == self._context.node_state.candidate_term.term_id:
            return
        now_ms = self._context.client.clock.epoch_ms()
        self._context.node_state.vote(CandidateTerm(action.candidate_term_id, now_ms, action.append_position))

    def created(self, action: CreateLog) -> Course[None]:
        """Make the publication of the log, which goes on where it was appended."""
        client = self._context.client
        self._context.role = Role.LEADER
        uri = ChannelUri(self._context.config.log_channel)
        tag = client.next_correlation_id()
        parameters: dict[str, str | int | None] = {
            "alias": "log",
            "tags": f"{tag},{client.next_correlation_id()}",
            **self._geometry(action.append_position),
        }
        if uri.media == "udp":
            # A cluster of one has spies alone on its log.
            parameters["ssc"] = "true"
            if uri.get("endpoint") is None:
                parameters["control_mode"] = "manual"
                if self._context.config.log_control_enabled:
                    host = self._context.config.member.log_endpoint.rpartition(":")[0]
                    parameters["control"] = f"{host}:0"
        stream_id = self._context.config.log_stream_id
        self._publication = yield from added(
            client.request_exclusive_publication(uri.with_parameters(**parameters), stream_id)
        )
        self._heard = f"aeron:udp?tags={tag}|alias=log" if uri.media == "udp" else "aeron:ipc?alias=log"

    def _geometry(self, position: int) -> dict[str, str | int | None]:
        """Where the stream begins: what the log's recording had first stays for ever."""
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

    def replayed(self, action: ReplayLog) -> Course[int]:
        """Replay the member's own log; gives the position up to which module and services have applied it."""
        context, config = self._context, self._context.config
        plan = context.plan
        if plan is None or plan.log is None:
            raise ClusterError(f"no recording has the log from {action.log_position} on")
        begin, end = action.log_position, action.append_position
        replay = yield from context.archive.replayed(
            plan.log.recording_id,
            config.replay_channel,
            config.replay_stream_id,
            position=begin,
            length=end - begin,
        )
        try:
            if replay.image.join_position != begin:
                raise ClusterError(
                    f"the replay of the log begins at {replay.image.join_position}, and not at {begin}"
                )
            channel = ChannelUri(config.replay_channel).with_parameters(session_id=replay.image.session_id)
            join = control.JoinLog(
                log_position=begin,
                max_log_position=end,
                member_id=config.member_id,
                log_session_id=replay.image.session_id,
                log_stream_id=config.replay_stream_id,
                is_startup=True,
                role=Role.FOLLOWER,
                log_channel=channel,
            )
            yield from self._joined(join)
            yield from self._read(LogReader(context, replay.image), end)
        finally:
            replay.subscription.close()
        yield from context.archive.stopped_replay(replay)
        return end

    def _read(self, reader: LogReader, end: int) -> Course[None]:
        context, clock = self._context, self._context.client.clock
        patience, goes_by_frames = clock.deadline(_PATIENCE_S), False
        while reader.position < end:
            count = reader.poll(end)
            if count:
                patience = clock.deadline(_PATIENCE_S)
            # The driver's window may be shorter than an entry: its end does not come while services wait for it.
            goes_by_frames = goes_by_frames or patience.is_over
            read_position = reader.position if goes_by_frames else reader.entry_position
            context.commit_position = max(context.commit_position, read_position)
            found = reader.take_action()
            if found is not None:
                action, position = found
                yield from self._acted(action.action, position, is_whole=is_snapshot(action))
            elif reader.awaits_services:
                for _ in self._services.read_up_to(reader.position):
                    self._check_goes_on(reader, end)
                    yield
                reader.services_are_there()
            elif not count:
                self._check_goes_on(reader, end)
                yield
        # A kill may leave the begin of a message at the end, of which nothing else follows.
        context.commit_position = max(context.commit_position, end)

    def _check_goes_on(self, reader: LogReader, end: int) -> None:
        if not reader.is_closed:
            return
        text = f"the replay of the log ends at {reader.position}, and not at {end}"
        if self._context.commit_position > reader.entry_position:
            raise ClusterTerminalError(
                f"{text}, within an entry of which services have a part: start the member again, which reads it whole"
            )
        raise ClusterError(text)

    def _acted(self, action: ClusterAction, position: int, *, is_whole: bool) -> Course[None]:
        """An action in the log that is replayed."""
        context = self._context
        if action is ClusterAction.SUSPEND:
            context.enter(ModuleState.SUSPENDED, "the log says so")
        elif action is ClusterAction.RESUME:
            context.enter(ModuleState.ACTIVE, "the log says so")
        elif is_whole:
            before = context.state
            context.enter(ModuleState.SNAPSHOT, "the log says so")
            yield from self._snapshotting.taken(position)
            context.enter(before, "the snapshot is done")

    def joined(self, action: JoinLog) -> Course[None]:
        """Have the log recorded, and services join it."""
        context, config = self._context, self._context.config
        publication = self._publication
        assert publication is not None, "the log is created before it is joined"
        plan = context.plan
        known = None if plan is None or plan.log is None else plan.log.recording_id
        self._recorded = yield from context.archive.recorded(publication, self._heard, known)
        if known is None:
            # Before it is in the recording log: a kill in between must leave no term of a log that looks like another.
            yield from note_log(context, self._recorded.recording_id)
        context.recording_log.ensure_coherent(
            self._recorded.recording_id,
            None,
            Entry(
                recording_id=self._recorded.recording_id,
                leadership_term_id=action.leadership_term_id,
                term_base_log_position=action.log_position,
                log_position=NULL_VALUE,
                timestamp=context.now,
                type=EntryType.TERM,
            ),
        )
        channel = ChannelUri(self._heard).with_parameters(session_id=publication.session_id)
        join = control.JoinLog(
            log_position=action.log_position,
            max_log_position=_LONG_MAX,
            member_id=config.member_id,
            log_session_id=publication.session_id,
            log_stream_id=config.log_stream_id,
            is_startup=action.is_startup,
            role=Role.LEADER,
            log_channel=channel if channel.startswith("aeron:ipc") else f"aeron-spy:{channel}",
        )
        yield from self._joined(join)
        context.leadership_term_id = action.leadership_term_id
        self._ends.clear()
        self._last_end = action.log_position
        self.writer = LogWriter(publication, action.leadership_term_id)

    def _joined(self, join: control.JoinLog) -> Course[None]:
        if self._services.count:
            self._services.send(join)
        acks = yield from self._services.acked(join.log_position)
        del acks

    def term_appended(self, action: AppendTerm) -> Course[None]:
        """The term begins with its first entry."""
        context, config = self._context, self._context.config
        assert self.writer is not None, "the log is joined before its term is appended"
        while (
            self.writer.new_term(
                action.log_position, context.now, config.member_id, config.time_unit, config.app_version
            )
            is None
        ):
            yield

    def left(self, action: LeaveTerm) -> Course[int]:
        """Give up the log, and look how far it was recorded; gives that position. What is undone is the caller's."""
        context = self._context
        context.role = Role.FOLLOWER
        context.counters.toggle.value = Toggle.INACTIVE
        self.writer = None
        publication, self._publication = self._publication, None
        if publication is not None:
            publication.close()
        recorded, self._recorded = self._recorded, None
        last = context.recording_log.last_term
        if last is None:
            return action.log_position
        if recorded is not None:
            try:
                yield from context.archive.asked(
                    requests.stop_recording_subscription(recorded.subscription_id)
                )
            except HeadraceError as refusal:
                context.log.info(f"the recording of the log had ended: {refusal}")
            while recorded.is_active(context.client):
                yield
        position = yield from self.stopped(last.recording_id)
        yield from find_plan(context)
        context.commit_position = action.log_position
        return max(position, action.log_position)

    def stopped(self, recording_id: int) -> Course[int]:
        """Where the recording of the log ends, once it has ended."""
        archive = self._context.archive
        while (position := (yield from archive.asked(requests.stop_position(recording_id)))) is None:
            yield
        return position

    # --- while it leads --------------------------------------------------------------------------------------------

    @property
    def append_position(self) -> int:
        """Up to where the archive has the log."""
        return 0 if self._recorded is None else self._recorded.position(self._context.client)

    def recorded_entries(self) -> int:
        """Up to where the archive has the log, back to the end of an entry; looks what the turn has appended.

        A commit position within a message of several fragments would have services begin it. An election that joins
        the log there would lose it, or the module, which reads on from there, would not know that the log has it.
        """
        end = NULL_VALUE if self.writer is None else self.writer.publication.position
        if end is not None and end > self._last_end:
            if len(self._ends) == _ENDS_MAX:
                self._ends.pop()
            self._ends.append(end)
            self._last_end = end
        recorded, position = self.append_position, NULL_VALUE
        while self._ends and self._ends[0] <= recorded:
            position = self._ends.popleft()
        return position

    def has_appended_up_to(self, position: int) -> bool:
        """Whether the log ends there, or the member does not append to it."""
        return self.writer is None or self.writer.publication.position == position

    @property
    def is_recorded(self) -> bool:
        """Whether the archive still records the log."""
        return self._recorded is not None and self._recorded.is_active(self._context.client)

    @property
    def recording_id(self) -> int:
        """The recording of the log; -1 before there is one."""
        return NULL_VALUE if self._recorded is None else self._recorded.recording_id

    @property
    def log_session_id(self) -> int:
        """The session of the log's publication."""
        return NULL_VALUE if self._publication is None else self._publication.session_id

    def close(self) -> None:
        """Give up the publication; the archive ends the recording with it."""
        if self._publication is not None:
            self._publication.close()
