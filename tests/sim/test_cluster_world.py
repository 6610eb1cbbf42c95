"""Random actions on a cluster of one, its disks, its network and its clients: the seed decides them all.

`make simulate SECONDS=60` runs new seeds; `HEADRACE_SEED` repeats one.
"""

from __future__ import annotations

import random

import pytest

from headrace.cluster.member.states import ModuleState, Toggle
from headrace.testing import Link, World
from tests.sim.clusters import DISKS, IMAGE_GONE_S, ClusterWorld
from tests.sim.seeded import SECONDS, replayable, run_new_seeds

pytestmark = pytest.mark.sim

# The last had a client lose its first messages, which was opening its session while an election came.
SEEDS = (*range(8), 50001357)
ACTIONS = 14
GOOD = Link()
BAD = Link(loss=0.03, duplicate=0.02, reorder=0.05, jitter_s=300e-6)


class Chaos:
    """One run."""

    def __init__(self, world: World, done: list[str]) -> None:
        self.world = world
        self.done = done
        self.chance = random.Random(f"{world.seed} actions")
        self.cluster = ClusterWorld(world)

    def run(self) -> None:
        for _ in range(ACTIONS):
            act = self.chance.choice(ACTS)
            self.done.append(act.__name__)
            act(self)
            self.world.run_for(self.chance.choice((0.0, 0.001, 0.02, 0.1, self.chance.random() * 0.01)))
        self.world.set_links(GOOD)
        self.done.append("answer")
        self.cluster.answer()
        self.done.append("check")
        self.cluster.check()

    # --- actions: clients --------------------------------------------------------------------------------------------

    def send(self) -> None:
        for caller in self.cluster.callers:
            caller.wanted += self.chance.randint(1, 20)
        self.world.run_for(self.chance.choice((0.005, 0.03, 0.1)))

    def lose_client(self) -> None:
        caller = self.chance.choice(self.cluster.callers)
        if self.chance.random() < 0.5:
            caller.disconnect()
        else:
            caller.crash()

    def slow_client(self) -> None:
        """It takes no answers for a while, and may be silent for longer than sessions live."""
        caller = self.chance.choice(self.cluster.callers)
        caller.sleeps_until_ns = self.world.now_ns + self.chance.choice((50_000_000, 2_300_000_000))

    def cut_client(self) -> None:
        """Nothing comes from the machine of a client: the session ends with its stream, long before it times out."""
        caller = self.chance.choice(self.cluster.callers)
        self.cluster.recover()
        self.world.run_for(0.02)
        module, ingress = self.cluster.module, self.cluster.module._clients.ingress
        session = None
        if caller.cluster is not None and ingress is not None:
            session = module._context.applied.sessions.get(caller.cluster.cluster_session_id)
        has_stream = session is not None and session.is_open and session.ingress is not None
        caller.node.cut(self.cluster.node)
        self.world.run_for(self.chance.choice((0.1, IMAGE_GONE_S)))
        caller.node.mend(self.cluster.node)
        self.world.run_for(0.02)
        is_same = self.cluster.is_running and module._clients.ingress is ingress
        if session is not None and ingress is not None and has_stream and is_same:
            ids = {image.correlation_id for one in ingress.subscriptions for image in one.images}
            assert not session.is_open or session.ingress.image_id in ids, (
                f"{session} is open without its stream"
            )

    def lose_packets(self) -> None:
        self.world.set_links(self.chance.choice((GOOD, BAD)))

    # --- actions: the member -----------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Of all processes of the member: now, before a step of one of its disks, or while it starts."""
        how = self.chance.randrange(3)
        if how == 0:
            self.cluster.crash(keeps_writes=True)
        elif how == 1:
            self.cluster.recover()
            self.cluster.node.disk(self.chance.choice(DISKS)).kill_before(self.chance.randint(0, 30))
            self.send()
        else:
            self.cluster.crash(keeps_writes=self.chance.random() < 0.5)
            self.cluster.mend()
            self.cluster.start(kills=(self.chance.choice(DISKS), self.chance.randint(0, 20)))

    def cut_power(self) -> None:
        self.cluster.crash(keeps_writes=False)

    def lose_service(self) -> None:
        """The container's process is killed, and the module ends."""
        if self.cluster.is_running and not self.cluster.container.is_closed:
            client = self.cluster.container._client
            assert client is not None, "open until closed"
            self.cluster.node.crash_client(client)

    def slow_down(self) -> None:
        """One of the member's processes has no time for a while: what is appended waits."""
        slow = self.cluster.slow.get(self.chance.choice(DISKS))
        if slow is not None:
            slow.until_ns = self.world.now_ns + self.chance.choice((2_000_000, 60_000_000, 300_000_000))
        self.send()

    def pause(self) -> None:
        """The whole machine stands still."""
        node = self.cluster.node
        if node.is_up:
            node.pause()
            self.world.run_for(self.chance.choice((0.01, 0.4)))
            node.resume()

    def recover(self) -> None:
        self.cluster.recover()

    def check(self) -> None:
        self.cluster.check()

    def toggle(self, toggle: Toggle, state: ModuleState) -> None:
        self.cluster.recover()
        module = self.cluster.module
        if module.state is state:
            module._context.counters.toggle.value = toggle

    def snapshot(self) -> None:
        self.toggle(Toggle.SNAPSHOT, ModuleState.ACTIVE)

    def spoil_snapshot(self) -> None:
        """The service cannot give its state, once."""
        self.toggle(Toggle.SNAPSHOT, ModuleState.ACTIVE)
        self.cluster.ledger.fails_snapshot = True

    def suspend(self) -> None:
        self.toggle(Toggle.SUSPEND, ModuleState.ACTIVE)

    def resume(self) -> None:
        self.cluster.resume()

    def shut_down(self) -> None:
        self.toggle(self.chance.choice((Toggle.SHUTDOWN, Toggle.ABORT)), ModuleState.ACTIVE)

    def stop_recording(self) -> None:
        """The archive stops to record the log, in the midst of messages and closings that are appended and not
        recorded, or recorded and not agreed upon; the member stands again.
        """
        self.cluster.recover()
        for caller in self.cluster.callers:
            caller.wanted += self.chance.randint(0, 20)
        self.world.run_for(self.chance.random() * 0.01)
        slow = self.cluster.slow
        if slow and self.chance.random() < 0.7:
            slow["archive"].until_ns = self.world.now_ns + 40_000_000
            if self.chance.random() < 0.5:
                self.chance.choice(self.cluster.callers).disconnect()
            self.world.run_for(self.chance.random() * 0.03)
            if self.chance.random() < 0.5:
                # Now it records all that, and the module does not look.
                slow["archive"].until_ns, slow["cluster"].until_ns = 0, self.world.now_ns + 40_000_000
                self.world.run_for(self.chance.random() * 0.03)
        archive = self.cluster.archive
        term = self.cluster.module._context.recording_log.last_term
        if archive is not None and term is not None and self.cluster.is_running:
            archive._recordings.stop_recording(term.recording_id)

    def jump_clock(self) -> None:
        """Of the member: its time is the cluster's time, in which timers and time-outs are."""
        self.cluster.node.jump_clock(self.chance.choice((0.1, 1.0, 20.0, -0.1, -1.0)))

    def fill_disk(self) -> None:
        self.cluster.recover()
        self.cluster.node.disk(self.chance.choice(DISKS)).space = self.chance.choice((0, 0, 100_000))
        self.send()

    def fail_disk(self) -> None:
        """Once, or each time from now on."""
        self.cluster.recover()
        kind = self.chance.choice(("read", "write", "sync", "create", "delete", "rename"))
        disk = self.cluster.node.disk(self.chance.choice(DISKS))
        disk.fail(kind, after=self.chance.randint(0, 10), times=self.chance.choice((1, 1 << 60)))
        self.send()


ACTS = (
    Chaos.send,
    Chaos.send,
    Chaos.send,
    Chaos.kill,
    Chaos.kill,
    Chaos.cut_power,
    Chaos.recover,
    Chaos.check,
    Chaos.lose_packets,
    Chaos.snapshot,
    Chaos.snapshot,
    Chaos.spoil_snapshot,
    Chaos.suspend,
    Chaos.resume,
    Chaos.shut_down,
    Chaos.stop_recording,
    Chaos.slow_down,
    Chaos.slow_down,
    Chaos.lose_service,
    Chaos.pause,
    Chaos.lose_client,
    Chaos.slow_client,
    Chaos.cut_client,
    Chaos.jump_clock,
    Chaos.fill_disk,
    Chaos.fail_disk,
)


def run(seed: int) -> None:
    done: list[str] = []
    with World(seed, checks=False) as world, replayable(world, __file__, done):
        Chaos(world, done).run()


@pytest.mark.parametrize("seed", SEEDS)
def test_chaos(seed: int) -> None:
    run(seed)


@pytest.mark.skipif(not SECONDS, reason="new seeds are for `make simulate`")
def test_new_seeds() -> None:
    run_new_seeds(run, "a cluster of one")
