"""Every way in which a thread receives from a subscription: one call of each, which gives what it took."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable

import headrace
from headrace import Action
from headrace.client import native

Take = Callable[[headrace.Subscription], list[bytes]]


def poll(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []
    subscription.poll(lambda payload, header: taken.append(payload), 2)
    return taken


def poll_views(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []
    subscription.poll(lambda payload, header: taken.append(bytes(payload)), 2, view=True)
    return taken


def controlled_poll(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []

    def handler(payload: bytes, header: headrace.Header) -> Action:
        taken.append(payload)
        return Action.BREAK

    subscription.controlled_poll(handler, 100)
    return taken


def aborting_poll(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []

    def handler(payload: bytes, header: headrace.Header) -> Action:
        if taken:
            return Action.ABORT
        taken.append(payload)
        return Action.CONTINUE

    subscription.controlled_poll(handler, 100)
    return taken


def raising_poll(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []

    def handler(payload: bytes, header: headrace.Header) -> None:
        taken.append(payload)
        raise LookupError

    with contextlib.suppress(LookupError):
        subscription.poll(handler, 100)
    return taken


def poll_batch(subscription: headrace.Subscription) -> list[bytes]:
    return list(subscription.poll_batch(2))


def poll_large_batch(subscription: headrace.Subscription) -> list[bytes]:
    return list(subscription.poll_batch(4096))


def poll_native(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []

    @native.HANDLER_TYPE
    def handler(context: int, payload: object, length: int, header: object) -> None:
        taken.append(ctypes.string_at(payload, length))  # type: ignore[arg-type]

    subscription.poll_native(handler, 0, 2)
    return taken


def poll_message(subscription: headrace.Subscription) -> list[bytes]:
    message = subscription.poll_message()
    return [] if message is None else [message.payload]


def receive(subscription: headrace.Subscription) -> list[bytes]:
    message = subscription.receive(timeout_s=0.01)
    return [] if message is None else [message.payload]


def iterate(subscription: headrace.Subscription) -> list[bytes]:
    for message in subscription:
        return [message.payload]
    raise AssertionError("the iteration ended")


def images(subscription: headrace.Subscription) -> list[bytes]:
    return [payload for image in subscription.images for payload in image.poll_batch(1)]


WAYS: list[Take] = [
    poll,
    poll_views,
    controlled_poll,
    aborting_poll,
    raising_poll,
    poll_batch,
    poll_large_batch,
    poll_native,
    poll_message,
    receive,
    iterate,
    images,
]
