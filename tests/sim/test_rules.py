"""What a driver may do, and the checks of a world once took for a mistake."""

from __future__ import annotations

import pytest

import headrace
from headrace.testing import World

STREAM = 10
CHANNEL = "aeron:udp?endpoint=right:40123|term-length=64k"


def test_a_failure_names_the_seed_of_its_world() -> None:
    with pytest.raises(AssertionError) as failure, World(17):
        raise AssertionError
    assert "HEADRACE_SEED=17" in failure.value.__notes__[0]


def test_aborted_claims_leave_padding_that_ends_beyond_the_window() -> None:
    with World(1) as world:
        left, right = world.add_node("left").connect(), world.add_node("right").connect()
        subscription = right.add_subscription(CHANNEL, STREAM)
        publication = left.add_publication(CHANNEL, STREAM)
        assert publication.wait_until_connected(5)
        position = 0
        while position < 60_000:
            claim = publication.try_claim(1000)
            if isinstance(claim, headrace.Claim):
                claim.abort()
            else:
                world.step()
                subscription.poll(lambda _payload, _header: None)
            position = publication.position or 0
        world.run_for(1)
