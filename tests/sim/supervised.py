"""A member in a simulated world whose parts die alone, and are started again as by a supervisor; with two services."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeVar

from headrace import HeadraceError
from headrace.archive import ArchiveServer
from headrace.cluster import ClientSession, ConsensusModule, ServiceContainer
from headrace.testing import Killed, World
from headrace.testing.world import Agent
from tests.sim.clusters import MEMBERS, SESSION_TIMEOUT_NS, TERM_LENGTH, Caller, ClusterWorld, Slow
from tests.sim.ledger import Entry, Ledger

PARTS = ("archive", "cluster", "service", "witness")
_RECOVERY_S = 120
_RESTART_NS = (1_000_000, 30_000_000, 300_000_000)
Part = ArchiveServer | ConsensusModule | ServiceContainer
T = TypeVar("T", ArchiveServer, ConsensusModule, ServiceContainer)


class Witness(Ledger):
    """The second service: it is told all that the first one is, and says nothing."""

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self._add(timestamp, message.decode())

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        self._add(timestamp, f"fired {correlation_id}")


class Process(Slow):
    """A part as a process of its own, which a step of its disk may end."""

    def __init__(self, agent: Agent, world: World, chance: random.Random, die: Callable[[], None]) -> None:
        super().__init__(agent, world, chance)
        self._die = die

    def do_work(self) -> int:
        try:
            return super().do_work()
        except Killed:
            self._die()
            return 0


class SupervisedWorld(ClusterWorld):
    """One member, each part of which is started again whenever it has ended."""

    def __init__(self, world: World, *, sync_level: int = 2) -> None:
        self.parts: dict[str, Part] = {}
        self.due: dict[str, int] = {}
        # When power cuts took what was not forced to a disk.
        self.cut_ns: list[int] = []
        super().__init__(world, sync_level=sync_level)
        # A session that a power cut took may have its id given to another, on a stream of answers that both know.
        self.callers[-1].egress_channel = "aeron:udp?endpoint=desk1:9101"

    # --- the supervisor --------------------------------------------------------------------------------------------

    def start(self, kills: tuple[str, int] | None = None) -> None:
        self.parts, self.due, self.slow = {}, {}, {}
        if not self.node.is_up:
            self.node.start()
        for name in PARTS:
            self.begin(name)

    def begin(self, name: str) -> None:
        """Start a part, or try it again later."""
        try:
            part = self._begun(name)
        except (HeadraceError, OSError):
            self._begin_later(name)
            return
        slow = Process(part, self.world, self.chance, lambda: self.kill(name))
        self.slow[name] = slow
        self.node._agents[-1] = slow
        self.parts[name] = part
        self.due.pop(name, None)

    def _begun(self, name: str) -> Part:
        node, sync = self.node, self.sync_level
        if name == "archive":
            self.archive = node.run_archive(
                file_sync_level=sync, catalog_file_sync_level=sync, segment_file_length=TERM_LENGTH
            )
            return self.archive
        if name == "cluster":
            # What may be another between two lives of a member.
            medium = self.chance.choice(("ipc", "udp"))
            timeout_ns = self.chance.choice((SESSION_TIMEOUT_NS, 2 * SESSION_TIMEOUT_NS))
            self.module = node.host(
                lambda: ConsensusModule(
                    driver=node,
                    is_invoked=True,
                    storage=node.disk("cluster"),
                    members=MEMBERS,
                    ingress_channel="aeron:udp",
                    log_channel=f"aeron:{medium}?term-length={TERM_LENGTH}",
                    session_timeout_ns=timeout_ns,
                    service_count=2,
                    file_sync_level=sync,
                )
            )
            return self.module
        if name == "service":
            self.ledger = Ledger(self.oracle)
            self.container = self._serve(self.ledger, name, 0)
            return self.container
        self.witness = Witness(self.oracle)
        return self._serve(self.witness, name, 1)

    def _serve(self, service: Ledger, disk: str, service_id: int) -> ServiceContainer:
        node = self.node
        return node.host(
            lambda: ServiceContainer(
                service, driver=node, is_invoked=True, storage=node.disk(disk), service_id=service_id
            )
        )

    def _begin_later(self, name: str) -> None:
        self.due[name] = self.world.now_ns + self.chance.choice(_RESTART_NS)

    def kill(self, name: str) -> None:
        """End a part without a last word; driver and other parts go on, and are not told."""
        part = self.parts.pop(name, None)
        if part is None:
            return
        self._crash_client(part)
        part._forget()
        slow = self.slow.pop(name)
        if slow in self.node._agents:
            self.node._agents.remove(slow)
        self._begin_later(name)

    def _crash_client(self, part: Part) -> None:
        client = part._client
        if client is not None and not client.is_closed:
            self.node.crash_client(client)

    def kill_before(self, name: str, step: int) -> None:
        """End a part before a step of its disk."""
        disk, part, left = self.node.disk(name), self.parts.get(name), step
        begin = type(disk).begin

        def begun(kind: str, file: str) -> None:
            nonlocal left
            if self.parts.get(name) is not part or part is None:
                # It has ended otherwise.
                disk.__dict__.pop("begin", None)
            elif kind != "read":
                left -= 1
                if left < 0:
                    self._crash_client(part)
                    raise Killed(disk.describe(file))
            begin(disk, kind, file)

        disk.__dict__["begin"] = begun

    def supervise(self) -> None:
        """Start what has ended, after a while."""
        for name in PARTS:
            part = self.parts.get(name)
            if part is not None and (
                part.is_closed or part.failure is not None or getattr(part, "has_terminated", False)
            ):
                self.close(name)
                if self.parts.pop(name, None) is not None:
                    self.slow.pop(name, None)
                    self._begin_later(name)
            if name in self.due and self.world.now_ns >= self.due[name] and self.node.is_up:
                self.begin(name)

    def close(self, name: str) -> None:
        """End a part in good order, if it comes to that."""
        part = self.parts.get(name)
        if part is None or part.is_closed:
            return
        try:
            part.close()
        except Killed:
            self.kill(name)
        except (HeadraceError, OSError):
            return

    # --- the member ------------------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        return self.node.is_up and len(self.parts) == len(PARTS) and super().is_running

    def crash(self, *, keeps_writes: bool) -> None:
        if not self.node.is_up:
            return
        self.node.crash(keeps_writes=keeps_writes)
        self.parts, self.due, self.slow = {}, {}, {}
        if not keeps_writes and self.sync_level == 0:
            # What was answered last may be gone, and positions of the log may have other entries from now on.
            self.cut_ns.append(self.world.now_ns)
            self.oracle.digests.clear()
            self.highest_commit, self.highest_candidate, self.led = 0, -1, (None, -1)

    def recover(self) -> None:
        """All that is broken is mended, and the member leads: each start ends in that, or in an error."""
        self.mend()
        if not self.node.is_up:
            self.start()
        deadline_ns = self.world.now_ns + _RECOVERY_S * 1_000_000_000
        while not (self.is_running and self.module.is_leader):
            if self.world.now_ns > deadline_ns:
                raise AssertionError(f"the member does not lead after {_RECOVERY_S} s: {self._told()}")
            self.world.run_for(0.01)

    def _told(self) -> str:
        waits = {name: _place(part) for name, part in self.parts.items()}
        failures = {name: repr(part.failure) for name, part in self.parts.items()}
        return f"failures {failures}, due {self.due}, waits {waits}"

    def watch(self) -> int:
        if self.node.is_up:
            self.supervise()
        return super().watch()

    # --- what must be ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        super().check()
        assert self.witness.digest == self.ledger.digest, "two services of one log have other states"

    def _check_caller(self, caller: Caller, own: list[Entry]) -> None:
        if self.cut_ns:
            self._forget_lost(caller, {int(entry.text.split(" ", 3)[2]) for entry in own})
        super()._check_caller(caller, own)

    def _forget_lost(self, caller: Caller, kept: set[int]) -> None:
        """What was answered last before a power cut may be gone, and nothing before it."""
        last = self.cut_ns[-1]
        before = [number for number, call in enumerate(caller.calls) if call.called_ns <= last]
        answered = [number for number in before if caller.calls[number].returned_ns is not None]
        positions = [caller.calls[number].position for number in answered if number in kept]
        end = max((position for position in positions if position is not None), default=0)
        for number in before:
            call = caller.calls[number]
            if number in kept:
                continue
            # One without an answer has a position if an earlier check found it in the log.
            assert (
                call.returned_ns is None
                or call.position is None
                or call.position > end
                or len(self.cut_ns) > 1
            ), f"{call} is gone, and what came after it is there"
            call.returned_ns = call.answer = call.position = None
            caller.indices.pop(number, None)


def _place(part: Any) -> str:
    """Where a part stands in the task that it is on."""
    running = getattr(part, "_task", None) or getattr(part, "_running", None)
    task = None if running is None else running._task
    while task is not None and hasattr(task.gi_yieldfrom, "gi_code"):
        task = task.gi_yieldfrom
    if task is None or task.gi_frame is None:
        return "nothing"
    return f"{task.gi_code.co_filename.rpartition('/')[2]}:{task.gi_frame.f_lineno}"
