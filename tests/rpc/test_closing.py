"""Servers and requesters that are closed at an awkward moment, or dropped and never closed."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.rpc._sessions import Session
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.boundary


def in_thread(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(TIMEOUT_S)


@pytest.fixture
def server(media_client, route, stream_id):
    """Makes a server that no thread serves."""

    def make(handler: Callable[[bytes], Any], client: Any = media_client) -> headrace.Server:
        return headrace.Server(client, route.channel, stream_id, handler, **route.options)

    return make


@pytest.mark.parametrize("has_room", [True, False])
def test_a_server_that_another_thread_closes_while_answers_wait_for_room_ends_in_order(
    server, ask, monkeypatch, has_room
):
    serving, requester = server(lambda _: bytes(4000)), ask()
    for _ in range(100):
        requester.submit(b"x")
    await_true(
        lambda: serving.poll() >= 0 and any(session._waiting for session in serving._sessions.values())
    )
    (session,) = serving._sessions.values()
    waiting_count = len(session._waiting)
    offer = Session._offer

    def close_and_offer(session: Session, message: tuple[bytes, bytes]) -> bool:
        in_thread(serving.close)
        return has_room and offer(session, message)

    monkeypatch.setattr(Session, "_offer", close_and_offer)
    assert serving.poll() >= 0
    assert serving.lost_count == waiting_count
    assert not session._waiting
    with pytest.raises(headrace.ClosedError):
        serving.poll()


def test_a_server_that_another_thread_closes_just_before_it_takes_a_stream_of_answers_ends_in_order(
    server, ask, monkeypatch
):
    serving, _ = server(bytes.upper), ask()
    await_true(lambda: serving._followed.requests.images)
    turn = Session.turn

    def close_and_turn(session: Session) -> int:
        in_thread(serving.close)
        return turn(session)

    monkeypatch.setattr(Session, "turn", close_and_turn)
    assert serving.poll() >= 0
    assert serving._sessions == {}


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("route", ["ipc"], indirect=True)
def test_a_handler_that_closes_its_server_is_called_for_no_further_request(server, ask, kind):
    handled = []

    def close(request: bytes) -> bytes:
        handled.append(request)
        serving.close()
        return request

    async def close_async(request: bytes) -> bytes:
        return close(request)

    serving, requester = server(close if kind == "plain" else close_async), ask()
    calls = [requester.submit(b"%d" % number) for number in range(5)]
    serving.serve()
    assert handled == [b"0"]
    assert serving.lost_count == len(calls)
    for call in calls:
        with pytest.raises(headrace.ServerLostError):
            call.result()


def test_a_client_handler_closes_a_server_whose_requesters_have_no_stream_of_answers_yet(
    media_driver, media_client, server, ask
):
    due, ends = threading.Event(), list[BaseException | None]()

    def close(*_: object) -> None:
        if due.is_set() and not ends:
            try:
                serving.close()
            except BaseException as error:
                ends.append(error)
            else:
                ends.append(None)

    with media_driver.connect(on_available_counter=close) as client:
        serving = server(bytes.upper, client)
        requesters = [ask(), ask()]
        await_true(lambda: len(serving._followed.requests.images) == len(requesters))
        serving._follow_images(serving._followed)
        sessions = list(serving._sessions.values())
        assert [session.is_asked for session in sessions] == [True, True]
        due.set()
        with media_client.add_counter(1001):
            await_true(lambda: ends)
        assert ends == [None]
        assert serving._sessions == {}
        assert not any(session.is_asked or session._asked for session in sessions)


def log_count(directory: str) -> int:
    return len(list(Path(directory, "publications").iterdir()))


Make = Callable[..., Any]


def ask_once(server: headrace.Server, requester: headrace.Requester) -> None:
    call = requester.submit(b"x")
    await_true(lambda: server.poll() >= 0 and requester._link.current.reader.take())
    assert call.result() == b"X"


def used_server(make_server: Make, make_requester: Make) -> weakref.ref[headrace.Server]:
    server = make_server()
    with make_requester() as requester:
        ask_once(server, requester)
    return weakref.ref(server)


def used_requester(make_server: Make, make_requester: Make) -> weakref.ref[headrace.Requester]:
    requester = make_requester()
    with make_server() as server:
        ask_once(server, requester)
    return weakref.ref(requester)


def used_server_of_coroutines(make_server: Make, make_requester: Make) -> weakref.ref[headrace.Server]:
    async def upper(request: bytes) -> bytes:
        return request.upper()

    async def ask_it() -> None:
        serving = asyncio.create_task(server.serve_async())
        assert await requester.request_async(b"x") == b"X"
        serving.cancel()
        await asyncio.wait([serving])

    server = make_server(handler=upper)
    with make_requester() as requester:
        asyncio.run(ask_it())
    return weakref.ref(server)


def used_requester_of_coroutines(make_server: Make, make_requester: Make) -> weakref.ref[headrace.Requester]:
    requester = make_requester()
    with make_server() as server:
        serving = threading.Thread(target=server.serve)
        serving.start()
        assert asyncio.run(requester.request_async(b"x")) == b"X"
    serving.join(TIMEOUT_S)
    return weakref.ref(requester)


@pytest.mark.parametrize(
    "use", [used_server, used_requester, used_server_of_coroutines, used_requester_of_coroutines]
)
def test_what_is_dropped_is_collected_and_its_streams_end(media_driver, route, stream_id, use):
    with media_driver.connect() as client:
        make_server = functools.partial(
            headrace.Server, client, route.channel, stream_id, handler=bytes.upper, **route.options
        )
        make_requester = functools.partial(
            headrace.Requester, client, route.channel, stream_id, timeout_s=TIMEOUT_S, **route.options
        )
        dropped = use(make_server, make_requester)
        gc.collect()
        assert dropped() is None
        await_true(lambda: log_count(media_driver.directory) == 0)
