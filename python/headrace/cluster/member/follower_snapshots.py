"""Snapshots that do not stop the cluster: one follower takes them, and the other members copy them.

The log asks one member alone. Its services pause; its archive goes on recording the log, so that the others commit, and
the leader answers. When it is done, it says so, and all others copy the recordings from its archive, as those of a
standby (:mod:`headrace.cluster.member.standby_snapshots`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.errors import ClusterError
from headrace.cluster.protocol.codes import ClusterAction
from headrace.cluster.protocol.consensus import FollowerSnapshot, SnapshotRecording, StandbySnapshotRecording
from headrace.cluster.protocol.log import flags_for
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from headrace._agent.tasks import Task
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.log_writer import LogWriter
    from headrace.cluster.member.peers import Peers
    from headrace.cluster.member.roll_call import RollCall
    from headrace.cluster.member.snapshots import Snapshots
    from headrace.cluster.member.standby_snapshots import StandbySnapshots

__all__ = ["FollowerSnapshots"]

# A message may be lost; a member that has the snapshot, or has noted it, ignores the others.
_ANNOUNCEMENTS = 5
_INTERVAL_NS = 1_000_000_000
# Of the follower, and of the copy after it.
_TAKEN_WITHIN_S = 600.0


class FollowerSnapshots:
    """Has a follower take a snapshot, as a leader; announces an own one, and has others' copied.

    Args:
        context: What the module's parts share.
        peers: The other members.
        snapshots: Takes those of this member.
        copies: Notes and copies those of others.
        roll_call: Finds the members that can take one alone.
        active_ids: Who was heard lately.
    """

    def __init__(
        self,
        context: Context,
        peers: Peers,
        snapshots: Snapshots,
        copies: StandbySnapshots,
        roll_call: RollCall,
        active_ids: Callable[[], Collection[int]],
    ) -> None:
        self._context = context
        self._peers = peers
        self._snapshots = snapshots
        self._copies = copies
        self._roll_call = roll_call
        self._active_ids = active_ids
        self._announcement: FollowerSnapshot | None = None
        self._left, self._next_ns = 0, 0

    # --- as a leader -----------------------------------------------------------------------------------------------

    def taken(self, writer: Callable[[], LogWriter | None], member_id: int) -> Task[str]:
        """Goes on once a follower has taken a snapshot that this member has copied; returns what to tell an operator.

        Args:
            writer: Appends to the log, while this member leads.
            member_id: Which follower; -1 chooses one.

        Raises:
            ClusterError: No follower can, or none has in time.
        """
        context = self._context
        chosen = yield from self._chosen(member_id)
        position: int | None = None
        while position is None:
            log = writer()
            if log is None:
                raise ClusterError("the member leads no more")
            position = log.action(ClusterAction.SNAPSHOT, context.now, flags=flags_for(chosen))
            if position is None:
                yield
        context.log.info(f"member {chosen} is to take a snapshot at log_position={position} for all members")
        deadline = context.clock.deadline(_TAKEN_WITHIN_S)
        while self._own_position < position:
            if deadline.is_over:
                raise ClusterError(
                    f"the snapshot of member {chosen} at log_position={position} has not been copied within "
                    f"{_TAKEN_WITHIN_S:.0f} s: its error log, and that of this member, say more"
                )
            yield
        return (
            f"member {chosen} has taken a snapshot at log_position={position}, which this member has copied"
        )

    def _chosen(self, member_id: int) -> Task[int]:
        """The follower that takes it: the last in the order in which equal members would lead."""
        context = self._context
        if context.config.replication_channel is None:
            raise ClusterError("a cluster of one has no followers")
        active = self._active_ids()
        wanted = set(active) if member_id == NULL_VALUE else {member_id} & set(active)
        present = yield from self._roll_call.answered(wanted)
        able = wanted & present
        if not able:
            which = "no follower" if member_id == NULL_VALUE else f"no follower with member_id={member_id}"
            raise ClusterError(
                f"{which} can take a snapshot alone: it must follow now, and be a member of Headrace"
            )
        return max(able)

    @property
    def _own_position(self) -> int:
        """Where the latest snapshot is that a start of this member could use."""
        log = self._context.recording_log
        return max((one.log_position for one in log if one.is_snapshot), default=NULL_VALUE)

    # --- as the one that has taken it ------------------------------------------------------------------------------

    def do_work(self) -> int:
        """Announce an own snapshot, and go on copying; on slow ticks, between elections."""
        position, self._snapshots.to_announce = self._snapshots.to_announce, NULL_VALUE
        if position != NULL_VALUE:
            self._begin(position)
        announcement = self._announcement
        if announcement is not None and self._context.now_ns >= self._next_ns:
            self._next_ns = self._context.now_ns + _INTERVAL_NS
            self._left -= 1
            if not self._left:
                self._announcement = None
            self._peers.send_all(announcement)
        return self._copies.do_work()

    def _begin(self, position: int) -> None:
        context = self._context
        taken = [one for one in context.recording_log if one.is_snapshot and one.log_position == position]
        # Of two at one position, as of one that was taken again, the later.
        latest = {one.service_id: one for one in taken}
        self._left, self._next_ns = _ANNOUNCEMENTS, 0
        self._announcement = FollowerSnapshot(
            member_id=context.config.member_id,
            snapshots=tuple(
                SnapshotRecording(
                    recording_id=one.recording_id,
                    leadership_term_id=one.leadership_term_id,
                    term_base_log_position=one.term_base_log_position,
                    log_position=one.log_position,
                    timestamp=one.timestamp,
                    service_id=one.service_id,
                )
                for one in latest.values()
            ),
        )

    # --- as the others ---------------------------------------------------------------------------------------------

    def on_message(self, message: FollowerSnapshot) -> None:
        """Another member has taken a snapshot: copy it, unless this one has it."""
        endpoint = self._peers.archive_endpoint(message.member_id)
        if endpoint is None or not message.snapshots:
            return
        if message.snapshots[0].log_position > self._own_position:
            self._copies.notice(
                tuple(
                    StandbySnapshotRecording(
                        recording_id=one.recording_id,
                        leadership_term_id=one.leadership_term_id,
                        term_base_log_position=one.term_base_log_position,
                        log_position=one.log_position,
                        timestamp=one.timestamp,
                        service_id=one.service_id,
                        archive_endpoint=endpoint,
                    )
                    for one in message.snapshots
                ),
                is_of_member=True,
            )
