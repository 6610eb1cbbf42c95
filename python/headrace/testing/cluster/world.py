"""A cluster of several members in a simulated world, whose rules are looked at after each step."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace._base.closing import Closing
from headrace.cluster.member.states import ModuleState, Toggle
from headrace.testing.cluster.client import SimulatedClient
from headrace.testing.cluster.faults import ClusterFaults
from headrace.testing.cluster.member import ClusterMember
from headrace.testing.cluster.rules import ClusterRules
from headrace.testing.world import Link, World

if TYPE_CHECKING:
    from types import TracebackType

    from headrace.cluster import ClusteredService
    from headrace.testing.world import Node

__all__ = ["ClusterWorld"]

_NS_PER_S = 1_000_000_000
# Of the log, of snapshots, and of segment files: many of each are filled.
_TERM_LENGTH = 65_536
_DISK_SPACE = 1 << 30
# How long until something that has ended is started again: as soon as a supervisor can, or after a while.
_RESTARTS_S = (0.001, 0.05, 0.5, 3.0)
_NOTE_LENGTH_MAX = 400
# A note that is among so many last ones says nothing new.
_REPEATED = 12
_NEVER_NS = 1 << 62
_SHOWN_NOTES = 60
# Time-outs and intervals in seconds, at a time scale of 1: of drivers, and of consensus modules.
_NODE_TIMES_S = {
    "image_liveness_timeout_ns": 1.0,
    "client_liveness_timeout_ns": 3.0,
    "receiver_status_message_timeout_ns": 0.1,
    "timer_interval_ns": 0.2,
}
_MODULE_TIMES_S = {
    "leader_heartbeat_timeout_ns": 1.0,
    "leader_heartbeat_interval_ns": 0.2,
    "startup_canvass_timeout_ns": 3.0,
    "election_timeout_ns": 0.5,
    "election_status_interval_ns": 0.1,
    "termination_timeout_ns": 2.0,
    "session_timeout_ns": 5.0,
}
_REST_S = 0.04


class ClusterWorld(Closing):
    """A cluster in a :class:`headrace.testing.World`: real drivers, archives, consensus modules, services and clients.

    ::

        with ClusterWorld(Counter, seed=4711, state_of=lambda counter: counter.total) as cluster:
            cluster.add_client(lambda chance: b"%d" % chance.randrange(100))
            cluster.run_faults(20)
            cluster.settle()

    Members run, and look for a leader, in virtual time: in :meth:`run_for`, :meth:`run_until` and what calls them. What
    ends of a member is started again after a while. After each turn of a member its part in the rules of
    :class:`ClusterRules` is looked at. A context manager that deletes everything.

    Args:
        make_service: Makes the service of a member, anew for each of its lives.
        seed: See :class:`headrace.testing.World`.
        member_count: How many members.
        state_of: Returns what of a service must be equal in all members, and in all lives, at one log position.
        sync_level: What archives and modules force to their disks; at 0 a power cut loses the end of the log.
        time_scale: Time-outs and intervals of nodes, members, clients and faults are so many times as long as by
            default. With shorter ones more happens in a virtual second. What is set by name is not scaled.
        rest_s: How long a driver, or a part of a member, rests at most when it has nothing to do; 0.04 if nothing is
            said, scaled. Shorter rests make a slower world.
        is_process_each: Each part of a member is a process that ends, and is started again, alone. Otherwise all end
            with the first.
        checks: See :class:`headrace.testing.World`.
        **module_settings: See :class:`headrace.cluster.ConsensusModuleConfig`.

    Attributes:
        world: The world: its network, its time, its trace.
        members: The members.
        clients: The clients.
        desk: The machine of the clients.
        rules: What was agreed upon.
        time_scale: See above.
        is_supervised: What ends is started again.
        notes: What happened: faults, and what members said of them.
    """

    def __init__(
        self,
        make_service: Callable[[], ClusteredService],
        *,
        seed: int | None = None,
        member_count: int = 3,
        state_of: Callable[[Any], object] | None = None,
        sync_level: int = 1,
        time_scale: float = 1.0,
        rest_s: float | None = None,
        is_process_each: bool = False,
        checks: bool = False,
        **module_settings: Any,
    ) -> None:
        self.world = World(seed, checks=checks)
        self.time_scale = time_scale
        self.rest_ns = self._scaled_ns(_REST_S) if rest_s is None else round(rest_s * _NS_PER_S)
        self.world._let_nodes_rest(self.rest_ns)
        self.make_service = make_service
        self.is_process_each = is_process_each
        self.sync_level = sync_level
        self.disk_space = _DISK_SPACE
        self.is_supervised = True
        self.rules = ClusterRules(state_of)
        self.notes: list[str] = []
        self._chance = random.Random(f"{self.world.seed} cluster")
        self._module_settings = module_settings
        names = [f"member{one}" for one in range(member_count)]
        self._members_text = "|".join(
            f"{one},{name}:9002,{name}:9003,{name}:9004,{name}:0,{name}:8010"
            for one, name in enumerate(names)
        )
        self.members = [ClusterMember(self, one, self.add_node(name)) for one, name in enumerate(names)]
        self.clients: list[SimulatedClient] = []
        self._turns: list[ClusterMember | SimulatedClient] = [*self.members]
        self.desk = self.add_node("desk")
        # Weak, as the world holds what calls it.
        this = weakref.proxy(self)
        self.world._core.set_programs(lambda: this._turn())
        for member in self.members:
            member.start()

    def add_node(self, name: str) -> Node:
        """Add a machine, such as one for clients of your own."""
        times: dict[str, Any] = {key: self._scaled_ns(time_s) for key, time_s in _NODE_TIMES_S.items()}
        return self.world.add_node(
            name, term_buffer_length=_TERM_LENGTH, ipc_term_buffer_length=_TERM_LENGTH, **times
        )

    def _scaled_ns(self, time_s: float) -> int:
        return round(time_s * self.time_scale * _NS_PER_S)

    def add_client(
        self, make_command: Callable[[random.Random], bytes], *, rate: float = 20.0
    ) -> SimulatedClient:
        """Add a client, on the machine of all clients, that sends commands from now on.

        Args:
            make_command: Makes the next command.
            rate: How many a virtual second.
        """
        client = SimulatedClient(self, self.desk, make_command, rate=rate)
        self.clients.append(client)
        self._turns.append(client)
        return client

    # --- settings ----------------------------------------------------------------------------------------------------

    @property
    def ingress_endpoints(self) -> str:
        """Where clients reach the members, as :class:`headrace.cluster.ClusterClient` takes it."""
        return ",".join(f"{one.member_id}={one.node.name}:9002" for one in self.members)

    def archive_settings(self, member: ClusterMember) -> dict[str, Any]:
        """Those of a member's archive."""
        return {
            "file_sync_level": self.sync_level,
            "catalog_file_sync_level": self.sync_level,
            "segment_file_length": _TERM_LENGTH,
            "replication_channel": f"aeron:udp?endpoint={member.node.name}:0",
        }

    def module_settings(self, member: ClusterMember) -> dict[str, Any]:
        """Those of a member's consensus module."""
        return {
            "members": self._members_text,
            "member_id": member.member_id,
            "ingress_channel": "aeron:udp",
            "log_channel": f"aeron:udp?term-length={_TERM_LENGTH}",
            "replication_channel": f"aeron:udp?endpoint={member.node.name}:0",
            "file_sync_level": self.sync_level,
            **{key: self._scaled_ns(time_s) for key, time_s in _MODULE_TIMES_S.items()},
            **self._module_settings,
            **member.settings,
        }

    @property
    def leader_timeout_s(self) -> float:
        """After this silence of a leader the others elect another."""
        key = "leader_heartbeat_timeout_ns"
        timeout_ns: int = self._module_settings.get(key, self._scaled_ns(_MODULE_TIMES_S[key]))
        return timeout_ns / _NS_PER_S

    # --- time ------------------------------------------------------------------------------------------------------

    def run_for(self, duration_s: float) -> None:
        """Go on for so many virtual seconds."""
        self.world._core.set_programs_due_ns(0)
        self.world.run_for(duration_s)

    def run_until(
        self, condition: Callable[[], object], *, within_s: float = 60.0, what: str = "condition"
    ) -> None:
        """Go on until a condition is true; see :meth:`headrace.testing.World.run_until`."""
        self.world._core.set_programs_due_ns(0)
        self.world.run_until(condition, within_s=within_s, what=what)

    def run_faults(self, duration_s: float, kinds: Iterable[str] = ()) -> ClusterFaults:
        """Have things go wrong, as the seed decides, for so many virtual seconds; what is wrong then stays so.

        Args:
            duration_s: How long.
            kinds: Only these kinds of faults, of :data:`headrace.testing.cluster.FAULT_KINDS`.

        Returns:
            What went wrong.
        """
        faults = ClusterFaults(self, kinds)
        faults.run(duration_s)
        return faults

    def _turn(self) -> int:
        """What follows the turns of drivers and clients in each step: this is where most time of a test goes."""
        work_count = self.world._turn()
        now_ns = self.world.now_ns
        due_ns = _NEVER_NS
        for one in self._turns:
            if now_ns >= one.next_ns and one.take_turn(now_ns):
                # What it has sent is for its driver.
                one.node._driver.wake()
                work_count += 1
            due_ns = min(due_ns, one.next_ns)
        if self.world._has_programs:
            due_ns = now_ns
        self.world._core.set_programs_due_ns(due_ns)
        return work_count

    def restart_delay_ns(self) -> int:
        """How long until something that has ended is started again."""
        return self._scaled_ns(self._chance.choice(_RESTARTS_S))

    def note(self, text: str) -> None:
        """Keep a line for the text of a failure."""
        text = text[:_NOTE_LENGTH_MAX]
        if all(text not in before for before in self.notes[-_REPEATED:]):
            self.notes.append(f"{self.world.now_s:.6f} {text}")

    # --- looks -----------------------------------------------------------------------------------------------------

    @property
    def leader(self) -> ClusterMember | None:
        """The member that leads; of several, which do not know of each other, the one of the highest term."""
        leaders = [one for one in self.members if one.is_leader]
        return max(leaders, key=lambda one: one.leadership_term_id, default=None)

    @property
    def followers(self) -> list[ClusterMember]:
        """The members that follow."""
        return [one for one in self.members if one.is_elected and not one.is_leader]

    def await_leader(self, within_s: float = 60.0) -> ClusterMember:
        """Go on until a member leads, which is returned."""
        self.run_until(lambda: self.leader, within_s=within_s, what="a leader")
        leader = self.leader
        assert leader is not None, "awaited"
        return leader

    def await_agreement(self, members: Iterable[ClusterMember] | None = None, within_s: float = 60.0) -> None:
        """Go on until members are there, in the same state, and their services have read all of the log.

        Args:
            members: Which; all if nothing is said.
            within_s: The longest wait.
        """
        wanted = self.members if members is None else list(members)

        def do_agree() -> bool:
            leader = self.leader
            if leader is None or leader.module is None or not leader.module.has_committed_all:
                return False
            end, state = leader.commit_position, leader.module.state
            return all(
                one.is_elected
                and one.commit_position == end == one.applied_position
                and one.module is not None
                and one.module.state is state
                for one in wanted
            )

        self.run_until(do_agree, within_s=within_s, what="agreement of the members")

    # --- operators ---------------------------------------------------------------------------------------------------

    def request(self, toggle: Toggle, successor: ClusterMember | None = None) -> bool:
        """Ask the leader for something, as an operator; returns whether it is a time for that.

        Args:
            toggle: What.
            successor: Who is to lead, where leadership is transferred; any member if nothing is said.
        """
        leader = self.leader
        module = None if leader is None else leader.module
        is_time = module is not None and (
            module.state is ModuleState.SUSPENDED if toggle is Toggle.RESUME else module.takes_requests
        )
        if module is not None and is_time:
            module.request(toggle, -1 if successor is None else successor.member_id)
        return is_time

    # --- faults ----------------------------------------------------------------------------------------------------

    def isolate(self, *members: ClusterMember) -> None:
        """Cut members off from all other machines, clients too, but not from each other."""
        inside = [one.node for one in members]
        outside = [node for node in self.world.nodes.values() if node not in inside]
        self.world.partition(inside, outside)

    def heal(self) -> None:
        """Mend links, disks and processes. What is down is started, if the cluster is supervised."""
        self.world.heal()
        self.world.set_links(Link())
        for member in self.members:
            member.mend()
        for client in self.clients:
            client.sleep(0)

    def settle(self, within_s: float = 60.0) -> None:
        """Mend a majority, which must make progress, then everything; hold clients and members against each other.

        Clients send nothing more when this returns.

        Args:
            within_s: How long each of its steps may take.

        Raises:
            WorldTimeoutError: The cluster makes no progress, though nothing hinders it.
            ClusterRuleError: A rule was broken.
        """
        self.heal()
        members = list(self.members)
        self._chance.shuffle(members)
        # One that comes back without its disks has no vote yet.
        members.sort(key=lambda one: one.is_replacement)
        minority = members[len(members) // 2 + 1 :]
        if self._chance.random() < 0.5:
            self.isolate(*minority)
        else:
            for member in minority:
                member.hold()
        self._await_answers(within_s)
        self.heal()
        self._await_answers(within_s)
        for client in self.clients:
            client.rate = 0.0
        self.await_agreement(within_s=within_s)
        self.check()

    def _await_answers(self, within_s: float) -> None:
        """Until each client is answered for an entry that is not yet agreed upon."""
        committed = self.rules.committed_position
        before = [len(client.answers) for client in self.clients]

        def are_answered() -> bool:
            self.request(Toggle.RESUME)
            return all(
                len(client.answers) > count and client.answers[-1].position > committed
                for client, count in zip(self.clients, before, strict=True)
            )

        self.await_leader(within_s)
        self.run_until(are_answered, within_s=within_s, what="answers to all clients")

    def check(self) -> None:
        """Hold what clients have sent, and were answered, against the log that is agreed upon.

        Raises:
            ClusterRuleError: See :meth:`SimulatedClient.check`.
        """
        if self.rules.has_lost:
            return
        log = list(self.rules.messages())
        for client in self.clients:
            client.check(log)

    def close(self) -> None:
        """End the world."""
        for member in self.members:
            member.crash()
        self.world.close()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if value is not None:
            value.add_note("\n".join(self.notes[-_SHOWN_NOTES:]))
            value.add_note("\n".join(one.description for one in self.members))
        self.close()
        self.world.__exit__(kind, value, trace)

    def __repr__(self) -> str:
        return f"ClusterWorld(seed={self.world.seed}, now_s={self.world.now_s:g}, members={self.members})"
