"""Two namespaces, a cable, loss made by the kernel."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headrace.testing import Namespaces
from tests.helpers import TIMEOUT_S

UNAVAILABLE = Namespaces.unavailable(loss=True, rate=True)
pytestmark = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))

RECEIVER = """
import socket, sys
opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
opened.bind((sys.argv[1], 7000))
opened.settimeout(20)
print("ready", flush=True)
count = 0
while opened.recv(64) != b"end":
    count += 1
print(count, flush=True)
"""
SENDER = """
import socket, sys
opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(1000):
    opened.sendto(b"data", (sys.argv[1], 7000))
for _ in range(200):
    opened.sendto(b"end", (sys.argv[1], 7000))
"""


def count_arrivals(pair: Namespaces) -> int:
    command = [sys.executable, "-c", RECEIVER, pair.right.address]
    receiver = pair.right.popen(command, stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    assert receiver.stdout.readline() == "ready\n"
    subprocess.run(
        pair.left.command([sys.executable, "-c", SENDER, pair.right.address]), check=True, timeout=TIMEOUT_S
    )
    return int(receiver.stdout.readline())


def test_all_arrives_over_a_good_cable_and_a_share_over_a_bad_one() -> None:
    with Namespaces() as pair:
        assert count_arrivals(pair) == 1000
        pair.right.drop(0.3)
        assert 500 < count_arrivals(pair) < 900


def test_a_rate_limit_is_accepted_and_a_wrong_chance_is_not() -> None:
    with Namespaces() as pair:
        pair.left.limit_rate("100mbit")
        with pytest.raises(ValueError, match=r"chance=1\.5"):
            pair.right.drop(1.5)


def test_nothing_is_left_and_processes_are_ended() -> None:
    with Namespaces() as pair:
        process = pair.left.popen([sys.executable, "-c", "import signal; signal.pause()"])
        name = pair.left.name
    assert process.poll() is not None
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert name not in listed
