"""Publications: what offers take, and what they answer."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from array import array

import numpy as np
import pytest

import headrace
from headrace import OfferResult
from tests.helpers import TIMEOUT_S, await_true, take
from tests.ports import free_endpoint

pytestmark = pytest.mark.boundary

IPC = "aeron:ipc?term-length=64k"
UDP = f"aeron:udp?endpoint={free_endpoint()}|term-length=64k|linger=0"
on_both_media = pytest.mark.parametrize("channel", [IPC, UDP], ids=["ipc", "udp"])


@on_both_media
def test_a_publisher_that_is_told_of_a_reader_has_room(media_client, channel):
    for stream_id in range(100):
        with (
            media_client.add_publication(channel, stream_id) as publication,
            media_client.add_subscription(channel, stream_id),
        ):
            assert publication.wait_until_connected(TIMEOUT_S)
            assert publication.offer(b"at once") > 0


@on_both_media
def test_a_publisher_that_is_told_that_its_reader_left_has_no_room(media_client, channel):
    for stream_id in range(40):
        with media_client.add_publication(channel, stream_id) as publication:
            with media_client.add_subscription(channel, stream_id):
                assert publication.wait_until_connected(TIMEOUT_S)
            await_true(lambda publication=publication: not publication.is_connected)
            assert publication.offer(b"at once") is OfferResult.NOT_CONNECTED


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(
    ("data", "sent"),
    [
        (b"bytes", b"bytes"),
        (b"", b""),
        (bytearray(b"bytearray"), b"bytearray"),
        (memoryview(b"memoryview")[6:], b"view"),
        (array("i", [1, -1]), b"\x01\0\0\0\xff\xff\xff\xff"),
        (np.arange(3, dtype="<u2"), b"\0\0\x01\0\x02\0"),
        ((b"several", bytearray(b" "), memoryview(b"parts")), b"several parts"),
        ([b"list"], b"list"),
        ((), b""),
        (b"f" * 5000, b"f" * 5000),
    ],
)
def test_any_contiguous_buffer_can_be_sent(open_stream, exclusive, data, sent):
    publication, subscription = open_stream(exclusive=exclusive)
    position = publication.offer(data)
    assert position > 0
    assert position == publication.position
    assert take(subscription, 1) == [sent]


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ("text", TypeError, "bytes-like"),
        (7, TypeError, "bytes-like"),
        ((b"a", "b"), TypeError, "bytes-like"),
        (np.zeros((4, 4), np.uint8)[:, 1], ValueError, "C-contiguous"),
    ],
)
def test_what_is_no_buffer_is_refused(stream, data, error, text):
    publication, _ = stream
    before = publication.position
    with pytest.raises(error, match=text):
        publication.offer(data)
    assert publication.position == before


def test_more_messages_than_memory_has_places_for_are_refused(stream):
    publication, _ = stream
    with pytest.raises(MemoryError, match="places of 576460752303423488 messages"):
        publication.offer_batch(np.empty((2**59, 0), np.uint8))


def test_a_message_too_long_names_the_rule(stream):
    publication, _ = stream
    with pytest.raises(headrace.ConfigError, match="max_message_length=8192") as refusal:
        publication.offer(bytes(8193))
    assert (refusal.value.setting, refusal.value.value) == ("len(data)", "8193")
    assert publication.offer(bytes(8192)) > 0


def test_refusals_are_values_and_the_same_object_each_time(media_client):
    publication = media_client.add_publication("aeron:ipc?term-length=64k", 4000)
    result = publication.offer(b"no subscriber")
    assert result is OfferResult.NOT_CONNECTED
    assert result is publication.offer(b"no subscriber")
    assert not result
    assert result < 0
    publication.close()
    assert publication.offer(b"too late") is OfferResult.CLOSED


def test_back_pressure_is_a_value_until_the_subscriber_reads(stream):
    publication, subscription = stream
    while (result := publication.offer(bytes(1000))) > 0:
        pass
    assert result is OfferResult.BACK_PRESSURED
    assert publication.available_window <= 0
    taken = 0

    def read_on() -> bool:
        nonlocal taken
        taken += subscription.poll(lambda payload, header: None, 1000)
        return publication.offer(b"there is room again") > 0

    await_true(read_on)
    assert taken >= 30


def test_a_full_term_is_an_admin_action(stream):
    publication, subscription = stream
    results = []

    def offered() -> bool:
        results.append(publication.offer(bytes(1000)))
        subscription.poll(lambda payload, header: None, 10)
        return results[-1] is OfferResult.ADMIN_ACTION

    await_true(offered)
    assert publication.position == publication.term_length
    # The driver may not have seen yet how far the reader is.
    await_true(lambda: publication.offer(bytes(1000)) > publication.term_length)


def test_offer_blocking_waits_for_room(stream):
    publication, subscription = stream
    received = []

    def read() -> None:
        while len(received) < 500:
            subscription.poll(lambda payload, header: received.append(len(payload)), 10)

    reader = threading.Thread(target=read)
    reader.start()
    last = 0
    for _ in range(500):
        position = publication.offer_blocking(bytearray(1000), timeout_s=TIMEOUT_S)
        assert position > last
        last = position
    reader.join(TIMEOUT_S)
    assert received == [1000] * 500


def test_offer_blocking_gives_up_saying_what_was_missing(media_client):
    publication = media_client.add_publication("aeron:ipc?term-length=64k", 4001)
    with pytest.raises(
        headrace.PublicationTimeoutError, match="no subscriber is connected, and none came in time"
    ) as refusal:
        publication.offer_blocking(b"x", timeout_s=0.01)
    assert isinstance(refusal.value, TimeoutError)
    assert refusal.value.result is OfferResult.NOT_CONNECTED
    assert "stream_id=4001" in str(refusal.value)
    publication.close()
    with pytest.raises(headrace.PublicationClosedError):
        publication.offer_blocking(b"x", timeout_s=None)


def test_offer_blocking_under_back_pressure_names_the_positions(stream):
    publication, _ = stream
    while publication.offer(bytes(1000)) is not OfferResult.BACK_PRESSURED:
        pass
    with pytest.raises(headrace.PublicationTimeoutError, match=r"position=\d+ limit=\d+") as refusal:
        publication.offer_blocking((b"a", b"b"), timeout_s=0.01, idle=headrace.YieldingIdleStrategy())
    assert refusal.value.result is OfferResult.BACK_PRESSURED


@pytest.mark.parametrize("timeout_s", [-1.0, float("nan")])
def test_a_timeout_must_make_sense(stream, timeout_s):
    publication, _ = stream
    with pytest.raises(headrace.ConfigError, match="timeout_s"):
        publication.offer_blocking(b"x", timeout_s=timeout_s)


def test_an_unknown_idle_strategy_is_named(stream):
    publication, _ = stream
    with pytest.raises(headrace.ConfigError, match="nap"):
        publication.offer_blocking(b"x", idle="nap")


class InterruptedBySignal(Exception):
    """What the signal handler of the test below raises."""


@pytest.fixture
def alarm():
    def interrupt(signum, frame):
        raise InterruptedBySignal

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "wait",
    [
        lambda publication, subscription: publication.offer_blocking(b"x", timeout_s=TIMEOUT_S),
        lambda publication, subscription: publication.claim_blocking(8, timeout_s=TIMEOUT_S),
        lambda publication, subscription: publication.offer_batch_blocking([b"x"], timeout_s=TIMEOUT_S),
        lambda publication, subscription: publication.wait_until_connected(TIMEOUT_S),
        lambda publication, subscription: subscription.receive(timeout_s=TIMEOUT_S),
        lambda publication, subscription: headrace.connect(
            "/dev/shm/no-driver-here", driver_timeout_ms=30_000
        ),
    ],
    ids=["offer", "claim", "batch", "connected", "receive", "connect"],
)
def test_a_wait_ends_with_a_signal(media_client, alarm, wait):
    publication = media_client.add_publication("aeron:ipc?term-length=64k", 4002)
    subscription = media_client.add_subscription("aeron:ipc?term-length=64k", 4003)

    def interrupted():
        alarm()
        wait(publication, subscription)

    with pytest.raises(InterruptedBySignal):
        interrupted()


def test_an_exclusive_publication_is_a_publication_with_more(open_stream):
    publication, subscription = open_stream(exclusive=True)
    assert isinstance(publication, headrace.Publication)
    assert publication.append_padding(100) == 160
    assert publication.offer(b"after padding") == 160 + 64
    assert take(subscription, 1) == [b"after padding"]
    with pytest.raises(headrace.ConfigError, match="block"):
        publication.offer_block(bytes(32))


def test_a_block_of_frames_arrives_as_it_was_read(open_stream):
    source, source_subscription = open_stream(exclusive=True)
    target, target_subscription = open_stream(exclusive=True)
    for number in range(3):
        source.offer(bytes([number]) * 40)
    blocks = []
    await_true(lambda: source_subscription.block_poll(lambda *block: blocks.append(block), 4096))
    frames, session_id, term_id, term_offset = blocks[0]
    assert (session_id, term_id, term_offset) == (source.session_id, source.initial_term_id, 0)
    moved = bytearray(frames)
    for begin in range(0, len(moved), 96):
        moved[begin + 12 : begin + 16] = target.session_id.to_bytes(4, "little", signed=True)
        moved[begin + 16 : begin + 20] = target.stream_id.to_bytes(4, "little", signed=True)
        moved[begin + 20 : begin + 24] = target.initial_term_id.to_bytes(4, "little", signed=True)
    assert target.offer_block(moved) == len(moved)
    assert take(target_subscription, 3) == [bytes([number]) * 40 for number in range(3)]


def test_two_writers_of_an_exclusive_publication_are_told(open_stream):
    publication, subscription = open_stream(exclusive=True, channel="aeron:ipc?term-length=16m")
    rows = np.zeros((100_000, 32), np.uint8)
    refused = []

    def write() -> None:
        try:
            while not refused:
                publication.offer_batch(rows)
        except headrace.ReentrantError as error:
            refused.append(error)

    other = threading.Thread(target=write)
    other.start()

    def offered_into_the_other() -> bool:
        try:
            if publication.offer(b"x") is OfferResult.BACK_PRESSURED:
                subscription.poll_batch(1_000_000)
        except headrace.ReentrantError as error:
            refused.append(error)
        return bool(refused)

    await_true(offered_into_the_other)
    other.join(TIMEOUT_S)
    assert "written by another thread" in str(refused[0])


def test_attributes_tell_the_stream(stream):
    publication, subscription = stream
    assert publication.channel == subscription.channel == "aeron:ipc?term-length=64k"
    assert publication.stream_id == subscription.stream_id
    assert publication.term_length == 65536
    assert publication.max_message_length == 8192
    assert publication.max_payload_length == 1376
    assert publication.is_connected
    assert publication.is_original
    assert publication.channel_status == "active"
    assert publication.position_limit == publication.available_window == 32768
    assert "connected" in repr(publication)


def test_writers_of_one_channel_and_stream_share_the_log(media_client, stream):
    publication, subscription = stream
    other = media_client.add_publication(publication.channel, publication.stream_id)
    assert not other.is_original
    assert other.session_id == publication.session_id
    assert publication.offer(b"first") == 64
    assert other.offer(b"second") == 128
    assert take(subscription, 2) == [b"first", b"second"]


@pytest.mark.parametrize("timeout_s", [float("inf"), 1e300])
def test_a_timeout_longer_than_a_clock_counts_is_never_over(stream, timeout_s) -> None:
    publication, subscription = stream
    publication.offer_blocking(b"x", timeout_s=timeout_s)
    assert subscription.receive(timeout_s=timeout_s).payload == b"x"


@pytest.mark.parametrize("add", ["add_publication", "add_exclusive_publication"])
@pytest.mark.parametrize("data", [b"one frame", bytearray(b"x" * 5000), [b"in ", b"parts"]], ids=type)
def test_an_offer_may_give_each_frame_a_reserved_value(media_client, add, data):
    subscription = media_client.add_subscription("aeron:ipc", 31)
    publication = getattr(media_client, add)("aeron:ipc", 31)
    assert publication.wait_until_connected(TIMEOUT_S)
    whole = b"".join(data) if isinstance(data, list) else bytes(data)
    for value in (-(2**63), 2**63 - 1, 0, None):
        await_true(lambda value=value: publication.offer(data, reserved_value=value) > 0)
        message = subscription.receive(TIMEOUT_S)
        assert (message.payload, message.reserved_value) == (whole, value or 0)
    await_true(lambda: publication.offer(data, reserved_value=7) > 0)
    values = []
    frames = -(-len(whole) // publication.max_payload_length)
    take = lambda payload, header: values.append(header.reserved_value)  # noqa: E731
    await_true(lambda: subscription.poll(take, assemble=False) >= 0 and len(values) == frames)
    assert set(values) == {7}


@pytest.mark.parametrize("add", ["add_publication", "add_exclusive_publication"])
@pytest.mark.parametrize("way", ["offer_blocking", "offer_async"])
@pytest.mark.parametrize("data", [b"one frame", [b"in ", b"parts"]], ids=type)
def test_an_offer_that_waits_may_give_a_reserved_value(media_client, add, way, data):
    """Also the offer that found no room at first, and is made again."""
    channel = "aeron:ipc?term-length=64k"
    publication = getattr(media_client, add)(channel, 32)

    def send() -> None:
        sent = getattr(publication, way)(data, reserved_value=-7, timeout_s=TIMEOUT_S)
        if inspect.isawaitable(sent):
            asyncio.run(_awaited(sent))

    sender = threading.Thread(target=send)
    sender.start()
    subscription = media_client.add_subscription(channel, 32)
    message = subscription.receive(TIMEOUT_S)
    assert message.reserved_value == -7
    sender.join()
    send()
    assert subscription.receive(TIMEOUT_S).reserved_value == -7
    publication.offer_blocking(data)
    assert subscription.receive(TIMEOUT_S).reserved_value == 0


async def _awaited(sent):
    await sent


def test_a_reserved_value_is_a_number_of_64_bits(stream):
    for way in (stream[0].offer, stream[0].offer_blocking):
        with pytest.raises(
            headrace.ConfigError, match="reserved_value=9223372036854775808: must be a whole number"
        ):
            way(b"x", reserved_value=2**63)
