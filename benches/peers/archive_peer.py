"""Our driver and archive in one process until SIGTERM.

usage: archive_peer.py DIR ARCHIVE_DIR
"""

import signal
import sys

import headrace


def main(directory: str, archive_directory: str) -> None:
    """Says READY when clients can connect."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())
    properties = {
        "aeron.dir": directory,
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
    }
    with headrace.ArchivingMediaDriver(
        driver_properties=properties, archive_directory=archive_directory, control_channel_enabled=False
    ):
        print("READY", flush=True)
        while True:
            signal.pause()


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
