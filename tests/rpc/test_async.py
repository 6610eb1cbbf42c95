"""Requests from coroutines, and handlers that are coroutines."""

from __future__ import annotations

import asyncio
import threading

import pytest

import headrace
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.boundary


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, TIMEOUT_S))


def upper(request: bytes) -> bytes:
    return request.upper()


def test_many_requests_at_once(start, ask):
    start(upper)
    requester = ask()

    async def main():
        assert await requester.request_async(b"one") == b"ONE"
        answers = await asyncio.gather(*(requester.request_async(b"a%d" % number) for number in range(1000)))
        assert answers == [b"A%d" % number for number in range(1000)]
        assert requester.in_flight_count == 0

    run(main())


def test_handlers_that_wait_run_side_by_side_up_to_the_limit(start, ask):
    running, most = 0, 0
    both = asyncio.Event()

    async def meet(request: bytes) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            both.set()
        await both.wait()
        await asyncio.sleep(0)
        running -= 1
        return request

    start(meet, max_in_flight=2)
    requester = ask()

    async def main():
        answers = await asyncio.gather(*(requester.request_async(b"%d" % number) for number in range(50)))
        assert answers == [b"%d" % number for number in range(50)]

    run(main())
    assert most == 2


def test_server_and_requester_in_one_loop(media_client, route, stream_id):
    async def handler(request: bytes) -> bytes:
        await asyncio.sleep(0)
        return request[::-1]

    async def main():
        server = headrace.Server(media_client, route.channel, stream_id, handler, **route.options)
        requester = headrace.Requester(media_client, route.channel, stream_id, **route.options)
        async with server, requester:
            serving = asyncio.create_task(server.serve_async())
            assert await requester.request_async(b"abc", timeout_s=TIMEOUT_S) == b"cba"
            serving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await serving

    run(main())


def test_errors_reach_the_coroutine(start, ask, release, caplog):

    def handler(request: bytes) -> bytes:
        if request == b"fail":
            raise ValueError("not that")
        release.wait(TIMEOUT_S)
        return request

    server = start(handler)
    requester = ask()

    async def main():
        with pytest.raises(headrace.RemoteError, match="ValueError: not that"):
            await requester.request_async(b"fail")
        with pytest.raises(headrace.RequestTimeoutError, match="no answer came"):
            await requester.request_async(b"slow", timeout_s=0.01)
        cancelled = asyncio.create_task(requester.request_async(b"slow"))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert requester.in_flight_count == 0
        lost = asyncio.create_task(requester.request_async(b"slow"))
        await asyncio.sleep(0)
        assert requester.in_flight_count == 1
        await asyncio.to_thread(server.close)
        with pytest.raises(headrace.ServerLostError):
            await lost
        release.set()
        with pytest.raises(headrace.RequestTimeoutError, match="no server is connected"):
            await requester.request_async(b"x", timeout_s=0.01)

    run(main())
    assert caplog.records


def test_a_requester_belongs_to_threads_or_to_one_loop(start, ask):
    start(upper)
    of_threads, of_loop = ask(), ask()

    async def main():
        assert await of_loop.request_async(b"a") == b"A"
        with pytest.raises(headrace.ReentrantError, match="must not block: use request_async there"):
            of_loop.request(b"b")
        with pytest.raises(headrace.ReentrantError, match="used by threads"):
            await of_threads.request_async(b"c")

    assert of_threads.request(b"a") == b"A"
    run(main())

    async def later():
        # The first loop is closed.
        assert await of_loop.request_async(b"d") == b"D"

    run(later())


def test_closing_ends_calls(start, ask, release):
    taken = threading.Event()

    def stuck(request: bytes) -> bytes:
        taken.set()
        release.wait(TIMEOUT_S)
        return request

    start(stuck)
    requester = ask()

    async def main():
        call = asyncio.create_task(requester.request_async(b"x"))
        await asyncio.to_thread(taken.wait, TIMEOUT_S)
        async with requester:
            pass
        with pytest.raises(headrace.ClosedError):
            await call
        with pytest.raises(headrace.ClosedError):
            await requester.request_async(b"x")
        release.set()

    run(main())


def test_what_is_refused_has_the_callers_name(start, ask):
    start(upper)
    requester = ask()

    async def main():
        with pytest.raises(TypeError, match=r"^data='text': must be a bytes-like object"):
            await requester.request_async("text")
        with pytest.raises(headrace.ConfigError, match="must be at most max_request_length="):
            await requester.request_async(b"a" * (requester.max_request_length + 1))
        assert requester.in_flight_count == 0
        assert await requester.request_async(b"a") == b"A"

    run(main())
