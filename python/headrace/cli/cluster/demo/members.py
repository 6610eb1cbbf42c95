"""The members of the demo: each a process of its own, on files and a driver of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from headrace.cluster import ClusterError, ClusterFileError
from headrace.cluster.files.directory import ClusterDirectory
from headrace.cluster.node.running_member import MemberStatus, RunningMember, stored_messages
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, template_of

__all__ = ["MemberProcess", "Place", "member_list"]

_PORTS = range(20_200, 30_000, 10)
_PORTS_A_MEMBER = 5
# Small files, for a demonstration.
_SETTINGS = {
    "aeron.archive.segment.file.length": "1m",
    "aeron.cluster.log.channel": "aeron:udp?term-length=1m",
}
_END_TIMEOUT_S = 10.0


class Place:
    """Where the demo keeps what it makes: files of members, and drivers where memory is."""

    def __init__(self, files: Path, drivers: Path) -> None:
        self.files = files
        self.drivers = drivers

    @classmethod
    @contextlib.contextmanager
    def made(cls) -> Iterator[Place]:
        """A new one, which is deleted at the end."""
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        with (
            tempfile.TemporaryDirectory(prefix="headrace-demo-", ignore_cleanup_errors=True) as files,
            tempfile.TemporaryDirectory(
                prefix="headrace-demo-", dir=memory, ignore_cleanup_errors=True
            ) as drivers,
        ):
            yield cls(Path(files), Path(drivers))


class MemberProcess:
    """One member; it can be started again."""

    SERVICE = f"{__package__}.ledger:Ledger"

    def __init__(self, member_id: int, members: str, place: Place) -> None:
        self.member_id = member_id
        self._members = members
        self._place = place
        self.directory = place.files / f"member-{member_id}"
        self._log = place.files / f"member-{member_id}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Run it."""
        self._process = self._run(self._command())

    def _command(self) -> list[str]:
        words = ["--members", self._members, "--member", str(self.member_id), "--service", self.SERVICE]
        settings = [word for name, value in _SETTINGS.items() for word in ("-D", f"{name}={value}")]
        return [sys.executable, "-m", "headrace", "cluster", "node", str(self.directory), *words, *settings]

    def _run(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env=os.environ | {"AERON_DIR": str(self._place.drivers / "driver")},
                # Ctrl-C is for this process, which ends the others.
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it at once, with its driver and archive, as ``kill -9`` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Have it end in good order."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_TIMEOUT_S)
        self.kill()

    def check(self) -> None:
        """Look whether it still runs.

        Raises:
            ClusterError: It has ended by itself.
        """
        if self._process is not None and self._process.poll() is not None:
            told = self._log.read_text(errors="replace").strip()
            raise ClusterError(f"member {self.member_id} has ended: {told}")

    def status(self) -> MemberStatus | None:
        """What it shows of itself; ``None`` before it has begun."""
        if self._process is None:
            return None
        try:
            return RunningMember(self.directory / "cluster").status()
        except ClusterFileError:
            return None

    def commands(self) -> list[int]:
        """The numbers of the commands in its log, in their order. Once it has ended."""
        with ClusterDirectory(self.directory / "cluster").recording_log() as log:
            recording_id = log.log_recording_id
        if recording_id is None:
            return []
        entries = stored_messages(self.directory / "archive", recording_id)
        return [int(data[HEADER_LENGTH:]) for _, data in entries if template_of(data) == SESSION_MESSAGE]


def member_list(count: int) -> str:
    """A list of members on this machine, on ports that nothing uses."""
    free = (f"localhost:{base}" for base in _PORTS if all(map(_is_free, range(base, base + _PORTS_A_MEMBER))))
    return ",".join(next(free) for _ in range(count))


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
