"""Checks a wheel as a user gets it: `python scripts/check_wheel.py WHEEL`.

Installs it alone into a fresh environment, without a package index, and runs what it holds: messages over a driver, the
`headraced` command, the end of a process with a thread inside a call, the errors that name an extra. Prints how much
was installed and how long the import takes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

SIZE_MAX_MB = 60

MESSAGES = """
import headrace
with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
    subscription = client.add_subscription("aeron:ipc", 10)
    publication = client.add_publication("aeron:ipc", 10)
    publication.offer_blocking(b"hello")
    print(headrace.__version__, subscription.receive(timeout_s=30).payload)
"""
NATIVE_DRIVER = """
import subprocess, sys, headrace
driver = subprocess.Popen([sys.argv[1], "-Daeron.dir=" + sys.argv[2]], stdout=subprocess.DEVNULL)
try:
    with headrace.connect(sys.argv[2], driver_timeout_ms=30_000) as client:
        print(len(client.counters) > 0)
finally:
    driver.terminate()
    driver.wait()
"""
# The last call that a daemon thread is in when the process ends: the interpreter must not unwind it.
DAEMON_CALLS = (
    "headrace.connect(sys.argv[1])",
    "asyncio.run(headrace.aio.connect(sys.argv[1]))",
    "[idle.idle(0) for _ in itertools.count()]",
    "[invoked.invoke() for _ in itertools.count()]",
)
DAEMON = """
import asyncio, itertools, sys, threading, time, headrace, headrace.aio
idle = headrace.IdleStrategy("backoff")
invoked = headrace.MediaDriver.embedded(threading_mode="INVOKER")
threading.Thread(target=lambda: {call}, daemon=True).start()
time.sleep(0.3)
"""
IMPORT = (
    "import time; start = time.process_time(); import headrace; print((time.process_time() - start) * 1e3)"
)


def main(wheel: Path) -> None:
    """Every check, with a line of result each."""
    with zipfile.ZipFile(wheel) as contents:
        assert any(name.endswith("/py.typed") for name in contents.namelist()), "no py.typed"
    with tempfile.TemporaryDirectory(prefix="headrace-wheel-") as folder:
        environment = Path(folder) / "venv"
        venv.create(environment, with_pip=True)
        before = _size(environment)
        python = str(environment / "bin" / "python")
        _run(
            python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", str(wheel)
        )
        size_mb = (_size(environment) - before) / 1e6
        assert size_mb < SIZE_MAX_MB, f"{size_mb:.1f} MB were installed; at most {SIZE_MAX_MB} are allowed"
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, installed {size_mb:.1f} MB")

        assert _run(python, "-c", MESSAGES).endswith("b'hello'")
        headraced = str(environment / "bin" / "headraced")
        assert _run(python, "-c", NATIVE_DRIVER, headraced, f"{folder}/driver") == "True"
        print("messages over the embedded driver, a client on headraced: pass")

        for call in DAEMON_CALLS:
            _run(python, "-c", DAEMON.replace("{call}", call), f"{folder}/no-driver")
        print("processes that end with a daemon thread inside a call: pass")

        refused = subprocess.run(
            [environment / "bin" / "headrace", "stat"], capture_output=True, text=True, check=False
        )
        expected = r"error: \w+ is not installed, which headrace\[cli\] needs: pip install( '[^']+')+\n"
        assert re.fullmatch(expected, refused.stderr), refused.stderr
        print("the command without its extra names what to install: pass")
        times = sorted(float(_run(python, "-c", IMPORT)) for _ in range(5))
        print(f"import headrace: {times[2]:.0f} ms of processor time (median of 5 processes)")


def _run(*command: str) -> str:
    # Without the project's own folder and settings, which a user does not have.
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AERON"))
    }
    finished = subprocess.run(command, capture_output=True, text=True, env=inherited, cwd="/", check=False)
    assert finished.returncode == 0, f"{command}: {finished.stderr}"
    return finished.stdout.strip()


def _size(folder: Path) -> int:
    """Bytes on disk, without the bytecode that Python makes of them."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.suffix != ".pyc")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
