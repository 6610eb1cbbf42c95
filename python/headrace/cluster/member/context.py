"""What the parts of a consensus module share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.states import Life
from headrace.cluster.member.states import MODULE, ModuleState
from headrace.cluster.protocol.codes import Role
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.clock import Clock
    from headrace.cluster.common.cluster_time import ClusterTime
    from headrace.cluster.common.log import AgentLog
    from headrace.cluster.common.node_archive import NodeArchive
    from headrace.cluster.files.mark_file import ClusterMarkFile
    from headrace.cluster.files.node_state import NodeStateFile
    from headrace.cluster.files.recording_log import RecordingLog
    from headrace.cluster.files.recovery_plan import RecoveryPlan
    from headrace.cluster.member.applied import Applied
    from headrace.cluster.member.config import ConsensusModuleConfig
    from headrace.cluster.member.counters import ModuleCounters
    from headrace.cluster.member.member_table import MemberTable
    from headrace.event_log import EventRecorder

__all__ = ["Context"]


@dataclass(eq=False)
class Context:
    """Arguments that every part needs, and where the member stands."""

    config: ConsensusModuleConfig
    client: Client
    clock: Clock
    time: ClusterTime
    archive: NodeArchive
    counters: ModuleCounters
    log: AgentLog
    recording_log: RecordingLog
    node_state: NodeStateFile
    mark_file: ClusterMarkFile
    applied: Applied
    events: EventRecorder
    members: MemberTable

    def __post_init__(self) -> None:
        self.begin_turn()
        self.plan: RecoveryPlan | None = None
        """What the member would begin with if it started now."""
        self.election_failure = ""
        """Why the election that runs failed last; empty once the member leads or follows."""
        self.leader_member_id = NULL_VALUE
        """The member that leads; -1 if none is known."""
        self._life = Life(MODULE)
        self._life.begin(self.events, "started", self.config.member_id, detail=self.client.directory)
        self._role = Role.FOLLOWER
        self._leadership_term_id = NULL_VALUE
        self.term_id_before = NULL_VALUE
        """The term before the last entry's: clients of then know no later one."""
        self._commit_position = 0

    def begin_turn(self) -> None:
        """Look at the clocks."""
        self.now = self.time.now()
        """The cluster's time, of which an operator or a time server may set the clock: for the log."""
        self.now_ns = self.clock.monotonic_ns()
        """The time of a clock that nobody sets: for time-outs."""

    @property
    def state(self) -> ModuleState:
        """The state of the module."""
        return self._life.state

    def enter(self, state: ModuleState, reason: str) -> None:
        """Go to another state, and show it."""
        self._life.enter(state, reason)
        self.counters.state.value = self._life.state

    @property
    def role(self) -> Role:
        """What the member is to the others."""
        return self._role

    @role.setter
    def role(self, role: Role) -> None:
        self._role = role
        self.counters.role.value = role

    @property
    def leadership_term_id(self) -> int:
        """The term of the last entry of the log; -1 before the first."""
        return self._leadership_term_id

    @leadership_term_id.setter
    def leadership_term_id(self, term_id: int) -> None:
        if term_id != self._leadership_term_id:
            self.term_id_before = self._leadership_term_id
        self._leadership_term_id = term_id
        self.counters.leadership_term_id.value = term_id

    @property
    def commit_position(self) -> int:
        """Up to where the log is agreed upon."""
        return self._commit_position

    @commit_position.setter
    def commit_position(self, position: int) -> None:
        self._commit_position = position
        self.counters.commit_position.value = position
