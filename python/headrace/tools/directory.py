"""Where a driver keeps its files when nobody says otherwise. The same rule as Aeron, so that tools find both."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

CNC_FILE = "cnc.dat"
LOSS_REPORT_FILE = "loss-report.dat"


def default_directory() -> Path:
    """`AERON_DIR` if it is set, else `aeron-<user>` in shared memory (Linux) or in the temporary directory."""
    configured = os.environ.get("AERON_DIR")
    if configured:
        return Path(configured)
    return _parent() / f"aeron-{_user()}"


def _parent() -> Path:
    shared_memory = Path("/dev/shm")
    if sys.platform == "linux" and shared_memory.is_dir():
        return shared_memory
    return Path(tempfile.gettempdir())


def _user() -> str:
    named = os.environ.get("USER") or os.environ.get("USERNAME")
    if named:
        return named
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return "default"
