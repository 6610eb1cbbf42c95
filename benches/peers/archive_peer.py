"""Our driver and archive in one process until SIGTERM.

usage: archive_peer.py DIR ARCHIVE_DIR [CONTROL_CHANNEL]
"""

import signal
import sys

import headrace


def main(directory: str, archive_directory: str, control_channel: str | None = None) -> None:
    """Says READY when clients can connect."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())
    properties = {
        "aeron.dir": directory,
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
    }
    with headrace.ArchivingMediaDriver(
        driver_properties=properties,
        archive_directory=archive_directory,
        max_concurrent_recordings=256,
        control_channel=control_channel,
        control_channel_enabled=control_channel is not None,
        replication_channel="aeron:udp?endpoint=127.0.0.1:0",
    ):
        print("READY", flush=True)
        while True:
            signal.pause()


if len(sys.argv) not in (3, 4):
    sys.exit(__doc__)
main(*sys.argv[1:])
