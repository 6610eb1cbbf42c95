"""A whole node of ours in one process, whose service sends each message back, until SIGTERM.

usage: cluster_peer.py DIR NODE_DIR INGRESS_CHANNEL LOG_CHANNEL single|batches
"""

import signal
import sys

from echoing import BatchEcho, Echo

import headrace
from headrace.cluster import ClusterNode

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
