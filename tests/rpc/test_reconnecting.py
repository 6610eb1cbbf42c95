"""Servers and requesters whose clients outlive their driver: calls in flight say so, and later ones are answered."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import aio
from headrace.client import ConnectionState, ReconnectingClient
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.boundary


class Site:
    """A directory in which one driver after another runs, with servers and requesters that go on."""

    def __init__(self, directory: Path, route: Any, stream_id: int) -> None:
        self.directory = str(directory)
        self.route, self.stream_id = route, stream_id
        self.clients: list[ReconnectingClient] = []
        self.stack = ExitStack()
        self.ends: list[BaseException | None] = []
        self.start()

    def start(self) -> None:
        self.driver = headrace.MediaDriver(directory=self.directory, threading_mode="SHARED")

    def client(self) -> ReconnectingClient:
        client = headrace.connect(self.directory, reconnect=True)
        self.stack.callback(client.close)
        self.clients.append(client)
        return client

    def lose_driver(self) -> None:
        self.driver.close()
        for client in self.clients:
            await_true(lambda client=client: client.state is ConnectionState.DISCONNECTED)

    def await_connection(self) -> None:
        for client in self.clients:
            await_true(lambda client=client: client.state is ConnectionState.CONNECTED)

    def restart(self) -> None:
        self.lose_driver()
        self.start()

    def let_clients_end(self) -> None:
        """Starts a driver for the threads of closed clients that still wait for one, and waits until they end."""
        self.start()
        for client in self.clients:
            client._thread.join(TIMEOUT_S)

    def server(self, client: Any, handler: Callable[[bytes], Any]) -> headrace.Server:
        server = headrace.Server(client, self.route.channel, self.stream_id, handler, **self.route.options)
        thread = threading.Thread(target=self._serve, args=(server,))
        thread.start()
        self.stack.callback(thread.join, TIMEOUT_S)
        self.stack.callback(server.close)
        return server

    def _serve(self, server: headrace.Server) -> None:
        try:
            server.serve()
        except headrace.HeadraceError as end:
            self.ends.append(end)
        else:
            self.ends.append(None)

    def requester(self, client: Any) -> headrace.Requester:
        requester = headrace.Requester(
            client, self.route.channel, self.stream_id, timeout_s=TIMEOUT_S, **self.route.options
        )
        return self.stack.enter_context(requester)


@pytest.fixture
def site(route: Any, stream_id: int) -> Iterator[Site]:
    directory = Path(headrace.default_directory() + "-rpc-reconnecting")
    shutil.rmtree(directory, ignore_errors=True)
    site = Site(directory, route, stream_id)
    yield site
    site.stack.close()
    site.driver.close()
    shutil.rmtree(directory, ignore_errors=True)


class Stuck:
    """Handlers that answer at once, or when they are released."""

    def __init__(self, release: threading.Event) -> None:
        self.taken = threading.Event()
        self.release = release

    def plain(self, request: bytes) -> bytes:
        if request == b"stuck":
            self.taken.set()
            self.release.wait(TIMEOUT_S)
        return request.upper()

    async def coroutine(self, request: bytes) -> bytes:
        return await asyncio.to_thread(self.plain, request)


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_calls_in_flight_say_that_the_driver_ended_and_later_ones_are_answered(
    site: Site, release: threading.Event, kind: str
) -> None:
    stuck = Stuck(release)
    server = site.server(site.client(), getattr(stuck, kind))
    requester = site.requester(site.client())
    for count in (1, 2):
        stuck.taken.clear()
        release.clear()
        assert requester.request(b"before") == b"BEFORE"
        calls = [requester.submit(b"stuck") for _ in range(3)]
        assert stuck.taken.wait(TIMEOUT_S)
        with ThreadPoolExecutor(2) as pool:
            waits = [pool.submit(call.result) for call in calls[:2]]
            site.lose_driver()
            for wait in waits:
                with pytest.raises(headrace.ServerLostError, match="may have"):
                    wait.result(TIMEOUT_S)
        # No thread waited for this one.
        with pytest.raises(headrace.ServerLostError, match="may have"):
            calls[2].result()
        assert requester.in_flight_count == 0
        with pytest.raises(headrace.RequestTimeoutError, match="no driver came back"):
            requester.request(b"none", timeout_s=0.01)
        site.start()
        # The server may meet the next driver when it has not seen the end of the last one.
        site.await_connection()
        release.set()
        assert requester.request(b"after") == b"AFTER"
        assert server.requester_count == 1
        # Nothing was done twice, and what was done for no one is counted, of those that were taken.
        await_true(lambda count=count: count <= server.lost_count <= 3 * count)
    assert requester.unclaimed_count == 0


def test_a_request_without_a_driver_waits_for_the_next_one(site: Site) -> None:
    site.server(site.client(), bytes.upper)
    requester = site.requester(site.client())
    assert requester.request(b"one") == b"ONE"
    site.lose_driver()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(requester.request, b"two")
        site.start()
        assert answer.result(TIMEOUT_S) == b"TWO"


def test_coroutines_are_told_and_go_on(site: Site, release: threading.Event) -> None:
    stuck = Stuck(release)
    site.server(site.client(), stuck.plain)
    requester = site.requester(site.client())

    async def main() -> None:
        assert await requester.request_async(b"before") == b"BEFORE"
        calls = [asyncio.create_task(requester.request_async(b"stuck")) for _ in range(3)]
        assert await asyncio.to_thread(stuck.taken.wait, TIMEOUT_S)
        await asyncio.to_thread(site.lose_driver)
        for call in calls:
            with pytest.raises(headrace.ServerLostError, match="may have"):
                await call
        assert requester.in_flight_count == 0
        with pytest.raises(headrace.RequestTimeoutError, match="no driver is there"):
            await requester.request_async(b"none", timeout_s=0.01)
        waiting = asyncio.create_task(requester.request_async(b"after"))
        await asyncio.sleep(0)
        release.set()
        await asyncio.to_thread(site.start)
        assert await waiting == b"AFTER"

    asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_a_request_that_no_server_has_taken_says_that_the_driver_ended(site: Site, kind: str) -> None:
    client = site.client()
    unserved = headrace.Server(client, site.route.channel, site.stream_id, bytes.upper, **site.route.options)
    site.stack.enter_context(unserved)
    requester = site.requester(site.client())

    async def main() -> None:
        call = asyncio.create_task(requester.request_async(b"x"))
        await asyncio.to_thread(await_true, lambda: requester._link.current.reading is not None)
        await asyncio.to_thread(site.lose_driver)
        with pytest.raises(headrace.ServerLostError, match="the driver ended"):
            await call

    if kind == "coroutines":
        asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))
    else:
        call = requester.submit(b"x")
        site.lose_driver()
        with pytest.raises(headrace.ServerLostError, match="the driver ended"):
            call.result()


def test_the_next_server_answers_what_comes_after_the_first(site: Site, release: threading.Event) -> None:
    stuck = Stuck(release)
    client = site.client()
    server = site.server(client, stuck.plain)
    requester = site.requester(site.client())
    call = requester.submit(b"stuck")
    assert stuck.taken.wait(TIMEOUT_S)
    server.close()
    with pytest.raises(headrace.ServerLostError, match="the server went away"):
        call.result()
    release.set()
    site.server(client, bytes.lower)
    assert requester.request(b"NEXT") == b"next"
    site.restart()
    # Of the server that was closed nothing came back.
    assert requester.request(b"NEXT") == b"next"


def test_what_is_closed_without_a_driver_ends(site: Site) -> None:
    server = site.server(site.client(), bytes.upper)
    requester = site.requester(site.client())
    assert requester.request(b"one") == b"ONE"
    site.lose_driver()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(requester.request, b"two")
        requester.close()
        with pytest.raises(headrace.ClosedError, match=r"Requester\(.* is closed"):
            answer.result(TIMEOUT_S)
    server.close()
    await_true(lambda: site.ends == [None])
    site.start()
    site.await_connection()
    # Neither came back.
    assert not list(Path(site.directory, "publications").iterdir())


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_a_client_that_is_closed_without_a_driver_ends_both(
    site: Site, release: threading.Event, kind: str
) -> None:
    stuck = Stuck(release)
    clients = [site.client() for _ in range(2)]
    server = site.server(clients[0], getattr(stuck, kind))
    requester, of_coroutines = [site.requester(clients[1]) for _ in range(2)]
    assert requester.request(b"one") == b"ONE"
    call = requester.submit(b"stuck")
    assert stuck.taken.wait(TIMEOUT_S)
    site.lose_driver()
    for client in clients:
        client.close()
    release.set()
    await_true(lambda: site.ends)
    assert site.ends == [None]
    for late in (
        call.result,
        lambda: requester.request(b"two"),
        lambda: asyncio.run(of_coroutines.request_async(b"two")),
    ):
        with pytest.raises(headrace.ClosedError, match=r"Requester\(.* is closed"):
            late()
    if kind == "plain":
        with pytest.raises(headrace.ClosedError, match=r"Server\(.* is closed"):
            server.poll()
    site.let_clients_end()


def test_a_coroutine_that_waits_is_told_that_its_client_was_closed_without_a_driver(
    site: Site, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = Stuck(release)
    server_client, client = site.client(), site.client()
    site.server(server_client, stuck.plain)
    requester = site.requester(client)

    async def closed_meanwhile(*_: object) -> None:
        await asyncio.to_thread(site.lose_driver)
        client.close()

    async def main() -> None:
        call = asyncio.create_task(requester.request_async(b"stuck"))
        assert await asyncio.to_thread(stuck.taken.wait, TIMEOUT_S)
        monkeypatch.setattr(aio, "wait_for_messages", closed_meanwhile)
        with pytest.raises(headrace.ClosedError, match=r"Requester\(.* is closed"):
            await call

    asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))
    server_client.close()
    site.let_clients_end()


def test_a_client_that_ends_with_its_driver_says_so_to_both(site: Site, release: threading.Event) -> None:
    stuck = Stuck(release)
    clients = [site.driver.connect() for _ in range(2)]
    server = site.server(clients[0], stuck.plain)
    requester = site.requester(clients[1])
    assert requester.request(b"one") == b"ONE"
    call = requester.submit(b"stuck")
    assert stuck.taken.wait(TIMEOUT_S)
    site.driver.close()
    with pytest.raises(headrace.DriverTimeoutError, match="the driver has stopped"):
        call.result()
    release.set()
    await_true(lambda: site.ends)
    assert isinstance(site.ends[0], headrace.DriverTimeoutError)
    for late in (lambda: requester.request(b"two"), server.poll):
        with pytest.raises(headrace.DriverTimeoutError, match="the driver has stopped"):
            late()
