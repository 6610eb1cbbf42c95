"""The process that `headrace cluster check-determinism` starts: replays a log, and writes what the service did.

Each line of the trace is JSON: the log position of an entry, the handler, what it asked for, a digest of the state if
it was looked at.
"""

from __future__ import annotations

import faulthandler
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from headrace import HeadraceError, MediaDriver
from headrace.cli.cluster.determinism import LIVE, OTHERS, SHOW_STACKS, WHOLE
from headrace.cli.cluster.node import service_maker
from headrace.cli.lifecycle import FAILED
from headrace.cluster import Cluster, ClusteredService, ClusterNode, DeterminismCheck
from headrace.cluster.node.running_member import stored_messages
from headrace.cluster.protocol.codes import SnapshotMark
from headrace.cluster.protocol.messages import decode
from headrace.cluster.protocol.snapshots import SnapshotMarker


class _Traced(DeterminismCheck):
    """A check that writes what the first instance does, and looks at the snapshots that the member has taken.

    Args:
        make: Makes an instance.
        trace: Where it is written.
        snapshots: What the member stored, by log position.
        state_every: As for :class:`DeterminismCheck`.
    """

    def __init__(
        self,
        make: Callable[[], ClusteredService],
        trace: TextIO,
        snapshots: dict[int, list[bytes]],
        state_every: int,
    ) -> None:
        super().__init__(make, state_every=state_every)
        self._trace = trace
        self._snapshots = snapshots
        self.others: list[str] = []
        """Where the state is another than in the snapshot of the member."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        """See :class:`DeterminismCheck`."""
        super().on_start(cluster, snapshot)
        self._write("on_start")

    def on_take_snapshot(self) -> Iterator[bytes]:
        """See :class:`DeterminismCheck`."""
        state: list[bytes] = []
        for message in super().on_take_snapshot():
            state.append(bytes(message))
            yield message
        stored = self._snapshots.get(self._position)
        if stored is not None and stored != state:
            other = self._difference_from(stored, state)
            if other is not None:
                self.others.append(f"log_position={self._position}: {other}")

    def _both(self, name: str, *arguments: Any) -> None:
        try:
            super()._both(name, *arguments)
        finally:
            self._write(name)

    def _write(self, name: str) -> None:
        assert self._cluster is not None
        asked = [repr(one) for one in self._first.tape.asked]
        self._trace.write(json.dumps([self._cluster.log_position, name, asked, self._digest]) + "\n")
        # A process that dies leaves how far it came.
        self._trace.flush()


def _stored(directory: Path) -> dict[int, list[bytes]]:
    """What the service has stored in each snapshot that the member took, by log position."""
    found: dict[int, list[bytes]] = {}
    for position, recording_id in json.loads((directory / LIVE).read_text()):
        messages = (data for _, data in stored_messages(directory / "archive", recording_id))
        # The container's part is before the service's.
        for data in messages:
            mark = decode(data)
            if isinstance(mark, SnapshotMarker) and mark.mark is SnapshotMark.END:
                break
        found[position] = list(messages)
    return found


def _main(directory: str, service: str, trace: str, state_every: str) -> None:
    faulthandler.register(SHOW_STACKS)
    errors: list[str] = []
    failure: HeadraceError | None = None
    with Path(trace).open("w") as file:
        snapshots = _stored(Path(directory))
        check = _Traced(service_maker(service), file, snapshots, int(state_every))
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
    (Path(directory) / OTHERS).write_text("\n".join(check.others))
    # Of a process that a handler has ended, whatever its exit status is, this is not there.
    (Path(directory) / WHOLE).touch()


if __name__ == "__main__":
    _main(*sys.argv[1:])
