"""A client and members that do what chance says, also what no member should: it ends with an error, or goes on."""

from __future__ import annotations

import itertools
import random

import pytest

import headrace
from headrace.cluster import ClientState, ClusterClient
from headrace.testing import Link, World
from tests.cluster.client_lab import Lab, ScriptedMember
from tests.helpers import rounds

pytestmark = pytest.mark.sim

SETTINGS = {"message_timeout_ns": 2_000_000_000, "keep_alive_interval_ns": 300_000_000}


class Chaos:
    """Members of which one leads, and what happens to them."""

    def __init__(self, lab: Lab, chance: random.Random) -> None:
        self.lab = lab
        self.chance = chance
        self.members = lab.add_members(3)
        self.leader = self.members[0]
        for member in self.members:
            member.is_strict = False
            member.on_connect = lambda request, member=member: self.on_connect(member, request)
        self.expected = 0

    def on_connect(self, member: ScriptedMember, request: object) -> None:
        if member is self.leader:
            member.accept(request)  # type: ignore[arg-type]
        else:
            detail = self.chance.choice([self.lab.endpoints] * 5 + ["", "0=x", self.lab.endpoints[:-3]])
            member.event(
                headrace.cluster.EventCode.REDIRECT,
                request.correlation_id,  # type: ignore[attr-defined]
                detail=detail,
                leader_member_id=self.leader.member_id,
            )

    def happens(self) -> None:
        """Something does."""
        self.chance.choice([self.elects, self.babbles, self.cuts, self.mends, self.loses, self.mends])()

    def elects(self) -> None:
        old = self.leader
        new = self.chance.choice([member for member in self.members if member is not old])
        if old.egress is None:
            return
        self.leader = new
        new.listen()
        endpoints = self.chance.choice([self.lab.endpoints] * 5 + ["", "garbage", "7=n0:1"])
        new.take_over(old, endpoints)
        old.stop_speaking()

    def babbles(self) -> None:
        for member in self.members:
            if member.egress is not None:
                member.say(self.chance.randbytes(self.chance.randrange(1, 200)))
                member.message(b"9999999", session_id=self.chance.randrange(100, 200))

    def cuts(self) -> None:
        self.lab.world.partition([self.lab.app], [self.chance.choice(self.members).node])

    def mends(self) -> None:
        self.lab.world.heal()

    def loses(self) -> None:
        self.chance.choice(self.members).stop_listening()


def live(lab: Lab, chaos: Chaos, cluster: ClusterClient, echoes: list[tuple[int, int]]) -> None:
    """Sends numbers and reads the echoes, each with its term, until the session ends or for a while."""
    end_s = lab.world.now_s + 20
    while lab.world.now_s < end_s:
        cluster.offer(b"%d" % chaos.expected)
        chaos.expected += 1
        cluster.poll(lambda message: echoes.append((message.leadership_term_id, int(message.payload))))
        lab.world.run_for(chaos.chance.uniform(0, 0.05))
        if chaos.chance.random() < 0.03:
            chaos.happens()


@pytest.mark.parametrize("seed", range(rounds(8)))
def test_a_session_goes_on_or_ends_with_an_error_whatever_members_do(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    with World(seed, checks=False) as world:
        lab = Lab(world)
        chaos = Chaos(lab, chance)
        world.set_links(Link(loss=0.02, duplicate=0.02, jitter_s=200e-6))
        for _ in range(3):
            begun_s = world.now_s
            try:
                cluster = lab.connect(**SETTINGS)
            except headrace.cluster.ClusterError:
                assert world.now_s - begun_s < 2.1
                chaos.mends()
                chaos.leader.listen()
                continue
            echoes: list[tuple[int, int]] = []
            try:
                live(lab, chaos, cluster, echoes)
            except headrace.cluster.ClusterError:
                assert cluster.state is ClientState.CLOSED
                assert cluster.offer(b"0") is headrace.OfferResult.CLOSED
            # What an old leader has sent may come later than the next one's first words, but no echo comes twice.
            assert len({number for _, number in echoes}) == len(echoes)
            for _, of_term in itertools.groupby(
                sorted(echoes, key=lambda echo: echo[0]), lambda echo: echo[0]
            ):
                assert all(earlier < later for earlier, later in itertools.pairwise(of_term))
            cluster.close()
            chaos.mends()
    assert not [record for record in caplog.records if "must not go" in record.message]
