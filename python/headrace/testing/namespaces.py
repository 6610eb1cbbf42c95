"""Two network namespaces joined by a virtual cable, for a network that is the kernel's own.

Needs root and the `ip` command; random loss needs `nft`, rate limits need `tc`. Ask
`Namespaces.unavailable()` first and skip with what it says.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from headrace._base.fork import is_own

_SUBNETS = itertools.count(1)
_STOP_TIMEOUT_S = 5.0


class NamespaceError(RuntimeError):
    """A command that builds or changes the namespaces failed; its text is the command and what it printed."""


@dataclass(slots=True)
class Namespace:
    """One side of the cable: a network stack of its own, with `address` on `device`."""

    name: str
    device: str
    address: str
    _processes: list[subprocess.Popen[Any]] = field(default_factory=list)

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command line that runs `arguments` inside."""
        return ["ip", "netns", "exec", self.name, *arguments]

    def popen(self, arguments: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a process inside; it is ended with the namespaces if it still runs then."""
        process: subprocess.Popen[Any] = subprocess.Popen(self.command(arguments), **options)
        self._processes.append(process)
        return process

    def drop(self, chance: float, *, protocol: str = "udp") -> None:
        """Drop arriving datagrams at random, in the kernel, with this chance. Replaces an earlier rule."""
        if not 0.0 <= chance <= 1.0:
            raise ValueError(f"chance={chance}; it must be between 0 and 1")
        _run(self.command(["nft", "add", "table", "inet", "headrace"]))
        _run(self.command(["nft", "flush", "table", "inet", "headrace"]))
        chain = "{ type filter hook input priority 0; }"
        _run(self.command(["nft", "add", "chain", "inet", "headrace", "input", chain]))
        if chance > 0.0:
            chosen = f"meta l4proto {protocol} numgen random mod 10000 < {round(chance * 10000)} counter drop"
            _run(self.command(["nft", "add", "rule", "inet", "headrace", "input", *chosen.split()]))

    def limit_rate(self, rate: str, *, burst: str = "64kbit", latency: str = "50ms") -> None:
        """Limit what leaves, as in `limit_rate("100mbit")`; the texts are those of `tc`."""
        shape = ["tbf", "rate", rate, "burst", burst, "latency", latency]
        _run(self.command(["tc", "qdisc", "replace", "dev", self.device, "root", *shape]))

    def stop_processes(self) -> None:
        """End what was started here and still runs."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        for process in self._processes:
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        self._processes.clear()


class Namespaces:
    """A pair of namespaces that reach each other and nothing else. A context manager.

    Attributes:
        left: One of them.
        right: The other one.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        number = next(_SUBNETS) % 250
        names = [f"headrace-{os.getpid()}-{number}{side}" for side in "lr"]
        # Interface names are limited to 15 characters; they only need to be unique within their namespace.
        self.left = Namespace(names[0], "hr-left", f"10.213.{number}.1")
        self.right = Namespace(names[1], "hr-right", f"10.213.{number}.2")

    @staticmethod
    def unavailable(*, loss: bool = False, rate: bool = False) -> str | None:
        """Why namespaces cannot be made here, or `None` if they can. Ask for what the test will use."""
        if os.name != "posix" or not hasattr(os, "geteuid"):
            return "network namespaces are a Linux feature"
        if os.geteuid() != 0:
            return "making network namespaces needs root"
        needed = ["ip", *(["nft"] if loss else []), *(["tc"] if rate else [])]
        missing = [command for command in needed if shutil.which(command) is None]
        if missing:
            return f"not installed: {', '.join(missing)} (packages iproute2, nftables)"
        try:
            with Namespaces() as made:
                if loss:
                    made.right.drop(0.0)
                if rate:
                    made.left.limit_rate("1gbit")
        except NamespaceError as refusal:
            return f"the kernel refuses network namespaces here: {refusal}"
        return None

    def __enter__(self) -> Namespaces:
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A forked child that leaves the block leaves the namespaces to its parent.
        if is_own(self._pid):
            self._remove()

    @contextlib.contextmanager
    def cut(self) -> Iterator[None]:
        """Unplug the cable until the `with` body ends."""
        _run(self.left.command(["ip", "link", "set", self.left.device, "down"]))
        try:
            yield
        finally:
            _run(self.left.command(["ip", "link", "set", self.left.device, "up"]))

    def _make(self) -> None:
        left, right = self.left, self.right
        for side in (left, right):
            _run(["ip", "netns", "add", side.name])
        cable = ["type", "veth", "peer", "name", right.device, "netns", right.name]
        _run(["ip", "link", "add", left.device, "netns", left.name, *cable])
        for side in (left, right):
            _run(side.command(["ip", "address", "add", f"{side.address}/24", "dev", side.device]))
            _run(side.command(["ip", "link", "set", side.device, "up"]))
            _run(side.command(["ip", "link", "set", "lo", "up"]))

    def _remove(self) -> None:
        for side in (self.left, self.right):
            side.stop_processes()
            # Best effort on every path out: the pair may be half made. Removing one end removes the cable.
            subprocess.run(["ip", "netns", "delete", side.name], capture_output=True, check=False)


def _run(arguments: Sequence[str]) -> None:
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        raise NamespaceError(f"{' '.join(arguments)}: {missing}") from None
    if done.returncode != 0:
        raise NamespaceError(f"{' '.join(arguments)}: {(done.stderr or done.stdout).strip()}")
