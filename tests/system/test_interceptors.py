"""Loss on purpose at the sockets of a driver: real sockets, two drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import headrace
from headrace.testing import fixed_loss, gap_loss, random_loss
from headrace.tools import group_streams
from tests.helpers import TIMEOUT_S, await_true, take

pytestmark = pytest.mark.system

STREAM_ID = 12
MESSAGES = [bytes([number % 251]) * (100 + 37 * number % 900) for number in range(400)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rate": 2.0}, "rate=2.0 must be from 0 to 1"),
        ({"seed": -1}, "seed=-1 must not be negative"),
        ({"frames": "DATA"}, "frames='DATA' must be a list"),
        ({"frames": []}, "frames=.* must be a list"),
        ({"frames": ["data"]}, "frames='data' must be of PAD, DATA"),
    ],
)
def test_loss_of_another_kind_is_refused_by_name(arguments: Mapping[str, object], text: str) -> None:
    values: dict[str, Any] = {"rate": 0.1, "seed": 1, **arguments}
    with pytest.raises((TypeError, ValueError), match=text):
        random_loss(**values)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fixed_loss(term_id=0, term_offset=-1, length=1),
        lambda: fixed_loss(term_id=0, term_offset=0, length=-1),
        lambda: gap_loss(term_id=0, distance=64, length=-1, count=1),
        lambda: gap_loss(term_id=0, distance=64, length=1, count=-1),
    ],
)
def test_a_range_of_less_than_nothing_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="=-1 must not be negative"):
        make()


@pytest.mark.parametrize(
    "loss",
    [
        random_loss(0.1, seed=7),
        random_loss(0.5, seed=8, frames=["DATA", "SETUP"]),
        fixed_loss(term_id=0, term_offset=102, length=20_000),
        gap_loss(term_id=0, distance=4096, length=128, count=10),
    ],
    ids=["random", "setups-too", "fixed", "gaps"],
)
def test_a_stream_to_a_driver_that_drops_is_whole(loss: Mapping[str, str]) -> None:
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as sends,
        headrace.MediaDriver.embedded(threading_mode="SHARED", properties=loss) as receives,
        sends.connect() as publisher,
        receives.connect() as subscriber,
        subscriber.add_subscription("aeron:udp?endpoint=127.0.0.1:0", STREAM_ID) as subscription,
    ):
        await_true(lambda: subscription.resolved_endpoint)
        channel = (
            f"aeron:udp?endpoint={subscription.resolved_endpoint}|init-term-id=0|term-id=0|term-offset=0"
        )
        with publisher.add_publication(channel, STREAM_ID) as publication:
            for message in MESSAGES[:200]:
                publication.offer_blocking(message, timeout_s=TIMEOUT_S)
            assert take(subscription, 200) == MESSAGES[:200]
            for message in MESSAGES[200:]:
                publication.offer_blocking(message, timeout_s=TIMEOUT_S)
            assert take(subscription, 200) == MESSAGES[200:]
            # The publisher sees it too.
            (sent,) = group_streams(publisher.counters)
            assert (sent.naks_received or 0) > 0
            assert (sent.retransmits_sent or 0) > 0
        naks = next(record.value for record in subscriber.counters if record.label == "NAKs sent")
        assert naks > 0


def test_what_cannot_be_dropped_is_refused() -> None:
    with pytest.raises(ValueError, match=r"rate=1\.5 must be from 0 to 1"):
        random_loss(1.5, seed=1)
    with pytest.raises(ValueError, match="frames='RES' must be of PAD, DATA"):
        random_loss(0.5, seed=1, frames=["RES"])
    with pytest.raises(ValueError, match="length=64 must be less than distance=64"):
        gap_loss(term_id=0, distance=64, length=64, count=1)
