"""Directories whose files go to memory that has been used before.

In a virtual machine, memory is several times slower the first time, since the host has yet to give it. The program that
runs first would pay for it.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def dd_command(file: Path, length: int) -> list[str]:
    """Writes a file of zeros; `length` in bytes, a multiple of 1 MiB."""
    return ["dd", "if=/dev/zero", f"of={file}", "bs=1M", f"count={length >> 20}", "status=none"]


@contextmanager
def used_directory(length: int) -> Iterator[Path]:
    """A temporary directory for `length` bytes of files. What was written before is on the disk and not in the way."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as base:
        os.sync()
        used = Path(base) / "used"
        subprocess.run(dd_command(used, length), check=True)
        used.unlink()
        yield Path(base)
