"""A driver and its clients as different users, as the documents have systemd start them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import TIMEOUT_S

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user"),
]

GROUP = 60_001
USER = 60_002
UNIT = Path(__file__).parents[2] / "docs/user/how-to/standalone-driver.md"
# What a program imports it imports as root, who may read it wherever it is.
DRIVER = """
import sys, headrace
with headrace.MediaDriver(directory=sys.argv[1], dir_delete_on_shutdown=True):
    print("started", flush=True)
    sys.stdin.read()
"""
CLIENT = """
import os, sys, headrace
from headrace.tools import CncFile
os.setgroups([int(group) for group in sys.argv[2:]])
os.setgid(60002)
os.setuid(60002)
try:
    client = headrace.connect(sys.argv[1])
except headrace.HeadraceError as refusal:
    print(refusal)
    try:
        CncFile.open(sys.argv[1])
    except headrace.HeadraceError as refusal:
        print(refusal)
else:
    with client:
        subscription = client.add_subscription("aeron:ipc", 1001)
        publication = client.add_publication("aeron:ipc", 1001)
        publication.offer_blocking(b"from another user")
        print(subscription.receive(timeout_s=20).payload)
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """Of a driver with the umask of the documents' unit, whose group is the one of its clients."""
    umasks = set(re.findall(r"^UMask=(\d+)$", UNIT.read_text(), flags=re.MULTILINE))
    assert umasks == {"0007"}
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="headrace-users-") as parent:
        Path(parent).chmod(0o755)
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, f"{parent}/driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            group=GROUP,
            umask=int(umasks.pop(), 8),
        )
        with driver:
            assert driver.stdout is not None
            assert driver.stdin is not None
            assert driver.stdout.readline() == "started\n"
            yield Path(parent) / "driver"
            driver.stdin.close()
            driver.wait(TIMEOUT_S)


def run_client(directory: Path, *groups: int) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", CLIENT, str(directory), *map(str, groups)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def test_a_client_of_the_drivers_group_uses_it(directory: Path) -> None:
    assert run_client(directory, GROUP) == str(b"from another user")


def test_a_client_of_another_group_is_refused_with_users_mode_and_umask(directory: Path) -> None:
    refusals = run_client(directory).splitlines()
    assert len(refusals) == 2
    for refusal in refusals:
        assert "Permission denied" in refusal
        assert f"{directory} has uid=0 gid={GROUP} mode=0770; this program has uid={USER}" in refusal
        assert re.search(r"umask (is )?0007", refusal)
