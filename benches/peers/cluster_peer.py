"""A whole node of ours in one process, whose service sends each message back, until SIGTERM.

usage: cluster_peer.py DIR NODE_DIR INGRESS_CHANNEL LOG_CHANNEL
"""

import signal
import sys
import time

import headrace
from headrace.cluster import ClientSession, ClusteredService, ClusterNode


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


def main(directory: str, node_directory: str, ingress_channel: str, log_channel: str) -> None:
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
            Echo(),
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


if len(sys.argv) != 5:
    sys.exit(__doc__)
main(*sys.argv[1:])
