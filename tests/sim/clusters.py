"""A cluster of one in a simulated world: its service keeps all that it handled, and clients keep what was answered."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import headrace
from headrace.archive import ArchiveServer
from headrace.cluster import ClusterClient, ConsensusModule, PendingClusterClient, ServiceContainer
from headrace.cluster.member.states import ModuleState, Toggle
from headrace.testing import Killed, Node, World
from headrace.testing.world import Agent
from tests.sim.histories import Call, check_history
from tests.sim.ledger import Entry, Ledger, Oracle, registered

WITHIN_S = 90.0
MEMBERS = "0,leader:9002,leader:9003,leader:9004,leader:9005,leader:9001"
DISKS = ("archive", "cluster", "service")
# With a name that makes the opening of the session, and its part of a snapshot, too long for one datagram.
EGRESS_CHANNEL = f"aeron:udp?endpoint=desk0:0|alias={'a' * 1400}"
KEYS = ("x", "y", "z")
KINDS = ("put", "put", "append", "append", "get", "get", "timer", "later", "move", "again", "cancel", "self")
SESSION_TIMEOUT_NS = 2_000_000_000
KEEP_ALIVE_NS = 300_000_000
# So that clients soon notice a member that is gone, and the member a client.
NEW_LEADER_TIMEOUT_NS = 300_000_000
IMAGE_TIMEOUT_NS = 300_000_000
CLIENT_TIMEOUT_NS = 1_500_000_000
# So long after the last packet the member has surely been told that a stream is gone.
IMAGE_GONE_S = 1.0

# A call without an answer for so long is made again.
ANSWER_NS = 50_000_000
PATIENCE_NS = 5_000_000_000

POLL_INTERVAL_NS = 2_000_000
REST_NS = 300_000
# Of the log, of snapshots, and of their segment files: many of each are filled.
TERM_LENGTH = 65_536


class Slow:
    """An agent that rests after a turn without work, or for longer, when the machine has no time for its process."""

    def __init__(self, agent: Agent, world: World, chance: random.Random) -> None:
        self.agent = agent
        self.world = world
        self.chance = chance
        self.until_ns = 0

    @property
    def is_closed(self) -> bool:
        return self.agent.is_closed

    def do_work(self) -> int:
        now_ns = self.world.now_ns
        if now_ns < self.until_ns:
            return 0
        work_count = self.agent.do_work()
        if not work_count and self.until_ns <= now_ns:
            self.until_ns = now_ns + self.chance.randrange(REST_NS)
        return work_count

    def close(self) -> None:
        self.agent.close()

    def _forget(self) -> None:
        self.agent._forget()

    def _fail(self, failure: BaseException) -> None:
        self.agent._fail(failure)


class Caller:
    """A client that sends numbered commands, each once, and connects again when its session is gone."""

    def __init__(
        self, world: World, node: Node, name: str, egress_channel: str, chance: random.Random
    ) -> None:
        self.world = world
        self.node = node
        self.name = name
        self.egress_channel = egress_channel
        self.chance = chance
        self.client = node.connect()
        self.pending: PendingClusterClient | None = None
        self.cluster: ClusterClient | None = None
        self.calls: list[Call] = []
        self.texts: list[str] = []
        self.indices: dict[int, int] = {}
        self.wanted = 0
        self.sleeps_until_ns = 0
        node.run(self.do_work)

    def do_work(self) -> int:
        now_ns = self.world.now_ns
        if now_ns < self.sleeps_until_ns:
            return 0
        # As programs do that have more to do than to poll.
        self.sleeps_until_ns = now_ns + self.chance.randrange(POLL_INTERVAL_NS)
        try:
            return self.turn()
        except headrace.HeadraceError:
            self.disconnect()
            return 0

    def turn(self) -> int:
        if self.cluster is None:
            if self.pending is None:
                self.pending = ClusterClient.request(
                    self.client,
                    ingress_endpoints="0=leader:9002",
                    ingress_channel="aeron:udp",
                    egress_channel=self.egress_channel,
                    new_leader_timeout_ns=NEW_LEADER_TIMEOUT_NS,
                    keep_alive_interval_ns=KEEP_ALIVE_NS,
                )
            self.cluster = self.pending.poll()
            if self.cluster is None:
                return 0
            self.pending = None
        count = self.cluster.poll(self.take)
        for _ in range(min(self.wanted, self.chance.randint(0, 3))):
            self.wanted -= 1
            count += self.call(self.cluster)
        return count

    def call(self, cluster: ClusterClient) -> int:
        kind = "close" if self.chance.random() < 0.003 else self.chance.choice(KINDS)
        number = len(self.calls)
        command, key = (kind, f"{self.name}{number}"), self.chance.choice(KEYS)
        text = f"{kind} {self.name} {number} {key} {command[1]} " + "x" * self.chance.choice((0, 10, 3000))
        term_id = cluster.leadership_term_id
        if cluster.offer(text.encode()) <= 0:
            return 0
        session = self.name, cluster.cluster_session_id, term_id
        self.calls.append(Call(session, key, command, self.world.now_ns))
        self.texts.append(text)
        return 1

    def take(self, message: Any) -> None:
        index, answer, text = message.payload.decode().split("|", 2)
        _, name, number = text.split(" ", 3)[:3]
        assert name == self.name, f"{self.name} is answered what {name} sent"
        one = self.calls[int(number)]
        assert one.returned_ns is None, f"a second answer to {one}"
        assert self.cluster is not None, "only an open session takes answers"
        session_id = self.cluster.cluster_session_id
        assert one.session[1] == session_id, f"session {session_id} has the answer of {one}"
        assert text == self.texts[int(number)], f"another command comes back than {one}"
        one.returned_ns, one.position, one.answer = self.world.now_ns, message.log_position, answer
        self.indices[int(number)] = int(index)

    def disconnect(self) -> None:
        """Leave the cluster in good order."""
        if self.cluster is not None:
            self.cluster.close()
        if self.pending is not None:
            self.pending.cancel()
        self.cluster = self.pending = None

    def crash(self) -> None:
        """Its process is killed, and starts again."""
        self.node.crash_client(self.client)
        self.cluster = self.pending = None
        self.client = self.node.connect()


class ClusterWorld:
    """One member, and clients on machines of their own."""

    def __init__(self, world: World, *, sync_level: int = 2) -> None:
        self.world = world
        self.chance = random.Random(f"{world.seed} cluster")
        self.sync_level = sync_level
        self.oracle = Oracle()
        self.node = self.add_node("leader")
        self.slow: dict[str, Slow] = {}
        self.archive: ArchiveServer | None = None
        self.highest_commit = 0
        self.highest_candidate = -1
        self.led: tuple[ConsensusModule | None, int] = (None, -1)
        self.seen: tuple[ConsensusModule | None, int] = (None, 0)
        self.start()
        desks = [self.add_node(name) for name in ("desk0", "desk1")]
        # The second and the third share their channel, and the stream of answers on it.
        channels = EGRESS_CHANNEL, "aeron:udp?endpoint=desk1:9100", "aeron:udp?endpoint=desk1:9100"
        self.callers = [
            Caller(world, desks[number > 0], f"caller{number}", channel, self.chance)
            for number, channel in enumerate(channels)
        ]
        desks[0].run(self.watch)

    def add_node(self, name: str) -> Node:
        return self.world.add_node(
            name,
            image_liveness_timeout_ns=IMAGE_TIMEOUT_NS,
            client_liveness_timeout_ns=CLIENT_TIMEOUT_NS,
            # So that a stream that has timed out is soon given up.
            receiver_status_message_timeout_ns=50_000_000,
            timer_interval_ns=100_000_000,
            term_buffer_length=TERM_LENGTH,
            ipc_term_buffer_length=TERM_LENGTH,
        )

    # --- the member ------------------------------------------------------------------------------------------------

    def start(self, kills: tuple[str, int] | None = None) -> None:
        """Start all parts; a disk that is to end the process before a step of that ends it here."""
        if not self.node.is_up:
            self.node.start()
        if kills is not None:
            self.node.disk(kills[0]).kill_before(kills[1])
        sync, node = self.sync_level, self.node
        try:
            self.archive = node.run_archive(
                file_sync_level=sync, catalog_file_sync_level=sync, segment_file_length=TERM_LENGTH
            )
            self.module = node.host(
                lambda: ConsensusModule(
                    driver=node,
                    is_invoked=True,
                    storage=node.disk("cluster"),
                    members=MEMBERS,
                    ingress_channel="aeron:udp",
                    log_channel=f"aeron:udp?term-length={TERM_LENGTH}",
                    session_timeout_ns=SESSION_TIMEOUT_NS,
                    file_sync_level=sync,
                )
            )
            self.ledger = Ledger(self.oracle)
            self.container = node.host(
                lambda: ServiceContainer(
                    self.ledger, driver=node, is_invoked=True, storage=node.disk("service")
                )
            )
        except Killed:
            self.world.trace(1)
            return
        self.slow = {
            name: Slow(agent, self.world, self.chance)
            for name, agent in zip(DISKS, node._agents[-3:], strict=True)
        }
        node._agents[-3:] = self.slow.values()

    @property
    def is_running(self) -> bool:
        module = self.module
        return (
            self.node.is_up
            and not module.has_terminated
            and not module.is_closed
            and not self.container.is_closed
        )

    def crash(self, *, keeps_writes: bool) -> None:
        if self.node.is_up:
            self.node.crash(keeps_writes=keeps_writes)

    def mend(self) -> None:
        """Disks, and whatever has no time, are well again."""
        self.node.resume()
        for name in DISKS:
            disk = self.node.disk(name)
            disk.space = 1 << 30
            disk.mend()
        for slow in self.slow.values():
            slow.until_ns = 0

    def recover(self) -> None:
        """All that is broken is mended, and the member leads."""
        self.mend()
        for _ in range(5):
            if not self.is_running:
                self.crash(keeps_writes=True)
                self.start()
            self.world.run_until(
                lambda: self.module.is_leader or not self.is_running, within_s=WITHIN_S, what="a leader"
            )
            if self.is_running:
                return
        raise AssertionError(f"the member does not start: {self.module.failure!r}")

    def resume(self) -> None:
        """As :meth:`recover`; and the member takes messages, whatever an operator has asked for."""
        self.recover()
        module = self.module
        if module.state is not ModuleState.SUSPENDED:
            return
        # The member looks at what operators ask for every 10 ms; what one asks before it leads is lost.
        self.world.run_for(0.02)
        if self.is_running:
            module._context.counters.toggle.value = Toggle.RESUME
            self.world.run_until(
                lambda: module.state is not ModuleState.SUSPENDED or not self.is_running,
                within_s=WITHIN_S,
                what="a member that goes on",
            )

    # --- what must be ----------------------------------------------------------------------------------------------

    def watch(self) -> int:
        """After each step: what is agreed upon never goes back, and the service has no more than that."""
        if self.oracle.faults:
            raise AssertionError(self.oracle.faults[0])
        module = self.module
        if not self.is_running:
            return 0
        commit = module.commit_position
        seen, before = self.seen
        assert seen is not module or commit >= before, f"the commit position goes from {before} to {commit}"
        self.seen = module, commit
        candidate = module._context.node_state.candidate_term.term_id
        assert candidate >= self.highest_candidate, (
            f"the member stood in term {self.highest_candidate}, and knows of {candidate} only"
        )
        self.highest_candidate = candidate
        if module.is_leader:
            term_id = module.leadership_term_id
            led = self.led
            assert led == (module, term_id) or term_id > led[1], f"term {term_id} after term {led[1]}"
            self.led = module, term_id
            assert commit >= self.highest_commit, (
                f"{commit} is agreed upon, and was {self.highest_commit} before"
            )
            self.highest_commit = commit
            read = self.container._position
            assert self.container.is_closed or read <= commit, (
                f"the service has {read} of {commit} agreed upon"
            )
        return 0

    def check(self) -> None:
        """What was answered is in the state, once and in order; each command is there once at most."""
        self.settle()
        entries = self.ledger.entries
        by_caller: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            kind, _, rest = entry.text.partition(" ")
            if kind not in ("open", "close", "echo", "fired") or rest.startswith("caller"):
                by_caller[rest.partition(" ")[0]].append(entry)
        for caller in self.callers:
            self._check_caller(caller, by_caller[caller.name])
        self._check_own(entry.text for entry in entries)
        self._check_sessions()
        check_history((one for caller in self.callers for one in caller.calls), registered, "")

    def _check_caller(self, caller: Caller, own: list[Entry]) -> None:
        """What the client sent is in the log once at most, as it was sent; notes where."""
        numbers = [int(entry.text.split(" ", 3)[2]) for entry in own]
        assert len(set(numbers)) == len(numbers), f"a command of {caller.name} is there twice"
        # What a client sent before it was killed may come after what its next life sends, in another session.
        in_session = defaultdict(list)
        for number in numbers:
            in_session[caller.calls[number].session].append(number)
        assert all(sent == sorted(sent) for sent in in_session.values()), (
            f"commands of {caller.name} are not in the order they were sent"
        )
        for number, entry in zip(numbers, own, strict=True):
            assert entry.text == caller.texts[number], f"{entry} is another command"
        for number, entry in zip(numbers, own, strict=True):
            one = caller.calls[number]
            assert one.returned_ns is None or one.position == entry.position, (
                f"{one}: the log has it in {entry}"
            )
            one.position = entry.position
        for number, index in caller.indices.items():
            entry = self.ledger.entries[index - 1]
            assert entry.text == caller.texts[number], f"answered as number {index}: {entry}"

    def _check_own(self, texts: Iterable[str]) -> None:
        """What the service has asked for itself has come once."""
        all_texts = list(texts)
        echoes = [text for text in all_texts if text.startswith("echo of ")]
        wanted = [f"echo of {text}" for text in all_texts if text.startswith("self ")]
        assert echoes == wanted, "messages of the service to itself are not there once each, in order"
        missing = set(self.ledger.due) - set(self.ledger.waiting)
        assert not missing, f"timers have not fired at or after their last deadlines: {missing}"

    def _check_sessions(self) -> None:
        """Module and service know the same sessions: those that the log has."""
        sessions = self.module._context.applied.sessions
        known = sorted(session.session_id for session in sessions)
        opened = sorted(self.ledger.open_ids)
        assert known == opened, f"the module knows sessions {known}, and the service {opened}"
        highest = max(self.ledger.known_ids, default=0)
        assert sessions.next_committed_id == highest + 1, (
            f"a snapshot would have {sessions.next_committed_id} as the next session, after {highest}"
        )

    def answer(self) -> None:
        """Until each client has the answer to a call that it makes from now on."""
        begin_ns = patient_ns = self.world.now_ns
        waiting = set(self.callers)

        def are_answered() -> bool:
            nonlocal patient_ns
            if patient_ns + PATIENCE_NS < self.world.now_ns:
                # A client that shares its stream with others hears nothing of its session's end, if the stream has no
                # room for that just then: as programs do, it connects again.
                patient_ns = self.world.now_ns
                for caller in waiting:
                    caller.disconnect()
            for caller in tuple(waiting):
                last = caller.calls[-1] if caller.calls else None
                if last is not None and last.returned_ns is not None and last.called_ns >= begin_ns:
                    waiting.remove(caller)
                elif last is None or last.called_ns + ANSWER_NS < self.world.now_ns:
                    # The first, or one that was lost.
                    caller.wanted = max(caller.wanted, 1)
            return not waiting

        while waiting:
            self.resume()
            self.world.run_until(
                lambda: are_answered() or not self.is_running or self.module.state is ModuleState.SUSPENDED,
                within_s=WITHIN_S,
                what="answers to all clients",
            )

    def settle(self) -> None:
        """Until the service has handled all, timers and messages to itself too; a member that ends starts again."""
        is_settled = False
        while not is_settled:
            self.resume()
            self.world.run_until(
                # What an operator asked for before may still come.
                lambda: self.is_settled or not self.is_running or self.module.state is ModuleState.SUSPENDED,
                within_s=WITHIN_S,
                what="all of the log handled",
            )
            # Nothing has been agreed upon since, so all that the service has sent for it was taken.
            commit = self.module.commit_position
            self.world.run_for(0.02)
            is_settled = self.is_settled and self.module.commit_position == commit

    @property
    def is_settled(self) -> bool:
        module = self.module
        writer = module._term_log.leader.writer
        if not self.is_running or not module.is_leader or writer is None:
            return False
        applied = module._context.applied
        # Timers that wait to be moved are not due; those that were cancelled are gone.
        is_empty = len(applied.timers) == len(self.ledger.waiting) and not any(map(len, applied.pending))
        is_committed = module.commit_position == writer.publication.position
        return is_empty and is_committed and self.container._position >= module.commit_position
