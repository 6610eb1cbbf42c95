"""Times that drivers and the kernel write into messages, on real sockets."""

from __future__ import annotations

import time

import pytest

import headrace
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.system

STREAM_ID = 14
COUNT = 500


def test_each_message_has_the_times_of_sending_and_of_arrival() -> None:
    """In the order in which they happened; datagrams that the kernel joins have them as well."""
    stamps = "channel-snd-ts-offset=0|media-rcv-ts-offset=8|channel-rcv-ts-offset=reserved"
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        driver.connect() as client,
        client.add_subscription(f"aeron:udp?endpoint=127.0.0.1:0|{stamps}", STREAM_ID) as subscription,
    ):
        await_true(lambda: subscription.resolved_endpoint)
        channel = f"aeron:udp?endpoint={subscription.resolved_endpoint}|mtu=256|{stamps}"
        with client.add_publication(channel, STREAM_ID) as publication:
            before = time.time_ns()
            for _ in range(COUNT):
                publication.offer_blocking(bytes(200), timeout_s=TIMEOUT_S)
            messages: list[tuple[bytes, int]] = []

            def keep(payload: bytes, header: headrace.Header) -> None:
                messages.append((payload, header.reserved_value))

            await_true(lambda: subscription.poll(keep, 64) == 0 and len(messages) == COUNT)
            after = time.time_ns()
    for payload, received in messages:
        sent, arrived = (int.from_bytes(payload[at : at + 8], "little") for at in (0, 8))
        assert before <= sent <= arrived <= received <= after
        assert payload[16:] == bytes(184)


def test_a_channel_that_asks_for_other_timestamps_is_refused_by_name() -> None:
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver, driver.connect() as client:
        channel = f"aeron:udp?endpoint={free_endpoint()}"
        with (
            client.add_subscription(f"{channel}|media-rcv-ts-offset=0", STREAM_ID),
            pytest.raises(headrace.RegistrationError, match="media-rcv-ts-offset=none existing=0"),
        ):
            client.add_subscription(channel, STREAM_ID + 1)
        with pytest.raises(headrace.RegistrationError, match="overlap: a timestamp takes 8 bytes"):
            client.add_subscription(f"{channel}|media-rcv-ts-offset=0|channel-rcv-ts-offset=4", STREAM_ID)
