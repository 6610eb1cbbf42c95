"""Peers that do something else than ask and read: the server counts it, keeps nothing, and serves the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.rpc._layout import Kind, header
from headrace.rpc._sessions import Session
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.boundary


def upper(request: bytes) -> bytes:
    return request.upper()


async def upper_async(request: bytes) -> bytes:
    return request.upper()


class Before:
    """An object that does something before each call of one of its methods."""

    def __init__(self, object_: Any, method: str, does: Callable[[], object]) -> None:
        self._object, self._method, self._does = object_, method, does

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._does()
        return getattr(self._object, name)


turn = Session.turn


def taken_after(close: Callable[[], object], session: Session) -> int:
    """A turn of a session that takes its publication when it has been closed in the meantime."""
    asked = session._asked
    if asked is None:
        return turn(session)
    found = asked.poll()
    if found is None:
        return 0

    class Taken:
        def poll(self) -> headrace.Publication:
            close()
            return found

        def cancel(self) -> None:
            """It is taken."""

    session._asked = Taken()
    return turn(session)


def log_count(directory: str) -> int:
    return len(list(Path(directory, "publications").iterdir()))


@pytest.mark.parametrize("handler", [upper, upper_async])
def test_a_publisher_that_asks_for_no_answers_is_read_dropped_and_counted(
    start, ask, route, media_client, stream_id, handler, caplog
):
    server = start(handler)
    requester = ask()
    with media_client.add_exclusive_publication(route.channel, stream_id) as plain:
        # More than fits into its stream, so it would wait for ever for a server that does not read it.
        count = 300
        for _ in range(count):
            plain.offer_blocking((header(Kind.REQUEST, 1), bytes(1000)), timeout_s=TIMEOUT_S)
        await_true(lambda: server.rejected_count == count)
        assert requester.request(b"x") == b"X"
        assert server.requester_count == 1
        # Nothing has the server look at it again and again.
        await_true(lambda: not server._is_any_asked)
        assert not server._is_any_blocked
        assert server._blocked_answers == []
    dropped = [record for record in caplog.records if "its messages are dropped" in record.message]
    assert len(dropped) == 1


@pytest.mark.parametrize("moment", ["before the driver is asked", "before the answer is taken"])
def test_a_server_that_is_closed_just_as_a_requester_comes_leaves_nothing(
    media_driver, media_client, route, stream_id, ask, moment, monkeypatch
):
    server = headrace.Server(media_client, route.channel, stream_id, upper, **route.options)

    def close() -> None:
        if not server._link.is_closed:
            thread = threading.Thread(target=server.close)
            thread.start()
            thread.join(TIMEOUT_S)

    if moment == "before the driver is asked":
        server._followed.client = Before(media_client, "request_publication", close)
    else:
        monkeypatch.setattr(Session, "turn", lambda session: taken_after(close, session))
    requester = ask()
    await_true(lambda: server._turn() >= 0 and server._link.is_closed)
    requester.close()
    await_true(lambda: log_count(media_driver.directory) == 0)


@pytest.mark.parametrize("route", ["ipc"], indirect=True)
def test_an_answer_that_is_late_for_its_requester_is_counted(start, ask):
    taken, release = threading.Event(), threading.Event()

    async def slow(request: bytes) -> bytes:
        taken.set()
        await asyncio.to_thread(release.wait, TIMEOUT_S)
        return request

    server = start(slow)
    requester = ask()
    requester.submit(b"x")
    assert taken.wait(TIMEOUT_S)
    requester.close()
    await_true(lambda: server.requester_count == 0)
    release.set()
    await_true(lambda: server.lost_count == 1)
