"""Three members in processes of their own, killed over and over under load: nothing that was answered is lost.

`make soak-cluster` repeats it for long, and prints how long the client went without an answer.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable

import pytest

from tests.cluster.processes import Load, Node, Parts, Processes, processes
from tests.cluster.test_kill_loops import seeded
from tests.helpers import rounds

pytestmark = [pytest.mark.faults, pytest.mark.slow]

KILLS = 3


class Kills:
    """Ends members, or parts of them, and notes what the client saw of it.

    Args:
        cluster: The members and the client.
        load: The client.
        choose: What decides.
    """

    def __init__(self, cluster: Processes, load: Load, choose: random.Random) -> None:
        self._cluster = cluster
        self._load = load
        self._choose = choose
        self.took_ms: dict[str, list[float]] = defaultdict(list)

    def one(self) -> None:
        """One more; returns once its members run again."""
        leader = self._cluster.settled()
        followers = [member for member in self._cluster.members if member is not leader]
        # Some while a snapshot is taken, which is some tens of milliseconds.
        if self._choose.random() < 0.3:
            self._load.take_snapshot()
        time.sleep(self._choose.uniform(0, 0.2))
        kind = self._choose.choice(("leader", "leader", "follower", "majority", "part", "pause"))
        [parts] = [member for member in self._cluster.members if isinstance(member, Parts)]
        if kind == "part":
            self._part(parts, leader)
        elif kind == "pause" and not isinstance(leader, Parts):
            self._paused(leader)
        elif kind == "follower":
            self._killed("follower", [self._choose.choice(followers)])
        elif kind == "majority":
            self._killed("leader and a follower", [leader, self._choose.choice(followers)])
        else:
            self._killed("leader in four processes" if isinstance(leader, Parts) else "leader", [leader])

    def _killed(self, what: str, members: list[Node]) -> None:
        def end() -> None:
            for member in members:
                member.kill()
            if len(members) > 1:
                # Without them there is no answer.
                start()

        def start() -> None:
            for member in members:
                member.start()

        self._noted(what, end)
        if len(members) == 1:
            time.sleep(self._choose.uniform(0, 0.5))
            start()

    def _part(self, member: Parts, leader: Node) -> None:
        name = self._choose.choice(Parts.NAMES)
        what = f"{name} of {'the leader' if member is leader else 'a follower'}"
        before = member.module_pid
        self._noted(what, lambda: member.kill_part(name))
        self._cluster.until(lambda: member.module_pid != before, f"a new start after the end of the {name}")

    def _paused(self, leader: Node) -> None:
        """It neither ends nor goes on: the others wait for its heartbeats, as for those of a dead machine."""
        self._noted("leader that stands still", leader.pause)
        leader.go_on()

    def _noted(self, what: str, happens: Callable[[], object]) -> None:
        """What the client sees of it: the longest time without an answer until it has had 50 more."""
        print(f"{time.strftime('%X')} {what}", end=": ", flush=True)
        self._load.begin_gap()
        happens()
        self._cluster.answered()
        took_ms = self._load.longest_ns / 1e6
        print(f"{took_ms:.0f} ms", flush=True)
        self.took_ms[what].append(took_ms)

    def report(self) -> None:
        """Print the figures."""
        for what, took_ms in sorted(self.took_ms.items()):
            took_ms.sort()
            p50, p95 = (took_ms[int(len(took_ms) * share)] for share in (0.5, 0.95))
            print(f"{what}, {len(took_ms)} times: p50 {p50:.0f}, p95 {p95:.0f}, worst {took_ms[-1]:.0f} ms")


def test_three_members_are_killed_over_and_over() -> None:
    choose = seeded("three members")
    with processes("nnp") as cluster, cluster.running() as load:
        kills = Kills(cluster, load, choose)
        for _ in range(rounds(KILLS)):
            kills.one()
        cluster.settled()
        answered = cluster.finish()
        kills.report()
        print(f"{answered} commands answered, each in every log, once")
        assert answered > 50 * KILLS
