"""What `ping`, `throughput` and `bench` measure, without how they show it.

A publisher always runs in a process of its own, so that the figures are those of two Python programs and not of one
that shares its interpreter lock with itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.connection import client_and_turn

if TYPE_CHECKING:
    from headrace import Client, Header
    from headrace.cli.connection import Turn

ROUND_TRIP_LENGTH = 64

_STOP_TIMEOUT_S = 5.0
_CONNECT_TIMEOUT_S = 10.0
_REPLY_TIMEOUT_S = 5.0
_FRAGMENTS_A_POLL = 512
_BATCH_FRAGMENTS = 4096
_TIMESTAMP_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """Messages received in one interval."""

    messages: int
    byte_count: int
    seconds: float

    @property
    def messages_a_second(self) -> float:
        """The rate."""
        return self.messages / self.seconds


@contextlib.contextmanager
def driver_in(directory: Path | None) -> Iterator[Path]:
    """The directory of a running driver: the one given, or that of a new driver in this process."""
    if directory is not None:
        yield directory
        return
    import headrace

    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        yield Path(driver.directory)


@contextlib.contextmanager
def round_trips_to_worker(
    directory: Path, ping: tuple[str, int], pong: tuple[str, int], *, is_embedded: bool
) -> Iterator[Callable[[int], array[int]]]:
    """Measures so many round trips to `headrace pong` in another process, which lasts until the block ends.

    With `is_embedded` each side runs a driver on its own thread: over UDP, that is one busy thread a side.
    """
    streams = ["--channel", ping[0], "--stream", ping[1], "--pong-channel", pong[0], "--pong-stream", pong[1]]
    place = ["--embedded"] if is_embedded else ["--dir", directory]

    def measure(messages: int) -> array[int]:
        return round_trips(
            client,
            turn,
            ping=ping,
            pong=pong,
            messages=messages,
            warmup=messages // 10,
            length=ROUND_TRIP_LENGTH,
        )

    with (
        worker("headrace", "pong", *place, *streams),
        client_and_turn(directory, "ping", is_embedded=is_embedded, idle="yield") as (client, turn),
    ):
        yield measure


@contextlib.contextmanager
def worker(module: str, *arguments: object) -> Iterator[subprocess.Popen[Any]]:
    """A module of this program run in another process, until the block ends. Its stdout is not shown."""
    command = [sys.executable, "-m", module, *(str(argument) for argument in arguments)]
    # In a session of its own: Ctrl-C is for this process, which ends the other one.
    process: subprocess.Popen[Any] = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def throughput(
    directory: Path, channel: str, stream_id: int, *, length: int, is_batched: bool, interval_s: float
) -> Generator[Sample, None, None]:
    """Samples of how fast another process' messages arrive, without end."""
    import headrace

    received = [0, 0]

    def handler(payload: bytes, header: Header) -> None:
        received[0] += 1
        received[1] += len(payload)

    with (
        headrace.Client.connect(directory=directory, client_name="headrace throughput") as client,
        client.add_subscription(channel, stream_id) as subscription,
        worker("headrace.cli.worker", directory, channel, stream_id, length, int(is_batched)) as publisher,
    ):
        idle = headrace.BackoffIdleStrategy()

        def receive() -> None:
            if is_batched:
                batch = subscription.poll_batch(_BATCH_FRAGMENTS)
                received[0] += len(batch)
                received[1] += len(batch.payload)
                idle.idle(len(batch))
            else:
                idle.idle(subscription.poll(handler, _FRAGMENTS_A_POLL))

        _wait_for_first(receive, received, publisher)
        while True:
            start, received[:] = time.perf_counter(), [0, 0]
            while (elapsed_s := time.perf_counter() - start) < interval_s:
                receive()
            yield Sample(received[0], received[1], elapsed_s)


def _wait_for_first(receive: Any, received: list[int], publisher: subprocess.Popen[Any]) -> None:
    import headrace

    deadline = time.monotonic() + _CONNECT_TIMEOUT_S
    while not received[0]:
        receive()
        if publisher.poll() is not None or time.monotonic() > deadline:
            raise headrace.HeadraceError("no message came from the publisher process; see what it printed")


def round_trips(
    client: Client,
    turn: Turn,
    *,
    ping: tuple[str, int],
    pong: tuple[str, int],
    messages: int,
    warmup: int,
    length: int,
) -> array[int]:
    """Round trip times in nanoseconds, one message in flight at a time; the first `warmup` are left out.

    Raises:
        HeadraceError: No `headrace pong` answers on these streams, or a reply does not arrive.
    """
    import headrace

    durations_ns = array("q")
    clock = time.perf_counter_ns
    padding = bytes(max(0, length - _TIMESTAMP_LENGTH))

    def on_reply(payload: bytes, header: Header) -> None:
        durations_ns.append(clock() - int.from_bytes(payload[:_TIMESTAMP_LENGTH], "little"))

    def is_sent() -> bool:
        result = publication.offer(message)
        if result is headrace.OfferResult.CLOSED:
            # Raises why the client ended.
            replies.poll(on_reply, 1)
        if result is headrace.OfferResult.NOT_CONNECTED:
            raise headrace.HeadraceError(silent)
        return result > 0

    silent = "a reply did not come; is `headrace pong` still running?"
    with client.add_subscription(*pong) as replies, client.add_publication(*ping) as publication:
        no_answer = (
            f"no answer on {ping[0]} stream {ping[1]}; is `headrace pong` running, with the same channels?"
        )
        _await(lambda: publication.is_connected and replies.is_connected, turn, _CONNECT_TIMEOUT_S, no_answer)
        for _ in range(warmup + messages):
            message = clock().to_bytes(_TIMESTAMP_LENGTH, "little") + padding
            if publication.offer(message) <= 0:
                _await(is_sent, turn, _REPLY_TIMEOUT_S, silent)
            if not replies.poll(on_reply, 1):
                _await(lambda: replies.poll(on_reply, 1), turn, _REPLY_TIMEOUT_S, silent)
    return durations_ns[warmup:]


def _await(condition: Callable[[], object], turn: Turn, timeout_s: float, problem: str) -> None:
    import headrace

    deadline = time.monotonic() + timeout_s
    while not condition():
        turn(0)
        if time.monotonic() > deadline:
            raise headrace.HeadraceError(problem)


def driver_start_ns() -> int:
    """From starting a driver to the first message received in the same process."""
    import headrace

    begin = time.perf_counter_ns()
    with (
        driver_in(None) as directory,
        headrace.Client.connect(directory=directory) as client,
        client.add_subscription("aeron:ipc", 1) as subscription,
        client.add_publication("aeron:ipc", 1) as publication,
    ):
        publication.offer_blocking(b"first", timeout_s=_CONNECT_TIMEOUT_S)
        subscription.receive(_CONNECT_TIMEOUT_S)
        return time.perf_counter_ns() - begin


def machine_facts() -> dict[str, object]:
    """What a figure needs beside it to mean anything."""
    import platform

    cpu = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        "unknown",
    )
    return {
        "cpu": cpu,
        "cpu_count": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
