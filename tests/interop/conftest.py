"""Fixtures that bring the reference's programs to the tests."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from benches.processes import ROOT, JavaPeer, PeerUnavailable, background, fresh_directory

from tests.helpers import TIMEOUT_S
from tests.interop.short_lived import ShortLivedJava

PROCESS_TIMEOUT_S = 150.0


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaPeer:
    """The reference's newest published artifacts, and all programs; skips where Maven cannot bring them.

    One run of the compiler for all takes a seventh of the time of one for each file of tests.
    """
    sources = (ROOT / "tests" / "interop" / "java").glob("*.java")
    try:
        return ShortLivedJava(tmp_path_factory.mktemp("java"), *sources)
    except PeerUnavailable as reason:
        pytest.skip(f"interoperability: {reason}")


@pytest.fixture
def java_driver(java: JavaPeer) -> Iterator[Path]:
    """Directory of a running, unmodified Java driver."""
    with java.driver("interop-java", "SHARED") as directory:
        yield directory


@contextmanager
def our_driver_process(
    name: str, prefix: Sequence[str] = (), properties: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """Our driver in a process of its own, in the mode that suits two cores; `prefix` runs it somewhere else."""
    directory = fresh_directory(name)
    command = [
        *prefix,
        sys.executable,
        "-m",
        "headrace",
        "driver",
        "--dir",
        directory,
        "--threading-mode",
        "SHARED",
        "--delete-on-shutdown",
        *(f"-D{name}={value}" for name, value in (properties or {}).items()),
    ]
    with background(command, ready=directory / "cnc.dat"):
        yield directory


@pytest.fixture
def our_driver() -> Iterator[Path]:
    """Directory of our running driver."""
    with our_driver_process("interop-ours") as directory:
        yield directory


class Peers:
    """Starts publishers and subscribers and waits for all of them to say DONE."""

    def __init__(self, java: JavaPeer | None) -> None:
        """Nothing started yet."""
        self._java = java

    def command(self, language: str, *args: object) -> list[str]:
        """The command line of either side."""
        if language == "java":
            assert self._java is not None, "these peers were made without Java"
            return self._java.command("Peer", *args)
        return [sys.executable, "-m", "tests.interop.peer", *map(str, args)]

    def run(self, *commands: Sequence[str]) -> None:
        """Runs the commands side by side, each started once the one before is ready."""
        with ExitStack() as stack:
            processes = [stack.enter_context(_started(command)) for command in commands]
            for process in processes:
                _finish(process)


@contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, bufsize=1
    )
    killer = threading.Timer(PROCESS_TIMEOUT_S, process.kill)
    killer.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if line.strip() != "READY":
            rest = process.communicate(timeout=TIMEOUT_S)[0]
            raise AssertionError(f"{command} did not get ready:\n{line}{rest}")
        yield process
    finally:
        killer.cancel()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _finish(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    text = process.stdout.read()
    process.wait()
    outcome = f"{process.args} ended with {process.returncode}:\n{text}"
    assert process.returncode == 0, outcome
    assert "DONE" in text, outcome


@pytest.fixture
def peers(java: JavaPeer) -> Peers:
    """Both languages' publishers and subscribers."""
    return Peers(java)
