"""Members whose lists differ, in a simulated world: each says in its error log what the difference is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.testing import World
from tests.cluster.members import Member

HOSTS = ("alpha", "beta", "gamma")


def listed(*hosts: str) -> str:
    return "|".join(f"{number},{one}:2,{one}:3,{one}:4,{one}:5,{one}:1" for number, one in enumerate(hosts))


class Listed(Member):
    """A member with a list of its own, and the errors that it logs."""

    def __init__(self, world: World, host: str, members: str, member_id: int) -> None:
        self.errors: list[str] = []
        super().__init__(
            world,
            world.add_node(host),
            members=members,
            member_id=member_id,
            replication_channel=f"aeron:udp?endpoint={host}:0",
            startup_canvass_timeout_ns=6_000_000_000,
            on_error=self.errors.append,
        )


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261129) as made:
        yield made


def test_members_with_one_list_have_nothing_to_say(world: World) -> None:
    members = [Listed(world, host, listed(*HOSTS), number) for number, host in enumerate(HOSTS)]
    world.run_until(lambda: any(one.module.is_leader for one in members), within_s=30, what="a leader")
    world.run_for(5)
    assert [one.errors for one in members] == [[], [], []]


def test_both_sides_name_the_difference_once(world: World) -> None:
    alpha, beta = (Listed(world, host, listed(*HOSTS), number) for number, host in enumerate(HOSTS[:2]))
    world.run_until(
        lambda: alpha.module.is_leader or beta.module.is_leader, within_s=30, what="a leader of two"
    )
    gamma = Listed(world, "gamma", listed("alpha", "delta", "gamma"), 2)
    world.run_for(5)
    assert alpha.errors == [
        "member 2 has another list of members: member 1 is beta:3 here, delta:3 there; give all the same list"
    ]
    assert "member 1 is delta:3 here, beta:3 there" in "".join(gamma.errors)


def test_a_member_that_is_not_listed_is_named(world: World) -> None:
    alpha = Listed(world, "alpha", listed(*HOSTS), 0)
    Listed(world, "delta", listed(*HOSTS, "delta"), 3)
    world.run_for(5)
    stranger, other = sorted(alpha.errors)
    assert other == (
        "member 3 has another list of members: member 3 is missing here, delta:3 there; give all the same list"
    )
    assert stranger.startswith("member 3 at ")
    assert stranger.endswith(" is not in members, which are 0, 1, 2: add it everywhere, or stop it")


def test_two_machines_that_are_one_member_are_both_named(world: World) -> None:
    alpha = Listed(world, "alpha", listed(*HOSTS), 0)
    Listed(world, "beta", listed(*HOSTS), 1)
    Listed(world, "delta", listed("alpha", "delta", "gamma"), 1)
    world.run_for(5)
    (text,) = (one for one in alpha.errors if one.startswith("two processes are member 1, at "))
    assert text.endswith(": give each its own member_id")
