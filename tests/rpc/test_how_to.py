"""The programs of the how-to run as they stand, but for addresses and time-outs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from tests.helpers import TIMEOUT_S
from tests.ports import free_endpoint

pytestmark = pytest.mark.boundary

PAGE = Path(__file__).parents[2] / "docs/user/how-to/request-response.md"
LOCAL_SERVER, LOCAL_REQUESTER, IN_ASYNCIO, SERVER, REQUESTER = re.findall(
    r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL
)
IN_PLACE_OF = {
    "server:24324": free_endpoint(),
    "server:24325": free_endpoint(),
    "timeout_s=1.0": f"timeout_s={TIMEOUT_S}",
    # Those that leave the time-out to the default.
    ") as requester": f", timeout_s={TIMEOUT_S}) as requester",
}


def run(program: str, driver: headrace.MediaDriver) -> subprocess.Popen[str]:
    for written, here in IN_PLACE_OF.items():
        program = program.replace(written, here)
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "AERON_DIR": driver.directory},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize(
    ("server", "requesters"),
    [
        (LOCAL_SERVER, {LOCAL_REQUESTER: "b'HELLO'\n", IN_ASYNCIO: "[b'ONE', b'TWO']\n"}),
        (SERVER, {REQUESTER: "b'HELLO'\n"}),
    ],
    ids=["ipc", "udp"],
)
def test_each_program_of_the_page_runs(
    media_driver: headrace.MediaDriver, server: str, requesters: dict[str, str]
) -> None:
    with run(server, media_driver) as serving:
        try:
            for requester, expected in requesters.items():
                with run(requester, media_driver) as asking:
                    assert (asking.communicate(timeout=TIMEOUT_S)[0], asking.returncode) == (expected, 0)
            serving.terminate()
            assert (serving.communicate(timeout=TIMEOUT_S)[0], serving.returncode) == ("", 143)
        finally:
            serving.kill()
