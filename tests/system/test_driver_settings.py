"""Settings of threads and of the start, seen from outside the driver."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import headrace
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

TASKS = Path("/proc/self/task")
RESOURCE_AGENT = "aeron-md-nra"
CLASSIC = {
    "SHARED": {"[conductor, sender, receiver]"},
    "SHARED_NETWORK": {"conductor", "[sender, receiver]"},
    "DEDICATED": {"conductor", "sender", "receiver"},
}
NEW = {
    "SHARED": {"aeron-md-shd"},
    "SHARED_NETWORK": {"aeron-md-cnd", "aeron-md-net"},
    "DEDICATED": {"aeron-md-cnd", "aeron-md-snd", "aeron-md-rcv"},
}
# The kernel keeps so much of a name.
NAME_LENGTH = 15
CLOCK_NANOSLEEP = {"x86_64": "230", "aarch64": "115"}.get(platform.machine())
SHOWS_CALLS = CLOCK_NANOSLEEP is not None and Path("/proc/self/syscall").exists()
SLEEP_NS = 7_654_321
# Its parent becomes its debugger, as far as the kernel is concerned.
TRACED = """
import ctypes
import sys

import headrace
from headrace.cnc.cnc_file import CncFile

if "traced" in sys.argv:
    PTRACE_TRACEME = 0
    assert ctypes.CDLL(None).ptrace(PTRACE_TRACEME, 0, None, None) == 0
with headrace.MediaDriver.embedded(threading_mode="SHARED", debug_timeout_ns=3_600_000_000_000) as driver:
    with CncFile.open(driver.directory) as cnc:
        print(cnc.header.client_liveness_timeout_ns)
"""


def threads_of_driver() -> dict[str, Path]:
    """Those of this process that have a name of their own, as the threads of a driver have."""
    found: dict[str, Path] = {}
    for task in TASKS.iterdir():
        # Another may end meanwhile.
        with suppress(OSError):
            found[(task / "comm").read_text().strip()] = task
    del found[(TASKS / str(os.getpid()) / "comm").read_text().strip()]
    return found


@contextmanager
def threads(names: set[str], **settings: Any) -> Iterator[dict[str, Path]]:
    """The threads of a driver in this process, among them those of these names. Each names itself when it starts."""
    with headrace.MediaDriver.embedded(**settings):
        await_true(lambda: {name[:NAME_LENGTH] for name in names} <= threads_of_driver().keys())
        yield threads_of_driver()


@pytest.mark.parametrize("mode", CLASSIC)
@pytest.mark.parametrize(
    ("naming", "names", "others"), [("classic", CLASSIC, NEW), ("new", NEW, CLASSIC)], ids=["classic", "new"]
)
def test_threads_are_named_as_the_setting_says(
    mode: str, naming: str, names: dict[str, set[str]], others: dict[str, set[str]]
) -> None:
    with threads(names[mode] | {RESOURCE_AGENT}, threading_mode=mode, thread_naming=naming) as found:
        assert found.keys().isdisjoint({name[:NAME_LENGTH] for name in others[mode]})


@pytest.mark.parametrize("cpu", sorted(os.sched_getaffinity(0))[-1:])
def test_the_thread_for_logs_runs_on_the_processor_that_is_set(cpu: int) -> None:
    (other,) = CLASSIC["SHARED"]
    with threads({other, RESOURCE_AGENT}, threading_mode="SHARED", resource_agent_cpu_affinity=cpu) as found:
        await_true(lambda: os.sched_getaffinity(int(found[RESOURCE_AGENT].name)) == {cpu})
        assert os.sched_getaffinity(int(found[other[:NAME_LENGTH]].name)) == os.sched_getaffinity(0)


@pytest.mark.skipif(not SHOWS_CALLS, reason="the kernel does not show what threads have asked of it")
@pytest.mark.parametrize(
    ("mode", "setting", "thread"),
    [
        ("SHARED", "shared", "[conductor, sender, receiver]"),
        ("SHARED_NETWORK", "shared_network", "[sender, receiver]"),
        ("DEDICATED", "conductor", "conductor"),
        ("DEDICATED", "sender", "sender"),
        ("DEDICATED", "receiver", "receiver"),
        ("DEDICATED", "resource_agent", RESOURCE_AGENT),
    ],
)
@pytest.mark.parametrize(
    ("strategy", "arguments"),
    [("sleep-ns", f"{SLEEP_NS}"), ("backoff", f"1-1-{SLEEP_NS}-{SLEEP_NS}")],
    ids=["sleep-ns", "backoff"],
)
def test_an_idle_thread_sleeps_as_long_as_its_arguments_say(
    mode: str, setting: str, thread: str, strategy: str, arguments: str
) -> None:
    asked: dict[str, Any] = {
        f"{setting}_idle_strategy": strategy,
        f"{setting}_idle_strategy_init_args": arguments,
    }
    with threads({thread}, threading_mode=mode, **asked) as found:
        await_true(lambda: sleep_ns(found[thread[:NAME_LENGTH]]) == SLEEP_NS)


def sleep_ns(task: Path) -> int | None:
    """How long a thread of this process has asked the kernel to let it sleep, if it sleeps."""
    call = (task / "syscall").read_text().split()
    if call[0] != CLOCK_NANOSLEEP:
        return None
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        seconds, part = struct.unpack("qq", os.pread(memory.fileno(), 16, int(call[3], 16)))
    return int(seconds * 1_000_000_000 + part)


@pytest.mark.parametrize("warns", [True, False])
def test_a_directory_that_exists_is_warned_of_if_the_setting_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], warns: bool
) -> None:
    with headrace.MediaDriver.embedded(threading_mode="SHARED", directory=tmp_path, dir_warn_if_exists=warns):
        pass
    assert (f"WARNING: {tmp_path} exists" in capfd.readouterr().err) is warns


@pytest.mark.parametrize(
    ("is_traced", "timeout_s"), [(True, 3600), (False, 10)], ids=["debugger", "no debugger"]
)
def test_clients_of_a_driver_at_a_debugger_have_the_time_that_is_set(is_traced: bool, timeout_s: int) -> None:
    command = [sys.executable, "-c", TRACED, *(["traced"] if is_traced else [])]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S).stdout
    assert int(printed) == timeout_s * 1_000_000_000
