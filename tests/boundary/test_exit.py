"""The end of a process whose daemon threads are inside a call: it ends, in time and without a word."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.boundary

PROGRAM = """
import asyncio, threading, time
import headrace

driver = headrace.MediaDriver.embedded()
invoked = headrace.MediaDriver.embedded(threading_mode="INVOKER")
client = driver.connect()
subscription = client.add_subscription("aeron:ipc", 1)
publication = client.add_publication("aeron:ipc", 1)
started = threading.Event()

def receive():
    while True:
        subscription.receive()

def iterate():
    for message in subscription:
        pass
    subscription.receive()

def iterate_async():
    async def read():
        async for message in subscription:
            pass
    asyncio.run(read())

def poll_batch():
    while True:
        subscription.poll_batch(4096)

def poll_message():
    while True:
        subscription.poll_message()

def poll():
    while True:
        subscription.poll(lambda payload, header: time.sleep(0.001), 10)

def offer():
    while True:
        publication.offer_blocking(b"x" * 100, timeout_s=None)

def offer_batch():
    while True:
        publication.offer_batch_blocking([b"x" * 100] * 100, timeout_s=None)

def claim():
    while True:
        with publication.claim_blocking(100, timeout_s=None):
            pass

def connect():
    headrace.connect("/dev/shm/headrace-there-is-no-driver", driver_timeout_ms=60_000)

def idle():
    strategy = headrace.IdleStrategy("backoff")
    while True:
        strategy.idle(0)

def invoke():
    while True:
        invoked.invoke()

def run(call):
    started.set()
    call()

for call in ({calls}):
    started.clear()
    threading.Thread(target=run, args=(call,), daemon=True).start()
    started.wait()
# Into the call, and out of it again while the process ends.
time.sleep(0.1)
"""


@pytest.mark.parametrize(
    "calls",
    [
        "receive",
        "iterate",
        "iterate_async",
        "poll_batch, offer",
        "poll_message, offer",
        "poll, offer",
        "receive, offer, offer",
        "offer_batch",
        "claim",
        "connect",
        "idle",
        "invoke",
    ],
)
def test_daemon_threads_end_with_the_process_without_a_word(calls: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{calls}", calls + ",")],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
