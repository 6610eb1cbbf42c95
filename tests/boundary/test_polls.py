"""Polling: what handlers get, what happens when they raise, keep things or call back."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest

import headrace
from headrace import Action
from tests.helpers import TIMEOUT_S, await_true, take

pytestmark = pytest.mark.boundary


def poll_until(subscription, handler, count, **options):
    seen = 0

    def enough() -> bool:
        nonlocal seen
        seen += subscription.poll(handler, count, **options)
        return seen >= count

    await_true(enough)


def test_headers_tell_the_frame(stream):
    publication, subscription = stream
    publication.offer(b"abc")
    headers = []
    poll_until(subscription, lambda payload, header: headers.append(header), 1)
    (header,) = headers
    assert header.position == publication.position == 64
    assert (header.session_id, header.stream_id) == (publication.session_id, publication.stream_id)
    assert (header.term_id, header.term_offset) == (publication.initial_term_id, 0)
    assert (header.frame_length, header.flags, header.reserved_value) == (35, 0xC0, 0)
    assert "position=64" in repr(header)


def test_a_kept_header_stays_what_it_was_and_others_are_used_again(stream):
    publication, subscription = stream
    for _ in range(4):
        publication.offer(b"x")
    kept, ids = [], []

    def handler(payload, header):
        ids.append(id(header))
        if len(ids) == 2:
            kept.append(header)

    poll_until(subscription, handler, 4)
    assert kept[0].position == 128
    assert ids[0] == ids[1] != ids[2]
    assert ids[2] == ids[3]


def test_a_handler_that_raises_loses_nothing(stream):
    publication, subscription = stream
    for number in range(5):
        publication.offer(bytes([number]))
    seen = []

    def handler(payload, header):
        seen.append(payload[0])
        if payload[0] == 2:
            raise LookupError("message two")

    with pytest.raises(LookupError, match="message two"):
        poll_until(subscription, handler, 5)
    assert subscription.images[0].position == 3 * 64
    poll_until(subscription, handler, 2)
    assert seen == [0, 1, 2, 3, 4]


def test_messages_of_many_fragments_come_whole(open_stream):
    publication, subscription = open_stream(channel="aeron:ipc?term-length=1m")
    whole = np.random.default_rng(1).bytes(100_000)
    publication.offer(whole)
    publication.offer(b"small")
    headers = []
    taken = []
    poll_until(subscription, lambda payload, header: (taken.append(payload), headers.append(header)), 74)
    assert taken == [whole, b"small"]
    assert headers[0].frame_length == 32 + 100_000
    assert headers[0].flags == 0xC0
    assert headers[0].position == publication.position - 64


def test_the_longest_message_is_16_mib(open_stream):
    publication, subscription = open_stream(channel="aeron:ipc?term-length=128m|mtu=65504")
    assert publication.max_message_length == 16 * 1024 * 1024
    whole = np.random.default_rng(2).bytes(publication.max_message_length)
    publication.offer_blocking(whole)
    message = subscription.receive(timeout_s=TIMEOUT_S)
    assert message is not None
    assert message.payload == whole


def test_fragments_can_be_had_one_by_one(stream):
    publication, subscription = stream
    publication.offer(b"a" * 3000)
    fragments = []
    poll_until(
        subscription,
        lambda payload, header: fragments.append((len(payload), header.flags)),
        3,
        assemble=False,
    )
    assert fragments == [(1376, 0x80), (1376, 0x00), (248, 0x40)]


def test_a_view_ends_with_its_handler(stream):
    publication, subscription = stream
    publication.offer(b"abc")
    publication.offer(b"d" * 3000)
    views, seen = [], []

    def handler(view, header):
        assert isinstance(view, memoryview)
        assert view.readonly
        seen.append(bytes(view))
        views.append(view)

    poll_until(subscription, handler, 4, view=True)
    assert seen == [b"abc", b"d" * 3000]
    for view in views:
        with pytest.raises(ValueError, match="released"):
            bytes(view)


@pytest.mark.parametrize(
    "make",
    [lambda view: view[1:], lambda view: np.frombuffer(view, np.uint8), lambda view: memoryview(view)],
    ids=["slice", "array", "memoryview"],
)
def test_what_is_made_from_a_view_and_kept_is_refused(stream, make):
    publication, subscription = stream
    publication.offer(b"first")
    publication.offer(b"second")
    kept = []
    with pytest.raises(BufferError, match="copy what you keep"):
        poll_until(subscription, lambda view, header: kept.append(make(view)), 2, view=True)
    # The message was consumed, what was kept is still mapped, and the next one arrives.
    assert subscription.images[0].position == 64
    assert bytes(kept[0])[-1:] == b"t"
    assert take(subscription, 1) == [b"second"]


def test_a_view_of_a_block_shows_its_frames_and_ends_with_its_handler(stream):
    publication, subscription = stream
    publication.offer(b"a" * 40)
    views, seen = [], []

    def handler(view, session_id, term_id, term_offset):
        assert view.readonly
        seen.append((bytes(view[32:72]), len(view), session_id, term_offset))
        views.append(view)

    await_true(lambda: subscription.block_poll(handler, 4096, view=True))
    assert seen == [(b"a" * 40, 96, publication.session_id, 0)]
    with pytest.raises(ValueError, match="released"):
        bytes(views[0])
    publication.offer(b"b" * 40)
    with pytest.raises(BufferError, match="copy what you keep"):
        await_true(lambda: subscription.block_poll(lambda *block: views.append(block[0][:]), 4096, view=True))
    assert bytes(views[1][32:72]) == b"b" * 40


def test_a_run_of_frames_whose_handler_raises_is_given_again(stream):
    """So that a recorder that cannot write a run does not let the publisher go on."""
    publication, subscription = stream
    publication.offer_blocking(b"first")
    image = subscription.images[0]
    before, runs = image.position, []

    def refuse(run, *_):
        runs.append(bytes(run))
        raise OSError("no room")

    for _ in range(2):
        with pytest.raises(OSError, match="no room"):
            await_true(lambda: image.block_poll(refuse, 4096))
        assert image.position == before
    assert image.block_poll(lambda run, *_: runs.append(bytes(run)), 4096) == image.position - before
    assert len(set(runs)) == 1
    assert len(runs) == 3


def test_kept_memory_can_be_read_after_everything_is_closed(media_driver):
    kept = []
    with media_driver.connect(resource_linger_ns=0) as client:
        subscription = client.add_subscription("aeron:ipc?term-length=64k", 4100)
        publication = client.add_publication("aeron:ipc?term-length=64k", 4100)
        publication.offer_blocking(b"kept")
        with pytest.raises(BufferError):
            poll_until(subscription, lambda view, header: kept.append(view[:]), 1, view=True)
    del subscription, publication, client
    gc.collect()
    # The log is gone, and its place in memory is not.
    assert bytes(kept[0]) == bytes(4)


def test_a_handlers_own_exception_is_worth_more_than_a_kept_view(stream):
    publication, subscription = stream
    publication.offer(b"abc")

    def handler(view, header):
        part = view[1:]
        raise LookupError(bytes(part))

    with pytest.raises(LookupError, match="bc"):
        poll_until(subscription, handler, 1, view=True)


def test_a_poll_inside_its_own_handler_is_refused(stream):
    publication, subscription = stream
    publication.offer(b"x")
    errors = []

    def handler(payload, header):
        for poll in (
            lambda: subscription.poll(handler),
            subscription.poll_batch,
            subscription.poll_message,
            lambda: subscription.controlled_poll(handler),
        ):
            with pytest.raises(headrace.ReentrantError, match="from inside its own handler") as refusal:
                poll()
            errors.append(refusal.value)

    poll_until(subscription, handler, 1)
    assert len(errors) == 4


def test_a_handler_may_close_the_subscription(stream):
    publication, subscription = stream
    for _ in range(3):
        publication.offer(b"x")
    seen = []

    def handler(payload, header):
        seen.append(payload)
        subscription.close()

    poll_until(subscription, handler, 1)
    assert len(seen) == 1
    with pytest.raises(headrace.ClosedError):
        subscription.poll(handler)


def test_controlled_polls_do_as_told(stream):
    publication, subscription = stream
    for number in range(6):
        publication.offer(bytes([number]))
    seen = []
    wanted = {0: None, 1: Action.CONTINUE, 2: Action.COMMIT, 3: Action.ABORT}

    def handler(payload, header):
        number = payload[0]
        seen.append(number)
        if number == 2:
            return wanted[2]
        if number == 3:
            assert subscription.images[0].position == 3 * 64
        return wanted.get(number, Action.BREAK)

    await_true(lambda: subscription.controlled_poll(handler, 10) == 3)
    assert seen == [0, 1, 2, 3]
    assert subscription.images[0].position == 3 * 64
    wanted[3] = Action.BREAK
    assert subscription.controlled_poll(handler, 10) == 1
    assert subscription.controlled_poll(handler, 10) == 1
    assert seen == [0, 1, 2, 3, 3, 4]


def test_an_aborted_message_of_fragments_comes_again(stream):
    publication, subscription = stream
    publication.offer(b"a" * 3000)
    answers = [Action.ABORT, Action.CONTINUE]
    seen = []

    def handler(payload, header):
        seen.append(payload)
        return answers.pop(0)

    await_true(lambda: (subscription.controlled_poll(handler, 10), not answers)[1])
    assert seen == [b"a" * 3000] * 2


def test_a_message_that_one_image_has_begun_is_delivered_by_the_image_that_takes_it_over(
    stream, media_client
):
    publication, subscription = stream
    with media_client.add_subscription(publication.channel, publication.stream_id) as other:
        await_true(lambda: other.images)
        publication.offer(b"a" * 3000)
        (first,), (second,) = subscription.images, other.images
        seen = []
        await_true(lambda: first.poll(lambda payload, header: seen.append(payload), 1))
        await_true(lambda: second.poll(lambda payload, header: None, 1, assemble=False))
        second.take_fragments(first)
        for image in (first, second):
            image.poll(lambda payload, header: seen.append((payload, header.session_id)))
        assert seen == [(b"a" * 3000, publication.session_id)]
        with pytest.raises(headrace.ReentrantError, match="image"):
            first.take_fragments(first)


@pytest.mark.parametrize("answer", ["later", True, 5])
def test_a_controlled_handler_must_answer_with_an_action(stream, answer):
    publication, subscription = stream
    publication.offer(b"x")
    with pytest.raises(TypeError, match=r"must return a member of headrace\.Action"):
        await_true(lambda: subscription.controlled_poll(lambda payload, header: answer, 1))


class Done(Exception):
    """Of a handler."""


def test_what_a_handler_raises_comes_out_although_it_has_closed_the_client(media_driver):
    client = media_driver.connect()
    subscription = client.add_subscription("aeron:ipc", 4201)
    publication = client.add_publication("aeron:ipc", 4201)
    publication.wait_until_connected(TIMEOUT_S)
    publication.offer_blocking(b"the last one")

    def handler(payload, header):
        client.close()
        raise Done

    with pytest.raises(Done):
        await_true(lambda: subscription.poll(handler, 1))


def test_a_batch_keeps_what_other_images_brought_when_one_is_busy(media_client):
    channel = "aeron:ipc?term-length=64k"
    subscription = media_client.add_subscription(channel, 4202)
    publications = [media_client.add_exclusive_publication(channel, 4202) for _ in range(2)]
    await_true(lambda: subscription.image_count == 2)
    for number, publication in enumerate(publications):
        assert publication.wait_until_connected(TIMEOUT_S)
        publication.offer_blocking(bytes([number]))
    busy = subscription.image_by_session_id(publications[1].session_id)
    taken = []

    def handler(payload, header):
        # Which image has the first turn changes.
        for _ in range(2):
            with contextlib.suppress(headrace.ReentrantError):
                taken.extend(bytes(each) for each in subscription.poll_batch())

    await_true(lambda: busy.poll(handler, 1))
    assert taken == [b"\0"]


def test_images_are_polled_by_themselves(media_client):
    channel = "aeron:ipc?term-length=64k"
    subscription = media_client.add_subscription(channel, 4200)
    first = media_client.add_exclusive_publication(channel, 4200)
    second = media_client.add_exclusive_publication(channel, 4200)
    await_true(lambda: subscription.image_count == 2)
    # A reader is told before its publisher has room.
    assert first.wait_until_connected(TIMEOUT_S)
    assert second.wait_until_connected(TIMEOUT_S)
    first.offer(b"first")
    second.offer(b"second")
    image = subscription.image_by_session_id(second.session_id)
    assert image == next(other for other in subscription.images if other.session_id == second.session_id)
    assert image.source_identity == "aeron:ipc"
    seen = []
    await_true(lambda: image.poll(lambda payload, header: seen.append(payload), 10))
    assert seen == [b"second"]
    assert (image.join_position, image.position) == (0, 64)
    assert subscription.image_by_session_id(first.session_id).position == 0
    assert len(image.poll_batch()) == 0
    assert take(subscription, 1) == [b"first"]


def test_every_handle_of_an_image_knows_the_message_that_is_half_there(stream):
    publication, subscription = stream
    publication.offer(b"a" * 3000)
    seen = []
    for _ in range(3):
        assert subscription.images[0].poll(lambda payload, header: seen.append(payload), 1) == 1
    assert seen == [b"a" * 3000]


def test_a_message_cut_off_by_its_publishers_end_is_forgotten(media_client):
    channel = "aeron:ipc?term-length=64k"
    subscription = media_client.add_subscription(channel, 4203)
    for _ in range(3):
        with media_client.add_exclusive_publication(channel, 4203) as publication:
            assert publication.wait_until_connected(TIMEOUT_S)
            publication.offer_blocking(b"a" * 3000)
            await_true(lambda: subscription.poll(lambda payload, header: None, 1))
            publication.revoke()
        await_true(lambda: subscription.image_count == 0)
    with media_client.add_exclusive_publication(channel, 4203) as publication:
        publication.offer_blocking(b"b" * 3000)
        assert take(subscription, 1) == [b"b" * 3000]


def test_bounded_polls_stop_at_a_position(stream):
    publication, subscription = stream
    for number in range(4):
        publication.offer(bytes([number]))
    (image,) = subscription.images
    seen = []
    await_true(lambda: image.bounded_poll(lambda payload, header: seen.append(payload[0]), 128, 10))
    assert seen == [0, 1]
    assert image.bounded_poll(lambda payload, header: None, 128, 10) == 0
    assert image.controlled_poll(lambda payload, header: seen.append(payload[0]), 10, limit_position=192) == 1
    assert seen == [0, 1, 2]


def test_the_end_of_a_stream_shows(stream):
    publication, subscription = stream
    publication.offer(b"last")
    (image,) = subscription.images
    assert image.end_of_stream_position is None
    publication.close()
    await_true(lambda: image.end_of_stream_position == 64)
    assert not image.is_end_of_stream
    seen = []
    await_true(lambda: image.poll(lambda payload, header: seen.append(payload), 10))
    assert seen == [b"last"]
    assert image.is_end_of_stream
    await_true(lambda: image.is_closed)
    assert image.position == 64
    assert image.is_end_of_stream


def test_image_handlers_run_and_their_exceptions_are_reported(media_client, monkeypatch):
    came, went, reported = threading.Event(), threading.Event(), []
    monkeypatch.setattr("sys.unraisablehook", lambda report: reported.append(report.exc_value))
    images = []

    def on_available(image):
        images.append(image)
        came.set()
        raise LookupError("seen")

    subscription = media_client.add_subscription(
        "aeron:ipc?term-length=64k",
        4201,
        on_available_image=on_available,
        on_unavailable_image=lambda image: went.set(),
    )
    publication = media_client.add_publication("aeron:ipc?term-length=64k", 4201)
    assert came.wait(TIMEOUT_S)
    assert images[0].session_id == publication.session_id
    await_true(lambda: reported)
    assert isinstance(reported[0], LookupError)
    publication.close()
    assert went.wait(TIMEOUT_S)
    subscription.close()


def test_a_client_handler_may_not_wait_for_the_driver(media_client):
    refused = []
    done = threading.Event()

    def on_available(image):
        try:
            media_client.add_publication("aeron:ipc", 1)
        except headrace.ReentrantError as error:
            refused.append(error)
        done.set()

    with (
        media_client.add_subscription("aeron:ipc", 4202, on_available_image=on_available),
        media_client.add_publication("aeron:ipc", 4202),
    ):
        assert done.wait(TIMEOUT_S)
    assert "handler" in str(refused[0])


def test_receive_waits_and_gives_up(stream):
    publication, subscription = stream
    assert subscription.receive(timeout_s=0.01) is None
    sender = threading.Timer(0.05, publication.offer, [b"late"])
    sender.start()
    message = subscription.receive(timeout_s=TIMEOUT_S, idle="yield")
    sender.join()
    assert message is not None
    assert (message.payload, bytes(message), len(message), message.position) == (b"late", b"late", 4, 64)
    assert repr(message).startswith("Message(b'late', position=64, ")
    assert subscription.poll_message() is None


def test_closing_ends_a_wait_in_another_thread(stream):
    _, subscription = stream
    ended = []

    def wait() -> None:
        try:
            subscription.receive(timeout_s=TIMEOUT_S)
        except headrace.ClosedError as error:
            ended.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    subscription.close()
    waiter.join(TIMEOUT_S)
    assert len(ended) == 1


def test_handlers_are_not_kept_by_a_poll(stream):
    publication, subscription = stream
    publication.offer(b"x")

    class Handler:
        def __call__(self, payload, header):
            pass

    handler = Handler()
    reference = weakref.ref(handler)
    poll_until(subscription, handler, 1)
    del handler
    assert reference() is None
