"""Peers that do something else than ask and read: the server counts it, keeps nothing, and serves the others."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.rpc._layout import Kind, header
from headrace.rpc._sessions import Session
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

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
        await_true(lambda: not server._blocked)
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


def test_hundreds_of_requesters_are_answered_and_leave_nothing(start, media_driver, route, stream_id):
    server = start(upper)
    count = 300
    with media_driver.connect() as client:
        requesters = [
            headrace.Requester(client, route.channel, stream_id, timeout_s=TIMEOUT_S, **route.options)
            for _ in range(count)
        ]
        for turn in range(2):
            calls = [each.submit(b"a%d-%d" % (index, turn)) for index, each in enumerate(requesters)]
            assert [call.result() for call in calls] == [b"A%d-%d" % (index, turn) for index in range(count)]
        assert server.requester_count == count
    await_true(lambda: server.requester_count == 0)
    assert server._sessions == {}


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_requester_that_never_reads_keeps_little_here_and_holds_up_no_other(start, ask, kind):
    answer = bytes(4000)

    async def long_async(request: bytes) -> bytes:
        return answer

    in_flight_max = 10
    server = start(long_async if kind == "async" else lambda request: answer, max_in_flight=in_flight_max)
    lazy, eager = ask(), ask()
    for _ in range(300):
        lazy.submit(b"l")
    await_true(lambda: server._blocked_responses)
    for _ in range(30):
        assert eager.request(b"e") == answer
    (session,) = [session for session in server._sessions.values() if session.is_blocked]
    assert 0 < len(session._waiting) <= in_flight_max
    lazy.close()
    await_true(lambda: server.requester_count == 1)
    assert server.lost_count > 0
    assert eager.request(b"e") == answer


SERVE = """
import sys, time, headrace
directory, channel, stream_id, control = sys.argv[1:]
options = {"response_control": control} if control else {}
def handle(request):
    if request == b"stuck":
        print("taken", flush=True)
        time.sleep(3600)
    return request.upper()
client = headrace.connect(directory)
with client, headrace.Server(client, channel, int(stream_id), handle, **options) as server:
    server.serve()
"""


def test_calls_end_when_the_process_of_the_server_is_killed_and_the_next_one_answers(
    media_driver, route, stream_id, ask, start
):
    control = route.options.get("response_control", "")
    arguments = [sys.executable, "-c", SERVE, media_driver.directory, route.channel, str(stream_id), control]
    requester = ask()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert requester.request(b"one") == b"ONE"
            calls = [requester.submit(b"stuck"), requester.submit(b"behind it")]
            assert process.stdout is not None
            assert process.stdout.readline() == "taken\n"
        finally:
            process.kill()
    for call in calls:
        with pytest.raises(headrace.ServerLostError, match="the server went away"):
            call.result()
    start(upper)
    assert requester.request(b"two") == b"TWO"
    # The next server may carry out what the first had not read, for a call that has ended.
    assert requester.unclaimed_count <= 1


@pytest.mark.parametrize("route", ["ipc"], indirect=True)
def test_a_request_that_waits_for_a_server_goes_to_the_next_one_when_the_loss_of_the_first_is_noticed(
    start, ask
):
    handled = []

    def handle(request: bytes) -> bytes:
        handled.append(request)
        return request.upper()

    first, requester = start(upper), ask()
    assert requester.request(b"one") == b"ONE"
    exchange = requester._link.current
    noticed = threading.Event()
    on_lost = exchange._on_lost

    def note_and_go_on(lost: Any) -> None:
        on_lost(lost)
        noticed.set()

    exchange._on_lost = note_and_go_on
    first.close()
    # At once, while its stream of answers ends up to a second later.
    await_true(lambda: not requester.is_connected)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(requester.request, b"two")
        await_true(lambda: requester.in_flight_count == 1)
        assert noticed.wait(TIMEOUT_S)
        start(handle)
        assert answer.result(TIMEOUT_S) == b"TWO"
    assert handled == [b"two"]
    assert requester.in_flight_count == requester.unclaimed_count == 0


@pytest.mark.parametrize("kind", ["thread", "async"])
def test_a_call_without_an_end_ends_with_a_server_that_never_had_a_stream_for_it(
    route, media_client, stream_id, ask, kind
):
    def unanswered(requester: headrace.Requester) -> None:
        if kind == "thread":
            requester.submit(b"x").result()
        else:
            asyncio.run(requester.request_async(b"x"))

    requester = ask(timeout_s=None)
    errors: list[Exception] = []

    def ask_in_vain() -> None:
        try:
            unanswered(requester)
        except headrace.HeadraceError as error:
            errors.append(error)

    with media_client.add_subscription(route.channel, stream_id) as silent:
        asking = threading.Thread(target=ask_in_vain)
        asking.start()
        assert silent.receive(TIMEOUT_S) is not None
    asking.join(TIMEOUT_S)
    (error,) = errors
    assert isinstance(error, headrace.ServerLostError)
    assert requester.in_flight_count == 0


UNKNOWN = "no-such-host.invalid:1"


@pytest.mark.parametrize("place", ["endpoint", "control"])
def test_a_name_that_no_one_knows_is_told_where_the_side_is_made(media_client, stream_id, place):
    endpoint, control = (UNKNOWN, free_endpoint()) if place == "endpoint" else (free_endpoint(), UNKNOWN)
    channel = f"aeron:udp?endpoint={endpoint}"
    for make in (functools.partial(headrace.Server, handler=upper), headrace.Requester):
        with pytest.raises(headrace.RegistrationError, match=rf"unknown host.*{place}={UNKNOWN}"):
            make(media_client, channel, stream_id, response_control=control)


@pytest.mark.parametrize("route", ["udp"], indirect=True)
@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ("endpoint", "no server is connected: one must run with this channel and stream_id"),
        ("response_control", "no response stream came: it must serve, with the same response_control"),
        ("response_stream_id", "no response stream came: it must serve, with the same response_control"),
    ],
)
def test_a_time_out_names_what_the_two_sides_must_agree_on(
    start, ask, media_client, route, stream_id, wrong, rule
):
    start(upper)
    assert ask().request(b"x") == b"X"
    channel, options = route.channel, dict(route.options)
    if wrong == "endpoint":
        channel = f"aeron:udp?endpoint={free_endpoint()}"
    else:
        options[wrong] = free_endpoint() if wrong == "response_control" else 99
    with headrace.Requester(media_client, channel, stream_id, **options) as requester:
        if wrong != "endpoint":
            await_true(lambda: requester.is_connected)
        with pytest.raises(headrace.RequestTimeoutError, match=rule):
            requester.request(b"x", timeout_s=0.05)
    with headrace.Requester(media_client, channel, stream_id, **options) as requester:
        if wrong != "endpoint":
            await_true(lambda: requester.is_connected)
        with pytest.raises(headrace.RequestTimeoutError, match=rule):
            asyncio.run(requester.request_async(b"x", timeout_s=0.05))
    assert ask().request(b"x") == b"X"
