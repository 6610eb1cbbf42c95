"""The values that say what became of an offer."""

from __future__ import annotations

import enum
import pickle

import pytest

from headrace import (
    Action,
    BackoffIdleStrategy,
    BusySpinIdleStrategy,
    ConfigError,
    IdleStrategy,
    NoOpIdleStrategy,
    OfferResult,
    SleepingIdleStrategy,
    YieldingIdleStrategy,
)
from headrace.archive import ErrorCode, RecordingSignal, SourceLocation


def test_results_have_the_codes_of_the_specification():
    assert {result.name: int(result) for result in OfferResult} == {
        "NOT_CONNECTED": -1,
        "BACK_PRESSURED": -2,
        "ADMIN_ACTION": -3,
        "CLOSED": -4,
        "MAX_POSITION_EXCEEDED": -5,
    }
    assert not any(OfferResult)
    assert all(pickle.loads(pickle.dumps(result)) is result for result in OfferResult)
    assert {action.name for action in Action} == {"ABORT", "BREAK", "COMMIT", "CONTINUE"}


@pytest.mark.parametrize(
    "number",
    [OfferResult.CLOSED, Action.COMMIT, ErrorCode.MAX_REPLAYS, RecordingSignal.STOP, SourceLocation.LOCAL],
)
def test_numbers_of_the_protocol_print_by_name(number: enum.IntEnum):
    name = f"{type(number).__name__}.{number.name}"
    assert (str(number), f"{number}", f"{number:>40}".strip()) == (name, name, name)
    assert f"{number:d}" == str(int(number))
    assert pickle.loads(pickle.dumps(number)) is number


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        (BackoffIdleStrategy(spins_max=1, yields_max=1, park_min_ns=1, park_max_ns=2), "backoff"),
        (BusySpinIdleStrategy(), "spin"),
        (NoOpIdleStrategy(), "noop"),
        (SleepingIdleStrategy(1), "sleep-ns"),
        (YieldingIdleStrategy(), "yield"),
        (IdleStrategy("sleep-ms"), "sleep-ms"),
    ],
)
def test_idle_strategies_idle(strategy, name):
    assert isinstance(strategy, IdleStrategy)
    assert strategy.name in (name, "sleep-ns")
    for work_count in (0, 0, 0, 5, 0):
        strategy.idle(work_count)
    strategy.idle()
    strategy.reset()


def test_an_idle_strategy_that_makes_no_sense_is_named():
    with pytest.raises(ConfigError, match="backoff"):
        IdleStrategy("backoff", "1-2-3")
    with pytest.raises(ConfigError, match="controllable"):
        IdleStrategy("controllable")
    with pytest.raises(ConfigError, match="work_count=-1"):
        BackoffIdleStrategy().idle(-1)
