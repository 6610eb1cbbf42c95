"""Members in processes of their own, one of whose disks is full: it ends and says so, and the others go on."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from headrace.cli.cluster.demo.members import Place
from tests.cluster.processes import Node, Processes, connect, hosts_of, patient_client

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("unshare") is None,
        reason="mounting a small file system needs root and `unshare` (package util-linux)",
    ),
]

# More than an archive wants to have free when it begins.
SIZE_MB = 256


@contextlib.contextmanager
def small_disk(point: Path) -> Iterator[Path]:
    """A file system in memory; where it is seen by processes that may look into that of another one, as root may."""
    point.mkdir()
    mount = 'mount -t tmpfs -o size="$1"m none "$0" && echo ready && exec sleep infinity'
    command = ["unshare", "--mount", "sh", "-c", mount, str(point), str(SIZE_MB)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "ready\n"
            yield Path(f"/proc/{holder.pid}/root{point}")
        finally:
            holder.kill()


class Full:
    """Disks by member, each of which can be filled."""

    def __init__(self, disks: list[Path]) -> None:
        self._disks = disks

    def fill(self, member: Node) -> None:
        """Leave no room."""
        with contextlib.suppress(OSError), self._ballast(member).open("wb", buffering=0) as file:
            while file.write(bytes(1 << 20)):
                pass

    def free(self, member: Node) -> None:
        """Make room."""
        self._ballast(member).unlink()

    def _ballast(self, member: Node) -> Path:
        return self._disks[member.member_id] / "ballast"


def test_a_member_whose_disk_is_full_ends_and_comes_back_when_there_is_room() -> None:
    hosts = hosts_of(3)
    with contextlib.ExitStack() as held:
        place = held.enter_context(Place.made())
        client = held.enter_context(patient_client(place))
        disks = [held.enter_context(small_disk(place.files / f"disk-{number}")) for number in range(3)]
        members = [Node(number, hosts, Place(disk, place.drivers)) for number, disk in enumerate(disks)]
        cluster = Processes(members, partial(connect, hosts, client))
        held.enter_context(cluster.running())
        full = Full(disks)
        for is_leader in (False, True):
            leader = cluster.settled()
            member = leader if is_leader else members[(leader.member_id + 1) % 3]
            full.fill(member)
            told = cluster.ended(member)
            assert "space" in told, told
            print(told)
            cluster.answered()
            full.free(member)
            member.start()
        cluster.settled()
        cluster.finish()
