"""A whole node of ours in one process, whose service sends each message back, until SIGTERM.

usage: cluster_peer.py DIR NODE_DIR INGRESS_CHANNEL LOG_CHANNEL single|batches
"""

import signal
import sys
import time
from collections.abc import Iterable

import headrace
from headrace.cluster import ClientSession, Cluster, ClusteredService, ClusterNode
from headrace.cluster.service.batches import MessageBatch


class Echo(ClusteredService):
    """Sends each message back, and waits where there is no room."""

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """See the base class."""
        assert session is not None, "the service sends itself nothing"
        while session.offer(message) < 0:
            if session.publication is None or not session.publication.is_connected:
                return
            time.sleep(0)


class BatchEcho(Echo):
    """The same for runs of messages: answers each in one call for all."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        """See the base class."""
        self._cluster = cluster

    def on_session_messages(self, batch: MessageBatch) -> None:
        """See the how-to page on services."""
        cluster, answers, first = self._cluster, batch.as_array(), 0
        while (first := cluster.answer(batch, answers, first)) < len(batch):
            session = cluster.session(int(batch.session_ids[first]))
            if session is None or session.publication is None or not session.publication.is_connected:
                return
            time.sleep(0)


SERVICES = {"single": Echo, "batches": BatchEcho}


def main(directory: str, node_directory: str, ingress_channel: str, log_channel: str, service: str) -> None:
    """Says READY when clients can connect."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())
    properties = {
        "aeron.dir": directory,
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
    }
    with (
        headrace.MediaDriver(properties=properties) as driver,
        ClusterNode(
            SERVICES[service](),
            directory=node_directory,
            driver=driver,
            ingress_channel=ingress_channel,
            log_channel=log_channel,
        ) as node,
    ):
        node.wait_until_leader()
        print("READY", flush=True)
        while node.failure is None:
            signal.pause()


if len(sys.argv) != 6 or sys.argv[5] not in SERVICES:
    sys.exit(__doc__)
main(*sys.argv[1:])
