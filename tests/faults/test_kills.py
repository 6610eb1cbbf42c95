"""SIGKILL in turn: a publisher between claim and commit, a subscriber, a client, the driver.

The others go on, or end with a clear error; what the dead held is freed; the directory can be used again.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benches.processes import ROOT, background, fresh_directory

import headrace
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.faults

IPC = "aeron:ipc?term-length=64k"
STREAM_ID = 77
# Short enough for a test, and in the order the driver demands: unblock > client liveness > timer.
TIMEOUTS = {
    "aeron.timer.interval": "100ms",
    "aeron.client.liveness.timeout": "3s",
    "aeron.publication.unblock.timeout": "4s",
    "aeron.image.liveness.timeout": "2s",
    "aeron.publication.linger.timeout": "500ms",
}
AWAIT_S = TIMEOUT_S


def await_condition(what: str, condition: Callable[[], bool]) -> None:
    """Waits until `condition` holds; fails naming `what` when it never does."""
    deadline = time.monotonic() + AWAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {AWAIT_S} s for: {what}"
        time.sleep(0.005)


@contextmanager
def script(source: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    """A Python process that prints READY when it stands where the test wants to kill it."""
    command = [sys.executable, "-c", f"import sys, time, headrace\n{source}", *map(str, args)]
    with background(command, ready="READY") as process:
        yield process


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL, and wait until it is gone."""
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.fixture
def driver() -> Iterator[headrace.MediaDriver]:
    """An embedded driver that notices death quickly."""
    with headrace.MediaDriver(
        directory=fresh_directory("kills"),
        threading_mode="SHARED",
        dir_delete_on_shutdown=True,
        properties=TIMEOUTS,
    ) as driver:
        yield driver


CLAIM_AND_STAND = """
client = headrace.Client.connect(directory=sys.argv[1])
publication = client.add_publication(sys.argv[2], 77)
while not publication.is_connected:
    time.sleep(0.005)
publication.offer_blocking(b"before", timeout_s=60)
with publication.try_claim(100) as claim:
    print("READY", flush=True)
    time.sleep(600)
"""


def test_a_publisher_killed_between_claim_and_commit_is_unblocked(driver: headrace.MediaDriver) -> None:
    """The hole becomes padding, and what another publisher wrote after it is read."""
    with headrace.Client.connect(directory=driver.directory) as client:
        subscription = client.add_subscription(IPC, STREAM_ID)
        publication = client.add_publication(IPC, STREAM_ID)
        with script(CLAIM_AND_STAND, driver.directory, IPC) as process:
            kill(process)
        publication.offer_blocking(b"after", timeout_s=TIMEOUT_S)
        received: list[bytes] = []

        def read_all() -> bool:
            subscription.poll(lambda payload, header: received.append(payload), 10)
            return len(received) == 2

        await_condition("the message after the dead claim", read_all)
        assert received == [b"before", b"after"]
        unblocked = client.counters.find(type_id=0, registration_id=19)
        assert unblocked is not None
        await_condition("the repair to be counted", lambda: client.counters.value(unblocked) == 1)


SUBSCRIBE_AND_STAND = """
client = headrace.Client.connect(directory=sys.argv[1])
subscription = client.add_subscription(sys.argv[2], 77)
while not subscription.is_connected:
    time.sleep(0.005)
print("READY", flush=True)
time.sleep(600)
"""


def test_a_killed_subscriber_stops_holding_the_publisher_back(driver: headrace.MediaDriver) -> None:
    """Its position counter is freed; the subscriber that lives gets every message."""
    with headrace.Client.connect(directory=driver.directory) as client:
        publication = client.add_publication(IPC, STREAM_ID)
        subscription = client.add_subscription(IPC, STREAM_ID)
        with script(SUBSCRIBE_AND_STAND, driver.directory, IPC) as process:
            kill(process)
        received: list[int] = []
        sent = 0

        def stream_on() -> bool:
            nonlocal sent
            while sent < 5000 and publication.offer(sent.to_bytes(4, "little") * 20) > 0:
                sent += 1
            subscription.poll(
                lambda payload, header: received.append(int.from_bytes(payload[:4], "little")), 100
            )
            return len(received) == 5000

        await_condition("5000 messages past the dead subscriber", stream_on)
        assert received == list(range(5000))


STREAM_AND_STAND = """
client = headrace.Client.connect(directory=sys.argv[1])
publication = client.add_publication(sys.argv[2], 77)
subscription = client.add_subscription(sys.argv[2], 78)
counter = client.add_counter(1101, b"key", "mine")
publication.offer_blocking(b"last words", timeout_s=60)
print("READY", flush=True)
time.sleep(600)
"""


def test_a_killed_client_loses_nothing_it_sent_and_leaves_nothing(driver: headrace.MediaDriver) -> None:
    """Its last message is still read; then its image goes, and its counters and log files are freed."""
    gone: list[int] = []
    with headrace.Client.connect(directory=driver.directory) as client:
        subscription = client.add_subscription(
            IPC, STREAM_ID, on_unavailable_image=lambda image: gone.append(image.session_id)
        )
        before = {record.counter_id for record in client.counters}
        with script(STREAM_AND_STAND, driver.directory, IPC) as process:
            kill(process)
        received: list[bytes] = []

        def read_last() -> bool:
            subscription.poll(lambda payload, header: received.append(payload), 10)
            return bool(received)

        await_condition("the dead client's message", read_last)
        assert received == [b"last words"]
        await_condition("the image to go", lambda: len(gone) == 1)
        await_condition(
            "its counters to be freed", lambda: {record.counter_id for record in client.counters} == before
        )
        logs = Path(driver.directory) / "publications"
        await_condition("its log to be deleted", lambda: not any(logs.iterdir()))


def test_clients_of_a_killed_driver_end_with_a_clear_error_and_the_directory_is_reusable() -> None:
    """The end of the driver closes the client; a new driver takes the directory over."""
    directory = fresh_directory("killed-driver")
    environment = os.environ | {"AERON_DRIVER_TIMEOUT": "1500"}
    command = [
        sys.executable,
        "-m",
        "headrace",
        "driver",
        "--dir",
        str(directory),
        "--threading-mode",
        "SHARED",
    ]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)
    errors: list[BaseException] = []
    await_condition("the driver to start", (directory / "cnc.dat").exists)
    client = headrace.Client.connect(directory=directory, on_error=errors.append)
    publication = client.add_publication(IPC, STREAM_ID)
    kill(process)
    await_condition("the client to notice", lambda: client.is_closed and bool(errors))
    assert isinstance(errors[0], headrace.DriverTimeoutError)
    assert publication.offer(b"too late") == headrace.OfferResult.CLOSED
    with pytest.raises(headrace.DriverTimeoutError, match="has ended without stopping"):
        client.add_publication(IPC, STREAM_ID)
    client.close()
    with (
        headrace.MediaDriver(
            directory=directory,
            threading_mode="SHARED",
            dir_delete_on_shutdown=True,
            properties={"aeron.driver.timeout": "1500"},
        ),
        headrace.Client.connect(directory=directory) as next_client,
    ):
        assert not next_client.add_publication(IPC, STREAM_ID).is_closed
    assert not directory.exists()
