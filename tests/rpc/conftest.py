"""A server that runs beside the test, and requesters that ask it, over IPC and over UDP."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

import headrace
from tests.helpers import TIMEOUT_S
from tests.ports import free_endpoint

# Requests on one, answers on the next one.
_stream_ids = itertools.count(7000, 2)

# Addresses of requests and of their answers. When one comes again, the driver has closed its sockets.
_addresses = itertools.cycle([(free_endpoint(), free_endpoint()) for _ in range(8)])

Ask = Callable[..., headrace.Requester]
Start = Callable[..., headrace.Server]


@dataclass(frozen=True)
class Route:
    """How requests and answers go."""

    channel: str
    response_channel: str
    options: dict[str, Any]


@pytest.fixture
def stream_id() -> int:
    return next(_stream_ids)


@pytest.fixture(params=["ipc", "udp"])
def route(request: pytest.FixtureRequest) -> Route:
    if request.param == "ipc":
        return Route("aeron:ipc?term-length=64k", "aeron:ipc?control-mode=response", {})
    endpoint, control = next(_addresses)
    return Route(
        f"aeron:udp?endpoint={endpoint}|term-length=64k",
        f"aeron:udp?control-mode=response|control={control}",
        {"response_control": control},
    )


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a handler waits for; set at the end at the latest, so that a test that fails ends."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def start(
    media_driver: headrace.MediaDriver, route: Route, stream_id: int, release: threading.Event
) -> Iterator[Start]:
    """Starts servers, each with a client and a thread of its own."""
    with ExitStack() as stack:

        def start_one(handler: Callable[[bytes], Any], **options: Any) -> headrace.Server:
            client = stack.enter_context(media_driver.connect(idle_sleep_ns=1_000_000))
            server = headrace.Server(client, route.channel, stream_id, handler, **route.options, **options)
            thread = threading.Thread(target=server.serve)
            thread.start()
            stack.callback(thread.join, TIMEOUT_S)
            stack.callback(server.close)
            stack.callback(release.set)
            return server

        yield start_one


@pytest.fixture
def ask(media_driver: headrace.MediaDriver, route: Route, stream_id: int) -> Iterator[Ask]:
    """Makes requesters, each with a client of its own."""
    with ExitStack() as stack:

        def ask_one(**options: Any) -> headrace.Requester:
            client = stack.enter_context(media_driver.connect(idle_sleep_ns=1_000_000))
            options.setdefault("timeout_s", TIMEOUT_S)
            requester = headrace.Requester(client, route.channel, stream_id, **route.options, **options)
            return stack.enter_context(requester)

        yield ask_one
