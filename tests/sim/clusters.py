"""A cluster of one in a simulated world: its service keeps all that it handled, and clients keep what was answered."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import headrace
from headrace.archive import ArchiveServer
from headrace.cluster import (
    ClientSession,
    Cluster,
    ClusterClient,
    ClusteredService,
    ConsensusModule,
    PendingClusterClient,
    ServiceContainer,
)
from headrace.testing import Killed, Node, World

WITHIN_S = 90.0
MEMBERS = "0,leader:9002,leader:9003,leader:9004,leader:9005,leader:9001"
CLIENTS = 2
TIMER_MS = 50
SESSION_TIMEOUT_NS = 5_000_000_000
# So that clients soon notice a member that is gone.
NEW_LEADER_TIMEOUT_NS = 500_000_000
IMAGE_TIMEOUT_NS = 300_000_000


class Oracle:
    """What holds whatever happens: the same state at the same position of the log, in each life of the service."""

    def __init__(self) -> None:
        self.states: dict[int, str] = {}
        self.last: list[str] = []

    def note(self, position: int, state: list[str]) -> None:
        """The service is in a state after the entry that ends at a position."""
        told = self.states.setdefault(position, f"{len(state)} {state[-1]}")
        assert told == f"{len(state)} {state[-1]}", (
            f"log position {position}: {told!r} in an earlier life, and now {len(state)} {state[-1]!r}"
        )


class Ledger(ClusteredService):
    """Keeps every command, timer and message to itself, in order, and answers each command with how many there are."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.entries: list[str] = []
        self.owed: list[tuple[str, int]] = []
        self.timers = 0

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        for message in snapshot or ():
            kind, value = json.loads(message)
            if kind == "entry":
                self.entries.append(value)
            elif kind == "timers":
                self.timers = value

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield json.dumps(("timers", self.timers)).encode()
        for entry in self.entries:
            yield json.dumps(("entry", entry)).encode()

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        text = message.decode()
        self.add(text, position)
        if session is None:
            return
        command = text.split()[0]
        if command == "timer":
            self.timers += 1
            self.insist(lambda: self.cluster.schedule_timer(self.timers, timestamp + TIMER_MS))
        elif command == "self":
            self.insist(lambda: self.cluster.offer(f"echo of {text}".encode()) > 0)
        elif command == "close":
            self.insist(lambda: self.cluster.close_session(session.id))
        session.offer(f"{len(self.entries)} {text}".encode())

    @staticmethod
    def insist(send: Any) -> None:
        """The control stream has room for far more than is sent here."""
        assert send(), "the consensus module takes it"

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        self.add(f"fired {correlation_id}", self.cluster.log_position)

    def add(self, entry: str, position: int) -> None:
        self.entries.append(entry)
        self.oracle.note(position, self.entries)


class Caller:
    """A client that sends numbered commands, each once, and connects again when its session is gone."""

    def __init__(self, node: Node, chance: random.Random) -> None:
        self.node = node
        self.chance = chance
        self.client = node.connect()
        self.pending: PendingClusterClient | None = None
        self.cluster: ClusterClient | None = None
        self.sent: list[str] = []
        self.answered: list[tuple[int, str]] = []
        self.wanted = 0
        node.run(self.do_work)

    def do_work(self) -> int:
        try:
            return self.turn()
        except headrace.HeadraceError:
            if self.cluster is not None:
                self.cluster.close()
            self.cluster = self.pending = None
            return 0

    def turn(self) -> int:
        if self.cluster is None:
            if self.pending is None:
                self.pending = ClusterClient.request(
                    self.client,
                    ingress_endpoints="0=leader:9002",
                    ingress_channel="aeron:udp",
                    egress_channel=f"aeron:udp?endpoint={self.node.name}:0",
                    new_leader_timeout_ns=NEW_LEADER_TIMEOUT_NS,
                )
            self.cluster = self.pending.poll()
            if self.cluster is None:
                return 0
            self.pending = None
        count = self.cluster.poll(self.take)
        if self.wanted and self.chance.random() < 0.3:
            kind = self.chance.choice(("add", "add", "add", "timer", "self"))
            text = f"{kind} {self.node.name} {len(self.sent)} " + "x" * self.chance.choice((0, 10, 3000))
            if self.cluster.offer(text.encode()) > 0:
                self.sent.append(text)
                self.wanted -= 1
                count += 1
        return count

    def take(self, message: Any) -> None:
        index, _, text = message.payload.decode().partition(" ")
        self.answered.append((int(index), text))


class ClusterWorld:
    """One member, and clients on machines of their own."""

    def __init__(self, world: World, *, sync_level: int = 2, clients: int = CLIENTS) -> None:
        self.world = world
        self.chance = random.Random(f"{world.seed} cluster")
        self.sync_level = sync_level
        self.oracle = Oracle()
        self.node = world.add_node("leader")
        self.archive: ArchiveServer | None = None
        self.start()
        self.callers = [
            Caller(world.add_node(f"client{number}", image_liveness_timeout_ns=IMAGE_TIMEOUT_NS), self.chance)
            for number in range(clients)
        ]

    def start(self) -> None:
        """Start all parts; a disk that is to end the process before a step of that ends it here."""
        if not self.node.is_up:
            self.node.start()
        sync = self.sync_level
        try:
            self.archive = self.node.run_archive(file_sync_level=sync, catalog_file_sync_level=sync)
            self.module = self.node.host(
                lambda: ConsensusModule(
                    driver=self.node,
                    is_invoked=True,
                    storage=self.node.disk("cluster"),
                    members=MEMBERS,
                    ingress_channel="aeron:udp",
                    log_channel="aeron:udp?term-length=256k",
                    session_timeout_ns=SESSION_TIMEOUT_NS,
                    file_sync_level=sync,
                )
            )
            self.ledger = Ledger(self.oracle)
            self.container = self.node.host(
                lambda: ServiceContainer(
                    self.ledger, driver=self.node, is_invoked=True, storage=self.node.disk("service")
                )
            )
        except Killed:
            self.world.trace(1)

    @property
    def is_running(self) -> bool:
        return self.node.is_up and not self.module.has_terminated and not self.module.is_closed

    def crash(self, *, keeps_writes: bool) -> None:
        if self.node.is_up:
            self.node.crash(keeps_writes=keeps_writes)

    def recover(self) -> None:
        """All that is broken is mended, and the member leads."""
        for name in ("archive", "cluster", "service"):
            disk = self.node.disk(name)
            disk.space = 1 << 30
            disk.mend()
            disk.kill_before(1 << 60)
        for _ in range(5):
            if not self.is_running or self.container.is_closed:
                self.crash(keeps_writes=True)
                self.start()
            self.world.run_until(
                lambda: self.module.is_leader or not self.is_running, within_s=WITHIN_S, what="a leader"
            )
            if self.is_running:
                return
        raise AssertionError(f"the member does not start: {self.module.failure!r}")

    def check(self) -> None:
        """What was answered is in the state, once and in order; each command is there once at most."""
        self.settle()
        entries = self.ledger.entries
        for caller in self.callers:
            own = [
                text for text in entries if f" {caller.node.name} " in text and not text.startswith("echo")
            ]
            assert len(set(own)) == len(own), "a command is there twice"
            order = [caller.sent.index(text) for text in own]
            assert order == sorted(order), "commands are not in the order in which they were sent"
            for index, text in caller.answered:
                assert entries[index - 1] == text, f"answered as number {index}: {text[:40]!r}"
        echoes = [text for text in entries if text.startswith("echo of ")]
        wanted = [f"echo of {text}" for text in entries if text.startswith("self ")]
        assert echoes == wanted, "messages of the service to itself are not there once each, in order"
        fired = [text for text in entries if text.startswith("fired ")]
        assert sorted(fired) == sorted(f"fired {number}" for number in range(1, self.ledger.timers + 1)), (
            "timers have not fired once each"
        )

    def settle(self) -> None:
        """Until the service has handled all, timers and messages to itself too."""
        self.recover()
        module = self.module

        def is_settled() -> bool:
            applied = module._context.applied
            is_empty = not len(applied.timers) and not any(map(len, applied.pending))
            writer = module._leadership.writer
            is_committed = writer is not None and module.commit_position == writer.position
            return is_empty and is_committed and self.container._position >= module.commit_position

        self.world.run_for(0.2)
        self.world.run_until(is_settled, within_s=WITHIN_S, what="all of the log handled")
