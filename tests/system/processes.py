"""A driver in a process of its own, and programs that must end well."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benches.processes import ROOT, background, fresh_directory

from tests.helpers import TIMEOUT_S


@contextlib.contextmanager
def driver_process(name: str) -> Iterator[Path]:
    """The directory of a driver that runs until the block ends."""
    directory = fresh_directory(name)
    options = ["--dir", directory, "-m", "SHARED", "--delete-on-shutdown", "--quiet"]
    with background([sys.executable, "-m", "headrace", "driver", *options], ready=directory / "cnc.dat"):
        yield directory


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
