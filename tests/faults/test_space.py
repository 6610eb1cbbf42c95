"""Drivers on file systems that fill up: what is mapped has its space, or is refused. None ends by SIGBUS."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import TIMEOUT_S
from tests.ports import free_endpoint

pytestmark = pytest.mark.system

UDP = f"aeron:udp?endpoint={free_endpoint()}"


def run_on(size: str, program: str, directory: Path) -> str:
    """What a program prints: at its first argument is a file system of that size, its second is a free channel."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small file system needs root and `unshare` (package util-linux)")
    mount_and_run = (
        f'mount -t tmpfs -o size={size} none "{directory}" && exec "$0" -c "$1" "{directory}" "{UDP}"'
    )
    command = ["unshare", "--mount", "sh", "-c", mount_and_run, sys.executable, program]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert finished.returncode == 0, f"{finished.returncode}\n{finished.stdout}{finished.stderr}"
    return finished.stdout


REFUSE_A_LOG = """
import pathlib, sys, headrace
with headrace.MediaDriver(directory=sys.argv[1] + "/driver", threading_mode="SHARED") as driver:
    with headrace.Client.connect(directory=driver.directory) as client:
        try:
            client.add_publication("aeron:ipc?term-length=64m", 1)
        except headrace.RegistrationError as refusal:
            print(refusal)
        else:
            sys.exit("a log of 192 MiB fitted into 128 MiB")
        print("LEFT", *pathlib.Path(driver.directory, "publications").iterdir())
        client.add_publication("aeron:ipc?term-length=64k", 2).offer(b"still works")
"""


def test_no_space_left_for_a_log_is_refused_with_the_figures(tmp_path: Path) -> None:
    """The driver goes on working, and says which terms would fit."""
    printed = run_on("128m", REFUSE_A_LOG, tmp_path)
    assert "insufficient usable storage for new log of length=201330688" in printed
    assert "term-length=16m fits" in printed
    assert "aeron.ipc.term.buffer.length" in printed
    assert printed.strip().endswith("LEFT")


FILL_EVERY_LOG = """
import sys, headrace
UDP = sys.argv[2]
settings = {"directory": sys.argv[1] + "/driver", "threading_mode": "SHARED"}
message = bytes(1000)

def write_all_terms(publication, image):
    end = publication.position + 3 * publication.term_length
    while publication.position < end:
        publication.offer(message)
        image.poll(lambda *_: None, 100)

with headrace.MediaDriver(**settings) as driver, driver.connect() as client:
    made = 0
    for channel in (
        "aeron:ipc?term-length=1m|sparse=true",
        f"{UDP}|term-length=256k|sparse=true",
    ):
        for stream_id in range(100):
            try:
                subscription = client.add_subscription(channel.replace("|term-length=256k", ""), stream_id)
                publication = client.add_publication(channel, stream_id)
            except headrace.RegistrationError as refusal:
                print(refusal)
                break
            while not subscription.images:
                if any("insufficient usable" in error.text for error in driver_errors(driver)):
                    break
            else:
                write_all_terms(publication, subscription)
                made += 1
                continue
            break
    client.add_counter(1001, b"", "still works")
    print("MADE", made)
"""

READ_ERRORS = """
from pathlib import Path
from headrace.tools import CncFile, read_error_log

def driver_errors(driver):
    with CncFile.open(Path(driver.directory)) as cnc:
        return list(read_error_log(cnc.error_log))
"""


def test_sixty_four_megabytes_hold_a_driver_and_the_logs_that_fit(tmp_path: Path) -> None:
    """A container's default `/dev/shm`. Each log that was granted can be written from end to end."""
    printed = run_on("64m", READ_ERRORS + FILL_EVERY_LOG, tmp_path)
    assert "insufficient usable storage for new log of length=3149824" in printed
    assert int(printed.split()[-1]) >= 5


START_IN_TOO_LITTLE = """
import pathlib, sys, headrace
directory = sys.argv[1] + "/driver"
try:
    headrace.MediaDriver(directory=directory, perform_storage_checks=False)
except headrace.DriverError as refusal:
    print(refusal)
print("LEFT", *pathlib.Path(sys.argv[1]).iterdir())
with headrace.MediaDriver(directory=directory, counters_buffer_length=1 << 20) as driver, driver.connect() as client:
    client.add_publication("aeron:ipc?term-length=64k", 2).offer(b"works")
"""


def test_a_driver_that_does_not_fit_names_the_setting_and_leaves_nothing(tmp_path: Path) -> None:
    printed = run_on("32m", START_IN_TOO_LITTLE, tmp_path)
    assert "insufficient usable storage" in printed
    assert "aeron.counters.buffer.length" in printed
    assert printed.strip().endswith("LEFT")


FILL_WHILE_IT_RUNS = """
import errno, os, sys, headrace
with headrace.MediaDriver(directory=sys.argv[1] + "/driver", threading_mode="SHARED") as driver:
    with driver.connect() as client, open(sys.argv[1] + "/other", "wb", buffering=0) as other:
        try:
            while True:
                other.write(bytes(4096))
        except OSError as full:
            assert full.errno == errno.ENOSPC, full
        # Pages of counters, of both rings and of the error log that were never written before.
        for number in range(2000):
            client.add_counter(1001, b"", f"counter {number}").value = number
        for number in range(200):
            try:
                client.add_publication(f"aeron:nonsense{number}?" + "x" * 500, 1)
            except headrace.RegistrationError:
                pass
        print("ALIVE", not driver.is_terminated)
"""


def test_a_file_system_that_others_fill_ends_no_driver_and_no_client(tmp_path: Path) -> None:
    assert run_on("64m", FILL_WHILE_IT_RUNS, tmp_path).strip() == "ALIVE True"


PROMISE_AND_FILL = """
import sys, headrace
with headrace.MediaDriver(
    directory=sys.argv[1] + "/driver", threading_mode="SHARED", low_file_store_warning_threshold_bytes=1 << 20
) as driver, driver.connect() as client:
    channel = "aeron:ipc?term-length=1m|sparse=true"
    publications = []
    try:
        for stream_id in range(100):
            publications.append(client.add_publication(channel, stream_id))
    except headrace.RegistrationError as refusal:
        print(refusal)
    closed = publications.pop()
    closed.close()
    for stream_id, publication in enumerate(publications):
        subscription = client.add_subscription(channel, stream_id)
        while not (images := subscription.images):
            pass
        [image] = images
        while publication.position < 3 << 20:
            publication.offer(bytes(100_000))
            image.poll(lambda *_: None, 100)
    print("GRANTED", len(publications))
"""


def test_sparse_logs_are_promised_no_more_than_the_file_system_holds(tmp_path: Path) -> None:
    """None of them is written before the last one is asked for; then each can be written from end to end."""
    printed = run_on("128m", PROMISE_AND_FILL, tmp_path)
    assert "insufficient usable storage for new log of length=3149824" in printed
    assert "to the sparse logs in use" in printed
    assert 15 <= int(printed.split()[-1]) <= 27


PATIENT_DRIVER = """
import sys, headrace
UDP = sys.argv[2]
HOUR_NS = 3600 * 10**9
driver = headrace.MediaDriver(
    directory=sys.argv[1] + "/driver",
    threading_mode="SHARED",
    low_file_store_warning_threshold_bytes=1 << 20,
    publication_linger_timeout_ns=HOUR_NS,
    image_liveness_timeout_ns=HOUR_NS,
"""

CLOSE_PUBLICATIONS = """
)
with driver, driver.connect() as client:
    for channel in ("aeron:ipc?", f"{UDP}|"):
        for stream_id in range(40):
            client.add_publication(f"{channel}term-length=1m|sparse=true", stream_id).close()
    print("OPENED")
"""

CLOSE_IMAGES = """
    receiver_status_message_timeout_ns=10**6,
    timer_interval_ns=10**6,
)
with driver, driver.connect() as client:
    subscriptions = []
    for stream_id in range(40):
        subscription = client.add_subscription(UDP, stream_id)
        subscriptions.append(subscription)
        channel = f"{UDP}|term-length=1m|sparse=true"
        with client.add_publication(channel, stream_id) as publication:
            publication.offer_blocking(bytes(1000), timeout_s=60)
        subscription.receive(timeout_s=60)
        while subscription.images:
            subscription.receive(timeout_s=0.001)
    print("OPENED")
"""


@pytest.mark.parametrize("streams", [CLOSE_PUBLICATIONS, CLOSE_IMAGES], ids=["publications", "images"])
def test_closed_streams_give_back_the_space_they_have_not_taken(tmp_path: Path, streams: str) -> None:
    """Their logs stay there, each with a promise of 3 MiB while it could be written."""
    assert run_on("128m", PATIENT_DRIVER + streams, tmp_path).strip() == "OPENED"
