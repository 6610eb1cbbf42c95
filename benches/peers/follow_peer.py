"""Publishes a history, and on a line of standard input the rest, at full speed.

usage: follow_peer.py DIR STREAM HISTORY LIVE LENGTH
"""

import sys

import numpy as np

import headrace

BATCH = 4096


def publish(publication: headrace.Publication, count: int, length: int) -> None:
    """So many messages, in batches."""
    batch = np.zeros((BATCH, length), dtype=np.uint8)
    for begin in range(0, count, BATCH):
        publication.offer_batch_blocking(batch[: min(BATCH, count - begin)], timeout_s=60)


def main(directory: str, stream_id: str, history: str, live: str, length: str) -> None:
    """Says READY when the history is published, and ends on the second line of its input."""
    with headrace.connect(directory) as client, headrace.Archive.connect(client) as archive:
        publication = archive.add_recorded_publication("aeron:ipc", int(stream_id))
        publish(publication, int(history), int(length))
        print("READY", flush=True)
        sys.stdin.readline()
        publish(publication, int(live), int(length))
        sys.stdin.readline()


if len(sys.argv) != 6:
    sys.exit(__doc__)
main(*sys.argv[1:])
