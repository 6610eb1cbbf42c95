"""Takes snapshots: services' and the module's own, all at one position of the log. Cluster specification 6.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace._base.exceptions import ArchiveError
from headrace.archive.client import calls
from headrace.cluster.common.snapshots import SnapshotPoint, other_snapshot, recorded
from headrace.cluster.errors import ClusterError, ClusterTerminalError
from headrace.cluster.files.recording_log_entries import Entry, EntryType
from headrace.cluster.member.snapshot_format import SnapshotLoader, snapshot_messages
from headrace.cluster.member.start_plan import find_plan
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.services import Services
    from headrace.cluster.protocol.control import ServiceAck

__all__ = ["Snapshots"]

_FRAGMENT_LIMIT = 50


class Snapshots:
    """Takes snapshots, and loads the module's own."""

    def __init__(self, context: Context, services: Services) -> None:
        self._context = context
        self._services = services
        self.to_announce = NULL_VALUE
        """Where this member alone has taken a snapshot, which the others are to copy; -1 if there is none."""

    def taken(self, log_position: int, *, is_alone: bool = False) -> Task[bool]:
        """Goes on once services and module have a snapshot at a position; whether all have.

        It is noted for all or for none. What goes wrong is logged, and the member goes on without it.

        Args:
            log_position: The position.
            is_alone: Whether no other member takes it.
        """
        context = self._context
        begin_ns = context.client.clock.monotonic_ns()
        acks = yield from self._services.acked(log_position)
        failed = self._services.failed(acks)
        if failed:
            ids = ", ".join(map(str, failed))
            context.log.error(f"no snapshot at log position {log_position}: it failed in service_id={ids}")
            return False
        if context.recording_log.term(context.leadership_term_id) is None:
            # Of a replay alone: a kill has cut the file before the entry of a term that the log has. Nothing is wrong.
            context.log.info(
                f"the snapshot at log position {log_position} is not noted: the recording log has no leadership term "
                f"{context.leadership_term_id}, which the log has; starts read the log from before it"
            )
            return False
        try:
            recording_id = yield from self._recorded(log_position)
            self._note(log_position, recording_id, acks)
        except Exception as failure:
            context.log.error(f"no snapshot at log position {log_position}: {failure}", failure)
            return False
        yield from find_plan(context)
        duration_ns = context.client.clock.monotonic_ns() - begin_ns
        context.counters.note_snapshot(duration_ns, context.config.snapshot_threshold_ns)
        for session in context.applied.sessions:
            session.activity_ns = context.now_ns
        if is_alone:
            self.to_announce = log_position
        return True

    def _point(self, log_position: int) -> SnapshotPoint:
        config = self._context.config
        return SnapshotPoint(
            log_position, self._context.leadership_term_id, config.time_unit, config.app_version
        )

    def _recorded(self, log_position: int) -> Task[int]:
        """The recording with the module's own part, which is whole."""
        context, config, applied = self._context, self._context.config, self._context.applied
        point = self._point(log_position)
        return recorded(
            context.client,
            context.archive,
            config.snapshot_channel,
            config.snapshot_stream_id,
            # All in one turn: services may send messages while it is written.
            lambda _: list(snapshot_messages(point, applied.sessions, applied.timers, applied.pending)),
        )

    def _note(self, log_position: int, recording_id: int, acks: tuple[ServiceAck, ...]) -> None:
        """Add the entries of the recording log, the module's last: without it a start uses none of them."""
        log = self._context.recording_log
        term_id = self._context.leadership_term_id
        term = log.term(term_id)
        assert term is not None, "looked at before the snapshot was taken"
        timestamp = acks[0].timestamp if acks else self._context.now
        recordings = [(ack.relevant_id, ack.service_id, ack.timestamp) for ack in reversed(acks)]
        for recording, service_id, taken in [*recordings, (recording_id, NULL_VALUE, timestamp)]:
            log.append_snapshot(
                Entry(
                    recording_id=recording,
                    leadership_term_id=term_id,
                    term_base_log_position=term.term_base_log_position,
                    log_position=log_position,
                    timestamp=taken,
                    service_id=service_id,
                    type=EntryType.SNAPSHOT,
                )
            )
        log.force()

    def validated(self) -> Task[None]:
        """Invalidates the snapshots of which the archive lacks a recording, so that no start begins with one.

        With all their parts: a start with some of them would give a service the state of another one.
        """
        context = self._context
        log = context.recording_log
        snapshots = [entry for entry in log if entry.is_snapshot]
        lost = {}
        for entry in snapshots:
            try:
                recording = yield from context.archive.asked(calls.find_recording(entry.recording_id))
            except ArchiveError as failure:
                context.log.error(f"the recording log is not validated: {failure}", failure)
                return
            if recording is None:
                lost[entry.leadership_term_id, entry.log_position] = entry
        # The module's entry goes first: a kill in between leaves services' entries, which no start uses without it.
        for entry in reversed(snapshots):
            missing = lost.get((entry.leadership_term_id, entry.log_position))
            if missing is None:
                continue
            log.invalidate(entry)
            log.force()
            context.log.warning(
                "a snapshot was invalidated: the archive does not have its recording",
                f"log_position={entry.log_position} service_id={entry.service_id} "
                f"recording_id={entry.recording_id} missing={missing.recording_id}",
            )
        yield from find_plan(context)

    def loaded(self, entry: Entry) -> Task[None]:
        """Goes on once the module's part of a snapshot is loaded.

        Raises:
            ClusterError: It is damaged, of another place in the log, version or unit of time, or not in the archive.
        """
        try:
            yield from self._loaded(entry)
        except ClusterTerminalError:
            # The archive is gone, or the settings are others: another snapshot does not help.
            raise
        except (ClusterError, ArchiveError) as wrong:
            raise ClusterError(
                f"the snapshot of the consensus module at log_position={entry.log_position} cannot be loaded: {wrong}; "
                f"{other_snapshot(wrong)}"
            ) from wrong

    def _loaded(self, entry: Entry) -> Task[None]:
        context, config = self._context, self._context.config
        applied = context.applied
        context.leadership_term_id = entry.leadership_term_id
        point = self._point(entry.log_position)
        loader = SnapshotLoader(point, applied.sessions, applied.timers, applied.pending)
        replay = yield from context.archive.replayed(
            entry.recording_id, config.replay_channel, config.replay_stream_id
        )
        try:
            while not loader.is_done:
                if not replay.image.poll(lambda data, _: loader.take(data), _FRAGMENT_LIMIT):
                    if replay.image.is_closed:
                        raise ClusterError(
                            f"recording {entry.recording_id} with the snapshot of the consensus module ends too early"
                        )
                    yield
        finally:
            replay.subscription.close()
        yield from context.archive.stopped_replay(replay)
