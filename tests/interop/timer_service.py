"""The service of `java/TimerService.java` in Python, and a node for services of both in processes of their own.

usage: python -m tests.interop.timer_service node DIRECTORY SERVICE_COUNT
       python -m tests.interop.timer_service container AERON_DIRECTORY CLUSTER_DIRECTORY SERVICE_ID

Both print STARTED, and run until they are killed; the node says the directory of its driver.

Clients say `in TIMER MILLISECONDS`, `no TIMER` and `fired?`. Each service has timers of its own: its id is their last
digit. All hear of all that fire.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from headrace.cluster import ClientSession, Cluster, ClusteredService, ClusterNode, ServiceContainer


class Timing(ClusteredService):
    """Schedules, moves and cancels timers as its clients say, and keeps which fired."""

    def __init__(self, service_id: int) -> None:
        self._service_id = service_id
        self._fired: list[str] = []

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self._cluster = cluster
        self._fired = [word for message in snapshot or () for word in message.decode().split()]
        print("STARTED", *self._fired, flush=True)

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        assert session is not None
        match message.decode().split():
            case ["in", timer, delay]:
                self._cluster.schedule_timer(10 * int(timer) + self._service_id, timestamp + int(delay))
            case ["no", timer]:
                self._cluster.cancel_timer(10 * int(timer) + self._service_id)
            case _:
                session.offer(f"{self._service_id}:{' '.join(self._fired)}".encode())

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        self._fired.append(str(correlation_id))

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield f" {' '.join(self._fired)}".encode()


def main() -> None:
    """Plays the role named on the command line."""
    match sys.argv[1:]:
        case ["node", directory, count]:
            with ClusterNode(directory=directory, service_count=int(count)) as node:
                print("STARTED", node.driver.directory, flush=True)
                node.wait()
        case ["container", aeron, cluster, service_id]:
            with ServiceContainer(
                Timing(int(service_id)),
                aeron_directory=aeron,
                cluster_directory=cluster,
                service_id=int(service_id),
            ) as container:
                container.join()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
