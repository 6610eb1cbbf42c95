"""The steps of the demo and what they found."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hdrh.histogram import HdrHistogram

import headrace
from headrace.cli import measure
from headrace.cli.histogram import histogram_of
from headrace.demo.envelope import DeliveryError

STREAM_ID = 1001
START_TIMEOUT_S = 20.0
END_TIMEOUT_S = 30.0
ROUND_TRIPS = 20_000


@dataclass(frozen=True, slots=True)
class Transport:
    """A way from the publisher to the subscriber, and one there and back for round trips."""

    name: str
    channel: str
    messages: int
    ping: str
    pong: str


_UDP = "aeron:udp?endpoint=127.0.0.1:"
TRANSPORTS = (
    Transport("IPC", "aeron:ipc", 4_000_000, "aeron:ipc", "aeron:ipc"),
    # Other ports for the round trips: there each side has a driver of its own.
    Transport("UDP", f"{_UDP}20125", 2_500_000, f"{_UDP}20126", f"{_UDP}20127"),
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A verified run: every message once, in order, whole."""

    transport: str
    messages: int
    byte_count: int
    seconds: float


@contextlib.contextmanager
def driver_process() -> Iterator[Path]:
    """A media driver in a process and a directory of its own."""
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="headrace-demo-", dir=base, ignore_cleanup_errors=True) as parent:
        directory = Path(parent) / "driver"
        options = ["--dir", directory, "--threading-mode", "SHARED", "--quiet", "--delete-on-shutdown"]
        with measure.worker("headrace", "driver", *options) as process:
            deadline = time.monotonic() + START_TIMEOUT_S
            while not (directory / "cnc.dat").exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise headrace.DriverError("the media driver did not start; see what it printed")
                time.sleep(0.01)
            yield directory


def deliver(directory: Path, transport: Transport, on_progress: Callable[[int], None]) -> Delivery:
    """Stream the records from one process to another; both must end well.

    Raises:
        DeliveryError: a message was lost, repeated, out of order or damaged, or a process failed.
    """
    roles = [str(directory), transport.channel, str(STREAM_ID), str(transport.messages)]
    subscriber = subprocess.Popen(
        [sys.executable, "-m", "headrace.demo.subscriber", *roles], stdout=subprocess.PIPE, text=True
    )
    publisher = subprocess.Popen([sys.executable, "-m", "headrace.demo.publisher", *roles])
    try:
        last = {"count": 0, "bytes": 0, "seconds": 0.0}
        assert subscriber.stdout is not None
        for line in subscriber.stdout:
            last = json.loads(line)
            on_progress(int(last["count"]))
        statuses = subscriber.wait(END_TIMEOUT_S), publisher.wait(END_TIMEOUT_S)
    finally:
        for process in (subscriber, publisher):
            process.kill()
            process.wait()
        if subscriber.stdout is not None:
            subscriber.stdout.close()
    if statuses != (0, 0) or last["count"] != transport.messages:
        raise DeliveryError(
            f"{transport.name}: {last['count']} of {transport.messages} messages verified, "
            f"subscriber status {statuses[0]}, publisher status {statuses[1]}"
        )
    return Delivery(transport.name, int(last["count"]), int(last["bytes"]), float(last["seconds"]))


def round_trips(directory: Path, transport: Transport) -> HdrHistogram:
    """Latencies of one message in flight at a time, to another process and back."""
    streams = (transport.ping, STREAM_ID + 1), (transport.pong, STREAM_ID + 2)
    is_embedded = transport.ping != transport.pong
    with measure.round_trips_to_worker(directory, *streams, is_embedded=is_embedded) as measured:
        return histogram_of(measured(ROUND_TRIPS))


def summary_json(deliveries: list[Delivery], latencies: dict[str, dict[str, object]]) -> dict[str, object]:
    """What the demo keeps beside its picture."""
    return {
        "machine": measure.machine_facts(),
        "deliveries": [asdict(delivery) for delivery in deliveries],
        "round_trips": latencies,
    }
