"""Processes that end without a word: the other side notices by the kernel, not by a time-out."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import fresh_directory

import headrace
from headrace.event_log import EventReader
from headrace.tools import CncFile, read_error_log
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

CHANNEL = "aeron:ipc?term-length=64k"
# Far above what noticing takes, and below any time-out of the protocol, which would notice too: with these settings
# a test that ends in time saw the kernel's word.
NEVER_NS = 3_600_000_000_000

SUBSCRIBE = """
import sys, time, headrace
with headrace.connect(sys.argv[1]) as client, client.add_subscription(sys.argv[2], 1) as subscription:
    subscription.wait_until_connected(None)
    print("connected", flush=True)
    time.sleep(3600)
"""
PUBLISH = """
import sys, time, headrace
with headrace.connect(sys.argv[1]) as client, client.add_publication(sys.argv[2], 1) as publication:
    publication.wait_until_connected(None)
    print("connected", flush=True)
    time.sleep(3600)
"""
FORK_AND_SUBSCRIBE = """
import os, sys, time, headrace
client = headrace.connect(sys.argv[1])
subscription = client.add_subscription(sys.argv[2], 1)
subscription.wait_until_connected(None)
if os.fork() == 0:
    print("connected", os.getpid(), flush=True)
time.sleep(3600)
"""
CLOSE_ON_SIGTERM = """
import sys, time, headrace
with headrace.exit_on_sigterm(), headrace.connect(sys.argv[1]) as client:
    with client.add_subscription(sys.argv[2], 1) as subscription:
        subscription.wait_until_connected(None)
        try:
            print("connected", flush=True)
            subscription.receive(timeout_s=3600)
        finally:
            print("closing", flush=True)
"""


@pytest.fixture
def driver() -> Iterator[headrace.MediaDriver]:
    """A driver whose time-outs are never over."""
    with headrace.MediaDriver.embedded(
        threading_mode="SHARED",
        client_liveness_timeout_ns=NEVER_NS,
        publication_unblock_timeout_ns=2 * NEVER_NS,
        publication_linger_timeout_ns=1_000_000,
    ) as driver:
        yield driver


@contextlib.contextmanager
def program(text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        with process:
            pass


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def system_value(client: headrace.Client, label: str) -> int:
    return next(record.value for record in client.counters if record.label.startswith(label))


def errors_of(directory: str) -> list[str]:
    with CncFile.open(Path(directory)) as cnc:
        return [entry.text for entry in read_error_log(cnc.error_log)]


def test_a_killed_subscriber_no_longer_holds_the_publisher(driver: headrace.MediaDriver) -> None:
    with driver.connect() as client, client.add_publication(CHANNEL, 1) as publication:
        with program(SUBSCRIBE, driver.directory, CHANNEL) as subscriber:
            assert first_line(subscriber) == "connected\n"
            name = f"python pid={subscriber.pid}"
            # It comes with the client's first heartbeat.
            await_true(lambda: any(f" name={name} " in record.label for record in client.counters))
            while publication.offer(bytes(1000)) is not headrace.OfferResult.BACK_PRESSURED:
                pass
            subscriber.kill()
            await_true(lambda: publication.offer(b"x") is headrace.OfferResult.NOT_CONNECTED)
        assert system_value(client, "Client liveness timeouts") == 1
        assert any("process ended without closing" in text for text in errors_of(driver.directory))
        with EventReader(driver.directory) as events:
            gone = [event for event in events.poll() if event.kind == "client" and event.is_fault]
        assert [event.detail for event in gone] == [name]


def test_a_killed_publisher_ends_its_streams_and_its_log_goes(driver: headrace.MediaDriver) -> None:
    with driver.connect() as client, client.add_subscription(CHANNEL, 1) as subscription:
        with program(PUBLISH, driver.directory, CHANNEL) as publisher:
            assert first_line(publisher) == "connected\n"
            publisher.kill()
            await_true(lambda: not subscription.is_connected)
        logs = Path(driver.directory, "publications")
        await_true(lambda: not list(logs.iterdir()))


def test_a_forked_child_does_not_keep_its_dead_parent_alive(driver: headrace.MediaDriver) -> None:
    with (
        driver.connect() as client,
        client.add_publication(CHANNEL, 1) as publication,
        program(FORK_AND_SUBSCRIBE, driver.directory, CHANNEL) as parent,
    ):
        child = int(first_line(parent).split()[1])
        try:
            parent.kill()
            await_true(lambda: not publication.is_connected)
            os.kill(child, 0)
        finally:
            os.kill(child, signal.SIGKILL)


def test_sigterm_closes_with_blocks(driver: headrace.MediaDriver) -> None:
    with driver.connect() as client, client.add_publication(CHANNEL, 1) as publication:
        with program(CLOSE_ON_SIGTERM, driver.directory, CHANNEL) as subscriber:
            assert first_line(subscriber) == "connected\n"
            subscriber.send_signal(signal.SIGTERM)
            out, err = subscriber.communicate(timeout=TIMEOUT_S)
        assert (subscriber.returncode, out, err) == (143, "closing\n", "")
        await_true(lambda: not publication.is_connected)
        assert system_value(client, "Client liveness timeouts") == 0


def test_a_client_notices_a_killed_driver_and_the_next_driver_starts_at_once() -> None:
    directory = fresh_directory("killed")
    command = [sys.executable, "-m", "headrace", "driver", "--dir", str(directory), "-m", "SHARED"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert "media driver in" in first_line(process)
        faults: list[Exception] = []
        with headrace.connect(directory, driver_timeout_ms=3_600_000, on_error=faults.append) as client:
            publication = client.add_publication(CHANNEL, 1)
            process.kill()
            process.wait(TIMEOUT_S)
            await_true(lambda: client.is_closed and faults)
            assert publication.offer(b"x") is headrace.OfferResult.CLOSED
            assert "the driver's process has ended without stopping" in str(faults[0])
        with pytest.raises(headrace.DriverTimeoutError, match="the driver's process has ended"):
            headrace.connect(directory, driver_timeout_ms=200)
        # Its heartbeat is seconds old, and its time-out ten: without the kernel's word it would be refused.
        with headrace.MediaDriver(directory=directory, dir_delete_on_shutdown=True) as driver:
            driver.connect().close()
    finally:
        process.kill()
        with process:
            pass
