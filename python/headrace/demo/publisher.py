"""The demo's publisher process: `python -m headrace.demo.publisher DIR CHANNEL STREAM COUNT`."""

from __future__ import annotations

import itertools
import sys
import zlib

import headrace
from headrace.demo.envelope import HEADER
from headrace.demo.records import load_records

TIMEOUT_S = 30.0


def publish(directory: str, channel: str, stream_id: int, count: int) -> None:
    """Send `count` records, one message each, starting over when they are used up."""
    sealed = [(zlib.crc32(record), record) for record in load_records()]
    with (
        headrace.Client.connect(directory=directory, client_name="demo publisher") as client,
        client.add_exclusive_publication(channel, stream_id) as publication,
    ):
        publication.wait_until_connected(TIMEOUT_S)
        offer, pack = publication.offer, HEADER.pack
        for sequence, (checksum, record) in zip(range(count), itertools.cycle(sealed), strict=False):
            message = pack(sequence, checksum) + record
            if offer(message) <= 0:
                publication.offer_blocking(message, timeout_s=TIMEOUT_S)


if __name__ == "__main__":
    try:
        publish(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    except headrace.HeadraceError as failure:
        sys.exit(f"publisher: {failure}")
