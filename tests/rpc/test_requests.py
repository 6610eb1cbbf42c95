"""Requests and answers between threads, over IPC and UDP: each call gets its own answer, or an error that says why."""

from __future__ import annotations

import asyncio
import functools
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

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


@pytest.mark.parametrize("handler", [upper, upper_async])
def test_a_request_is_answered(start, ask, handler):
    server = start(handler)
    requester = ask()
    assert requester.request(b"hello") == b"HELLO"
    assert requester.request(b"") == b""
    assert requester.request((b"in ", b"parts")) == b"IN PARTS"
    assert requester.is_connected
    assert requester.in_flight_count == 0
    assert server.requester_count == 1


def test_a_request_waits_for_a_server(start, ask):
    requester = ask()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(requester.request, b"early")
        start(upper)
        assert answer.result(TIMEOUT_S) == b"EARLY"


@pytest.mark.parametrize("handler", [upper, upper_async])
def test_messages_of_many_fragments(start, ask, handler):
    start(handler)
    requester = ask()
    request = bytes(range(97, 123)) * 300
    assert requester.request(request) == request.upper()


def test_many_in_flight_get_each_its_own_answer(start, ask):
    start(upper)
    requester = ask()
    calls = [requester.submit(b"a%d" % number) for number in range(300)]
    assert requester.in_flight_count > 0
    # In any order of asking.
    for number in reversed(range(300)):
        assert calls[number].result() == b"A%d" % number
    assert requester.in_flight_count == 0


def test_more_requests_than_the_streams_hold_are_sent_before_any_answer_is_asked_for(start, ask):
    start(upper)
    requester = ask()
    count = 4_000
    calls = [requester.submit(b"a%0100d" % number) for number in range(count)]
    assert [call.result() for call in calls] == [b"A%0100d" % number for number in range(count)]
    assert requester.in_flight_count == requester.unclaimed_count == 0


def test_threads_share_a_requester(start, ask):
    start(upper)
    requester = ask()

    def many(name: int) -> list[bytes]:
        return [requester.request(b"t%d-%d" % (name, number)) for number in range(50)]

    with ThreadPoolExecutor(8) as pool:
        for name, answers in enumerate(pool.map(many, range(8))):
            assert answers == [b"T%d-%d" % (name, number) for number in range(50)]


class Meeting:
    """A lock that is first taken when all have come to it."""

    def __init__(self, count: int) -> None:
        self._all_there = threading.Barrier(count)
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._all_there.wait(TIMEOUT_S)
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_threads_may_make_the_first_request_at_once(start, ask):
    start(upper)
    requester = ask()
    requester._binding = Meeting(2)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(requester.request, [b"a", b"b"])) == [b"A", b"B"]


def test_several_requesters_get_only_their_own_answers(start, ask):
    server = start(upper)
    requesters = [ask() for _ in range(5)]
    calls = [
        (requester.submit(b"r%d-%d" % (index, number)), b"R%d-%d" % (index, number))
        for number in range(20)
        for index, requester in enumerate(requesters)
    ]
    for call, expected in calls:
        assert call.result() == expected
    assert server.requester_count == 5
    assert [requester.unclaimed_count for requester in requesters] == [0] * 5
    requesters[0].close()
    await_true(lambda: server.requester_count == 4)
    assert requesters[1].request(b"still") == b"STILL"


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_what_a_handler_raises_is_raised_at_the_caller(start, ask, caplog, kind):
    def fail(request: bytes) -> bytes:
        raise LookupError(f"no such thing: {request.decode()}")

    async def fail_async(request: bytes) -> bytes:
        return fail(request)

    start(fail if kind == "plain" else fail_async)
    requester = ask()
    with pytest.raises(headrace.RemoteError, match=r"^LookupError: no such thing: x$"):
        requester.request(b"x")
    # It goes on.
    with pytest.raises(headrace.RemoteError, match=r"^LookupError: no such thing: y$"):
        requester.request(b"y")
    failures = [record for record in caplog.records if record.name == "headrace.rpc"]
    assert len(failures) == 2
    assert failures[0].exc_info is not None


def test_an_answer_that_cannot_be_sent_is_an_error_for_the_caller(start, ask, caplog):
    start(lambda request: b"x" * 20_000_000 if request else None)
    requester = ask()
    with pytest.raises(
        headrace.RemoteError, match="answer of 20000000 bytes is too long, it must have at most"
    ):
        requester.request(b"long")
    with pytest.raises(
        headrace.RemoteError, match="TypeError: the handler returned NoneType: it must return bytes"
    ):
        requester.request(b"")
    assert caplog.records


def test_a_request_that_is_too_long_is_refused_here(start, ask):
    start(upper)
    requester = ask()
    assert requester.request(b"a" * requester.max_request_length) == b"A" * requester.max_request_length
    length_max = requester.max_request_length
    rule = rf"len\(data\)={length_max + 1}: must be at most max_request_length={length_max}$"
    with pytest.raises(headrace.ConfigError, match=rule):
        requester.request(b"a" * (length_max + 1))
    with pytest.raises(headrace.ConfigError, match=rule):
        requester.request((b"a" * length_max, b"b"))
    assert requester.in_flight_count == 0


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("text", "data='text'"),
        (None, "data=None"),
        ((b"a", "text"), r"data\[1\]='text'"),
        ([7], r"data\[0\]=7"),
    ],
)
def test_a_request_that_is_no_bytes_is_refused_by_the_callers_name(start, ask, data, name):
    start(upper)
    requester = ask()
    with pytest.raises(TypeError, match=f"^{name}: must be a bytes-like object"):
        requester.request(data)
    assert requester.in_flight_count == 0


def test_without_a_server_a_request_times_out(ask):
    requester = ask(timeout_s=0.01)
    with pytest.raises(headrace.RequestTimeoutError, match="was not sent") as error:
        requester.request(b"anyone?")
    assert isinstance(error.value, TimeoutError)
    assert not requester.is_connected
    assert requester.in_flight_count == 0


def test_a_late_answer_is_dropped_and_counted(start, ask, release):

    def slow(request: bytes) -> bytes:
        if request == b"slow":
            release.wait(TIMEOUT_S)
        return request

    start(slow)
    requester = ask()
    assert requester.request(b"warm") == b"warm"
    with pytest.raises(headrace.RequestTimeoutError, match="no answer came"):
        requester.request(b"slow", timeout_s=0.01)
    call = requester.submit(b"slow")
    call.cancel()
    with pytest.raises(headrace.RequestError, match="cancelled"):
        call.result()
    release.set()
    assert requester.request(b"next") == b"next"
    assert requester.unclaimed_count == 2


def test_calls_end_when_the_server_does_and_later_ones_go_to_the_next(start, ask, release):
    taken = threading.Event()

    def stuck(request: bytes) -> bytes:
        taken.set()
        release.wait(TIMEOUT_S)
        return request

    server = start(stuck)
    requester = ask()
    calls = [requester.submit(b"lost"), requester.submit(b"lost too")]
    assert taken.wait(TIMEOUT_S)
    server.close()
    for call in calls:
        with pytest.raises(headrace.ServerLostError, match="may have carried"):
            call.result()
    release.set()
    start(upper)
    assert requester.request(b"again") == b"AGAIN"


def test_a_closed_requester_and_a_closed_server_say_so(start, ask):
    server = start(upper)
    requester = ask()
    requester.request(b"x")
    requester.close()
    requester.close()
    with pytest.raises(headrace.ClosedError):
        requester.request(b"x")
    assert requester.in_flight_count == 0
    server.close()
    server.close()
    with pytest.raises(headrace.ClosedError):
        server.poll()


def test_closing_ends_the_wait_of_another_thread(start, ask, release):
    taken = threading.Event()

    def stuck(request: bytes) -> bytes:
        taken.set()
        release.wait(TIMEOUT_S)
        return request

    start(stuck)
    requester = ask()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(requester.request, b"x")
        assert taken.wait(TIMEOUT_S)
        requester.close()
        with pytest.raises(headrace.ClosedError):
            answer.result(TIMEOUT_S)
    release.set()


def test_a_requester_that_does_not_read_holds_up_no_other(start, ask):
    handled = []

    def long_answer(request: bytes) -> bytes:
        handled.append(request)
        return request * 4000

    start(long_answer)
    lazy, eager = ask(), ask()
    calls = [lazy.submit(b"l") for _ in range(200)]
    for _ in range(30):
        assert eager.request(b"e") == b"e" * 4000
    # Its answers fill their stream, a batch waits, and the rest of its requests is not read.
    assert handled.count(b"l") < 200
    assert [call.result() for call in calls] == [b"l" * 4000] * 200


def test_what_is_no_request_is_dropped_and_counted(start, ask, route, media_client, stream_id):
    server = start(upper)
    requester = ask()
    requester.request(b"x")
    responses = media_client.add_subscription(route.response_channel, stream_id + 1)
    channel = f"{route.channel}|response-correlation-id={responses.registration_id}"
    with responses, media_client.add_publication(channel, stream_id) as stranger:
        for message in (
            b"",
            b"short",
            b"\2" + header(Kind.REQUEST, 1)[1:],
            header(Kind.ANSWER, 1),
            b"\0" * 40,
        ):
            stranger.offer_blocking(message, timeout_s=TIMEOUT_S)
        await_true(lambda: server.rejected_count == 5)
        stranger.offer_blocking((header(Kind.REQUEST, -7), b"well"), timeout_s=TIMEOUT_S)
        answer = responses.receive(TIMEOUT_S)
        assert answer is not None
        assert answer.payload == header(Kind.ANSWER, -7) + b"WELL"
    assert requester.request(b"y") == b"Y"


def test_a_program_with_a_loop_of_its_own_polls_the_server(media_client, ask, route, stream_id):
    requester = ask()
    with headrace.Server(media_client, route.channel, stream_id, upper, **route.options) as server:
        await_true(lambda: server.poll() == 0 and server.requester_count == 1)
        call = requester.submit(b"x")
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(call.result)
            await_true(lambda: server.poll() >= 0 and answer.done())
        assert answer.result() == b"X"
    with (
        headrace.Server(media_client, "aeron:ipc", stream_id, upper_async) as server,
        pytest.raises(headrace.ConfigError, match="serve_async"),
    ):
        server.poll()


def test_arguments_are_checked(media_client, stream_id):
    with pytest.raises(headrace.ConfigError, match="max_in_flight=0"):
        headrace.Server(media_client, "aeron:ipc", stream_id, upper, max_in_flight=0)
    with pytest.raises(TypeError, match="handler=7"):
        headrace.Server(media_client, "aeron:ipc", stream_id, 7)  # type: ignore[arg-type]
    with pytest.raises(headrace.RegistrationError):
        headrace.Requester(media_client, "aeron:ipc?term-length=63k", stream_id)


UDP = "aeron:udp?endpoint=127.0.0.1:24999"


@pytest.mark.parametrize(
    ("channel", "control", "rule"),
    [
        ("aeron-spy:aeron:ipc", None, "channel='aeron-spy:aeron:ipc': must be aeron:ipc, or aeron:udp with"),
        ("tcp://127.0.0.1:1", "127.0.0.1:2", "channel='tcp://127.0.0.1:1': must be aeron:ipc, or aeron:udp"),
        ("aeron:ipc", "127.0.0.1:2", "response_control='127.0.0.1:2': is for channels of aeron:udp"),
        (UDP, None, "response_control=None: must be the host:port that the server sends answers from"),
        (UDP, "127.0.0.1", "response_control='127.0.0.1': must be host:port"),
        (UDP, "127.0.0.1:0", "must be host:port, with a port from 1 to 65535"),
        (UDP, "127.0.0.1:65536", "must be host:port, with a port from 1 to 65535"),
        (UDP, "127.0.0.1:5|linger=0", "must be host:port"),
        (UDP, "224.0.1.1:5", "must be an address of the server's host, not a multicast group"),
        (UDP, "[ff02::1]:5", "must be an address of the server's host, not a multicast group"),
        (
            "aeron:ipc?control-mode=response",
            None,
            "must not have control-mode=response: requests go straight",
        ),
        ("aeron:udp?control-mode=manual", "127.0.0.1:5", "must not have control-mode=manual: requests go"),
        (
            UDP,
            "127.0.0.1:24999",
            "response_control='127.0.0.1:24999': must have another port than the endpoint",
        ),
    ],
)
def test_what_has_no_answers_is_refused_at_once(media_client, stream_id, channel, control, rule):
    for make in (functools.partial(headrace.Server, handler=upper), headrace.Requester):
        with pytest.raises(headrace.ConfigError, match=re.escape(rule)):
            make(media_client, channel, stream_id, response_control=control)


def test_an_address_that_the_server_cannot_have_is_refused_at_once_and_nothing_is_left(
    media_client, stream_id
):
    control = free_endpoint()
    channel = f"aeron:udp?endpoint={free_endpoint()}"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        of_other = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(headrace.RegistrationError, match=r"(?i)address.* in use"):
            headrace.Server(media_client, channel, stream_id, upper, response_control=of_other)
        with pytest.raises(headrace.RegistrationError, match=r"(?i)address.* in use"):
            headrace.Server(
                media_client, f"aeron:udp?endpoint={of_other}", stream_id, upper, response_control=control
            )
    # Nor does the socket of answers stay.
    host, port = control.split(":")
    await_true(lambda: can_bind(host, int(port)))


def can_bind(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        try:
            other.bind((host, port))
        except OSError:
            return False
    return True


def test_the_last_stream_has_none_after_it_for_answers(media_client):
    last = 2**31 - 1
    for make in (functools.partial(headrace.Server, handler=upper), headrace.Requester):
        with pytest.raises(headrace.ConfigError, match=f"stream_id={last}.*response_stream_id"):
            make(media_client, "aeron:ipc", last)


def test_a_server_that_is_closed_while_it_looks_at_its_requesters_ends_in_order(
    media_client, stream_id, monkeypatch
):
    with (
        headrace.Server(media_client, "aeron:ipc", stream_id, upper) as server,
        headrace.Requester(media_client, "aeron:ipc", stream_id),
    ):
        await_true(lambda: server.poll() >= 0 and server.requester_count == 1)

        def close_meanwhile(_: Session) -> bool:
            server.close()
            return False

        monkeypatch.setattr(Session, "is_ready", property(close_meanwhile))
        assert server.poll() >= 0
        assert server.requester_count == 0
        with pytest.raises(headrace.ClosedError):
            server.poll()


class Untold(Exception):
    """Cannot say what went wrong."""

    def __str__(self) -> str:
        raise ValueError("no text")


def released(_: bytes) -> memoryview:
    view = memoryview(b"x")
    view.release()
    return view


def untold(_: bytes) -> bytes:
    raise Untold


def cancelled(_: bytes) -> bytes:
    raise asyncio.CancelledError


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (released, "^ValueError: operation forbidden on released memoryview"),
        (untold, "^Untold: its text cannot be made: ValueError$"),
        (cancelled, "^CancelledError: $"),
    ],
)
def test_whatever_a_handler_does_its_caller_and_the_next_one_are_answered(
    start, ask, caplog, fail, said, kind
):
    def handle(request: bytes) -> bytes:
        return fail(request) if request == b"bad" else request

    async def handle_async(request: bytes) -> bytes:
        return handle(request)

    start(handle if kind == "plain" else handle_async)
    requester = ask()
    calls = [requester.submit(request) for request in (b"bad", b"good")]
    with pytest.raises(headrace.RemoteError, match=said):
        calls[0].result()
    assert calls[1].result() == b"good"
    assert "a handler failed" in caplog.text


def test_a_call_that_is_cancelled_ends_the_wait_of_its_thread(start, ask, release):
    def wait(request: bytes) -> bytes:
        release.wait()
        return request

    start(wait)
    requester = ask()
    first, second = requester.submit(b"first"), requester.submit(b"second")
    with ThreadPoolExecutor(2) as pool:
        # One of the threads reads for both.
        results = [pool.submit(call.result) for call in (first, second)]
        await_true(lambda: first._reader._waiting_count == 1)
        for call in (first, second):
            call.cancel()
        for result in results:
            with pytest.raises(headrace.RequestError, match="cancelled"):
                result.result(TIMEOUT_S)
