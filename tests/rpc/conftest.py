"""A server that runs beside the test, and requesters that ask it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import headrace
from tests.helpers import TIMEOUT_S

# Requests on one, answers on the next one.
_stream_ids = itertools.count(7000, 2)

Ask = Callable[..., headrace.Requester]
Start = Callable[..., headrace.Server]


@pytest.fixture
def stream_id() -> int:
    return next(_stream_ids)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a handler waits for; set at the end at the latest, so that a test that fails ends."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def start(media_driver: headrace.MediaDriver, stream_id: int, release: threading.Event) -> Iterator[Start]:
    """Starts servers, each with a client and a thread of its own."""
    with ExitStack() as stack:

        def start_one(handler: Callable[[bytes], Any], **options: Any) -> headrace.Server:
            client = stack.enter_context(media_driver.connect(idle_sleep_ns=1_000_000))
            server = headrace.Server(client, "aeron:ipc?term-length=64k", stream_id, handler, **options)
            thread = threading.Thread(target=server.serve)
            thread.start()
            stack.callback(thread.join, TIMEOUT_S)
            stack.callback(server.close)
            stack.callback(release.set)
            return server

        yield start_one


@pytest.fixture
def ask(media_driver: headrace.MediaDriver, stream_id: int) -> Iterator[Ask]:
    """Makes requesters, each with a client of its own."""
    with ExitStack() as stack:

        def ask_one(**options: Any) -> headrace.Requester:
            client = stack.enter_context(media_driver.connect(idle_sleep_ns=1_000_000))
            options.setdefault("timeout_s", TIMEOUT_S)
            requester = headrace.Requester(client, "aeron:ipc?term-length=64k", stream_id, **options)
            return stack.enter_context(requester)

        yield ask_one
