"""Machines on one switch, each a network namespace, whose packets to each other can be lost one way or both.

Needs root and the `ip` command alone.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from typing import Self

from headrace.testing.namespaces import Namespace

_SUBNETS = itertools.count(1)
# No machine has it, so that a frame that goes there is lost, and whoever sent it does not notice.
_NOWHERE = "02:00:00:00:00:01"
_DEVICE = "hr"


class Switch:
    """A context manager: makes the namespaces, and removes them and what still runs in them.

    Args:
        count: How many machines.

    Attributes:
        machines: The namespaces.
    """

    def __init__(self, count: int) -> None:
        subnet = next(_SUBNETS) % 250
        prefix = f"headrace-{os.getpid()}-{subnet}"
        self._hub = f"{prefix}-hub"
        self.machines = [
            Namespace(f"{prefix}-{number}", _DEVICE, f"10.214.{subnet}.{number + 1}")
            for number in range(count)
        ]

    @staticmethod
    def unavailable() -> str | None:
        """Why none can be made here."""
        if os.geteuid() != 0 or shutil.which("ip") is None:
            return "making network namespaces needs root and `ip` (package iproute2)"
        try:
            with Switch(1):
                return None
        except subprocess.CalledProcessError as refusal:
            return f"the kernel refuses namespaces or bridges: {refusal.stderr.strip()}"

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _make(self) -> None:
        _ip("netns", "add", self._hub)
        _ip("-n", self._hub, "link", "add", "name", "hub0", "type", "bridge")
        _ip("-n", self._hub, "link", "set", "hub0", "up")
        for number, machine in enumerate(self.machines):
            _ip("netns", "add", machine.name)
            cable = ("type", "veth", "peer", "name", machine.device, "netns", machine.name)
            _ip("-n", self._hub, "link", "add", "name", f"port{number}", *cable)
            _ip("-n", self._hub, "link", "set", f"port{number}", "master", "hub0", "up")
            _ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", machine.device)
            for device in (machine.device, "lo"):
                _ip("-n", machine.name, "link", "set", device, "up")

    def _remove(self) -> None:
        for name in (self._hub, *(machine.name for machine in self.machines)):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def cut(self, senders: Iterable[Namespace], receivers: Iterable[Namespace]) -> None:
        """From now on lose what one of the first sends to one of the others; the way back stays."""
        for sender, receiver in itertools.product(senders, tuple(receivers)):
            way = (receiver.address, "lladdr", _NOWHERE, "dev", sender.device, "nud", "permanent")
            _ip("-n", sender.name, "neighbour", "replace", *way)

    def part(self, some: Sequence[Namespace], others: Sequence[Namespace]) -> None:
        """Cut both ways."""
        self.cut(some, others)
        self.cut(others, some)

    def heal(self) -> None:
        """All hear all again."""
        for machine in self.machines:
            _ip("-n", machine.name, "neighbour", "flush", "dev", machine.device, "nud", "permanent")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
