"""Everything that is called later is refused at once when it cannot be called."""

from __future__ import annotations

import asyncio

import pytest

import headrace
from headrace import aio
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.boundary

NOT_CALLABLE = [3, "handler", object()]


@pytest.mark.parametrize("wrong", [*NOT_CALLABLE, None])
def test_polls_refuse_what_they_cannot_call(stream, wrong):
    publication, subscription = stream
    publication.offer_blocking(b"kept")
    (image,) = subscription.images
    poller = headrace.Poller(subscription)
    for poll in (
        lambda: subscription.poll(wrong),
        lambda: subscription.poll(wrong, 0),
        lambda: subscription.poll(wrong, view=True),
        lambda: subscription.controlled_poll(wrong),
        lambda: subscription.block_poll(wrong, 1024),
        lambda: image.poll(wrong),
        lambda: image.bounded_poll(wrong, 1024),
        lambda: image.controlled_poll(wrong),
        lambda: image.block_poll(wrong, 1024),
        lambda: poller.poll(wrong),
    ):
        with pytest.raises(TypeError, match=r"handler=.*: must be callable") as refusal:
            poll()
        assert repr(wrong) in str(refusal.value)
    assert subscription.receive(TIMEOUT_S).payload == b"kept"


def test_a_poll_refuses_what_it_cannot_call_before_anything_has_arrived(stream):
    _, subscription = stream
    with pytest.raises(TypeError, match="handler=3: must be callable"):
        subscription.poll(3)


def test_a_compiled_handler_is_refused_by_its_value(stream):
    with pytest.raises(TypeError, match="must be an address"):
        stream[1].poll_native("no address")


def test_a_block_is_filled_by_a_callable(media_client):
    publication = media_client.add_exclusive_publication("aeron:ipc", 77)
    with pytest.raises(TypeError, match="read=3: must be callable"):
        publication.offer_recorded(3, 64, 64)


HANDLERS = [
    "on_error",
    "on_close",
    "on_available_image",
    "on_unavailable_image",
    "on_available_counter",
    "on_unavailable_counter",
    "on_publication_error",
]


@pytest.mark.parametrize("name", HANDLERS)
@pytest.mark.parametrize("wrong", NOT_CALLABLE)
def test_a_client_refuses_what_it_cannot_call(media_driver, name, wrong):
    with pytest.raises(TypeError, match=f"{name}=.*: must be callable"):
        media_driver.connect(**{name: wrong})


@pytest.mark.parametrize("name", ["on_available_image", "on_unavailable_image"])
def test_a_subscription_refuses_what_it_cannot_call(media_client, name):
    for add in (media_client.add_subscription, media_client.request_subscription):
        with pytest.raises(TypeError, match=f"{name}=3: must be callable"):
            add("aeron:ipc", 78, **{name: 3})


@pytest.mark.parametrize("name", ["on_disconnect", "on_reconnect"])
def test_a_reconnecting_client_refuses_what_it_cannot_call(media_driver, name):
    handler = {name: "later"}
    with pytest.raises(TypeError, match=f"{name}='later': must be callable"):
        headrace.connect(media_driver.directory, reconnect=True, **handler)
    with pytest.raises(TypeError, match=f"{name}='later': must be callable"):
        asyncio.run(aio.connect(media_driver.directory, reconnect=True, **handler))
    with headrace.connect(media_driver.directory, reconnect=True) as client:
        subscription = client.add_subscription("aeron:ipc", 79)
        for poll in (subscription.poll, subscription.controlled_poll):
            with pytest.raises(TypeError, match="handler=3: must be callable"):
                poll(3)


def test_a_long_value_is_shown_by_its_beginning(stream):
    with pytest.raises(TypeError, match=r"\.\.\. \(10002 characters\): must be callable") as refusal:
        stream[1].poll("x" * 10_000)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("channel", [b"aeron:ipc", 10, None])
def test_a_channel_is_text(media_client, channel):
    for add in (
        media_client.add_publication,
        media_client.add_exclusive_publication,
        media_client.add_subscription,
        media_client.request_publication,
        media_client.request_exclusive_publication,
        media_client.request_subscription,
    ):
        with pytest.raises(TypeError) as refusal:
            add(channel, 10)
        assert str(refusal.value).startswith(f"channel={channel!r}: must be text, such as 'aeron:")
