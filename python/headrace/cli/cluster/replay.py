"""The process that `headrace cluster check-determinism` starts: replays a log, and writes what the service did.

Each line of the trace is JSON: the log position of an entry, the handler, what it asked for, a digest of the state.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

from headrace import HeadraceError, MediaDriver
from headrace.cli.cluster.determinism import SHOW_STACKS, WHOLE
from headrace.cli.cluster.node import service_maker
from headrace.cli.lifecycle import FAILED
from headrace.cluster import Cluster, ClusteredService, ClusterNode, DeterminismCheck


class _Traced(DeterminismCheck):
    """A check that writes what the first instance does."""

    def __init__(self, make: Callable[[], ClusteredService], trace: TextIO) -> None:
        super().__init__(make)
        self._trace = trace

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        """See :class:`DeterminismCheck`."""
        super().on_start(cluster, snapshot)
        self._write("on_start")

    def _both(self, name: str, *arguments: Any) -> None:
        try:
            super()._both(name, *arguments)
        finally:
            self._write(name)

    def _write(self, name: str) -> None:
        assert self._cluster is not None
        digest = hashlib.sha256()
        for message in self.service.on_take_snapshot():
            digest.update(b"%d:" % len(bytes(message)) + bytes(message))
        asked = [repr(one) for one in self._first.tape.asked]
        self._trace.write(json.dumps([self._cluster.log_position, name, asked, digest.hexdigest()]) + "\n")
        # A process that dies leaves how far it came.
        self._trace.flush()


def _main(directory: str, service: str, trace: str) -> None:
    faulthandler.register(SHOW_STACKS)
    errors: list[str] = []
    failure: HeadraceError | None = None
    with Path(trace).open("w") as file:
        check = _Traced(service_maker(service), file)
        try:
            with (
                # A driver's directory beside the copy of the log goes with it, also when this process dies.
                MediaDriver(directory=Path(directory) / "driver") as driver,
                ClusterNode(check, driver=driver, directory=directory, on_error=errors.append) as node,
            ):
                # However long the log is: who started this process looks whether it goes on.
                node.wait_until_leader(None)
        except HeadraceError as ended:
            failure = ended
    if failure is not None and not errors:
        errors.append(str(failure))
    for error in dict.fromkeys(errors):
        print(error)
    # A handler that raises, alike in both, is no difference.
    if failure is not None or check.findings:
        raise SystemExit(FAILED)
    # Of a process that a handler has ended, whatever its exit status is, this is not there.
    (Path(directory) / WHOLE).touch()


if __name__ == "__main__":
    _main(*sys.argv[1:])
