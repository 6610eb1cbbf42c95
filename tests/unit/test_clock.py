"""Clocks: the machine's, and one that a test moves."""

import math

import pytest

from headrace import ConfigError
from headrace.clock import SYSTEM_CLOCK, Clock, Deadline
from headrace.testing import ManualClock


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(epoch_ns=5_000_000)
    begun_ns = clock.monotonic_ns()
    clock.advance(1.5)
    clock.sleep(0.5)
    clock.advance_ns(1_000_000)
    assert clock.monotonic_ns() - begun_ns == 2_001_000_000
    assert clock.epoch_ns() == 2_006_000_000
    assert clock.epoch_ms() == 2_006
    clock.set_epoch_ns(0)
    assert (clock.epoch_ns(), clock.monotonic_ns() - begun_ns) == (0, 2_001_000_000)
    with pytest.raises(ValueError, match="duration_ns=-1"):
        clock.advance_ns(-1)


def test_a_manual_clock_jumps_to_the_next_deadline_of_those_that_are_held() -> None:
    clock = ManualClock()
    begun_ns = clock.monotonic_ns()
    late, soon, never = clock.deadline(9), clock.deadline(2), clock.deadline(None)
    clock.deadline(1)  # held by no one
    assert clock.jump()
    assert clock.monotonic_ns() - begun_ns == 2_000_000_000
    assert (soon.is_over, late.is_over, never.is_over) == (True, False, False)
    assert late.left_s() == 7
    assert clock.jump()
    assert late.is_over
    assert late.left_s() == 0
    assert not clock.jump()
    assert clock.monotonic_ns() - begun_ns == 9_000_000_000


@pytest.mark.parametrize("clock", [SYSTEM_CLOCK, ManualClock()])
def test_deadlines_that_are_never_over_and_over_at_once(clock: Clock) -> None:
    for timeout_s in (None, math.inf, 1e300):
        never = clock.deadline(timeout_s)
        assert never.left_s() is None
        assert not never.is_over
        assert repr(never) == "Deadline(never)"
    now: Deadline = clock.deadline(0.0)
    assert now.is_over
    assert now.left_s() == 0
    for timeout_s in (-3.0, -math.inf, math.nan):
        with pytest.raises(ConfigError, match=r"timeout_s=.*: must be a number of seconds of at least 0"):
            clock.deadline(timeout_s)
