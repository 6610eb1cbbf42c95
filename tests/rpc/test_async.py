"""Requests from coroutines, and handlers that are coroutines."""

from __future__ import annotations

import asyncio
import errno
import threading

import pytest

import headrace
from headrace import aio
from tests.helpers import TIMEOUT_S, await_true

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


def test_a_second_loop_reads_after_one_that_was_closed_with_its_reader_waiting(start, ask, release):
    def wait(request: bytes) -> bytes:
        release.wait(TIMEOUT_S)
        return request.upper()

    start(wait)
    requester = ask()
    first = asyncio.new_event_loop()
    with pytest.raises(headrace.RequestTimeoutError):
        first.run_until_complete(requester.request_async(b"late", 0.05))
    # A call that its loop leaves behind, too.
    left = first.create_task(requester.request_async(b"left"))
    await_true(lambda: first.run_until_complete(asyncio.sleep(0)) or requester.in_flight_count == 1)
    first.close()
    for task in (left, requester._link.current.reading):
        # That asyncio says so is of no use here.
        task._log_destroy_pending = False
    release.set()

    async def main():
        assert await requester.request_async(b"next") == b"NEXT"
        assert requester.in_flight_count == 0
        await requester._link.current.reading

    run(main())
    assert not left.done()
    assert requester.unclaimed_count == 2


def test_what_ends_the_reading_is_told_to_each_call_and_the_next_one_is_answered(start, ask, monkeypatch):
    start(upper)
    requester = ask()

    async def without_descriptors(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    async def main():
        assert await requester.request_async(b"one") == b"ONE"
        with monkeypatch.context() as patch:
            patch.setattr(aio, "wait_for_messages", without_descriptors)
            ends = await asyncio.gather(
                *(requester.request_async(b"x") for _ in range(3)), return_exceptions=True
            )
        assert [type(end) for end in ends] == [OSError] * 3
        assert {end.errno for end in ends} == {errno.EMFILE}
        # One that all shared would show the traceback of each.
        assert len({id(end) for end in ends}) == 3
        assert await requester.request_async(b"two") == b"TWO"

    run(main())


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
