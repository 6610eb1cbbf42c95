"""A driver in a process of its own, and programs that must end well."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

TIMEOUT_S = 50.0
ROOT = Path(__file__).resolve().parents[2]


def fresh_directory(name: str) -> Path:
    """A directory name in shared memory that nobody uses."""
    base = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")
    return base / f"headrace-test-{name}-{uuid.uuid4()}"


@contextlib.contextmanager
def driver_process(name: str) -> Iterator[Path]:
    """The directory of a driver that runs until the block ends."""
    directory = fresh_directory(name)
    options = ["--dir", str(directory), "-m", "SHARED", "--delete-on-shutdown", "--quiet"]
    process = subprocess.Popen([sys.executable, "-m", "headrace", "driver", *options])
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not (directory / "cnc.dat").exists():
            assert process.poll() is None, "the driver ended"
            assert time.monotonic() < deadline, "the driver did not start"
            time.sleep(0.01)
        yield directory
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def finish(process: subprocess.Popen[str]) -> str:
    """What a program printed; it must end by itself with status 0."""
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, f"{process.args} ended with {process.returncode}:\n{out}"
    return out


def start(arguments: Sequence[str | Path], directory: Path | None = None) -> subprocess.Popen[str]:
    """A Python program with warnings as errors, on the driver of `directory`."""
    environment = dict(os.environ)
    if directory is not None:
        environment["AERON_DIR"] = str(directory)
    command = [sys.executable, "-W", "error", *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
