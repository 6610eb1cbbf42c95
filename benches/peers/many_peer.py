"""A publisher of many streams that are all recorded: a batch to one stream after the other.

usage: many_peer.py DIR CHANNEL FIRST_STREAM_ID STREAMS WINDOWS WINDOW_S

Prints `count nanoseconds` for each window: messages recorded by then.
"""

import sys
import time

import headrace
from headrace.archive.protocol.counters import RECORDING_POSITION

MESSAGE = b"x" * 32
BATCH = [MESSAGE] * 64
FRAME_LENGTH = 64


def main(directory: str, channel: str, first: str, streams: str, windows: str, window_s: str) -> None:
    """All streams are recorded before the first message."""
    with headrace.connect(directory) as client, headrace.Archive.connect(client) as archive:
        publications = [
            archive.add_recorded_publication(channel, int(first) + index) for index in range(int(streams))
        ]
        counters = [record.counter_id for record in client.counters if record.type_id == RECORDING_POSITION]
        assert len(counters) == len(publications)

        def recorded() -> int:
            return sum(client.counters.value(counter_id) for counter_id in counters) // FRAME_LENGTH

        for _ in range(int(windows)):
            before, start = recorded(), time.perf_counter_ns()
            deadline = start + int(float(window_s) * 1e9)
            while time.perf_counter_ns() < deadline:
                for publication in publications:
                    publication.offer_batch(BATCH)
            print(recorded() - before, time.perf_counter_ns() - start, flush=True)


if len(sys.argv) != 7:
    sys.exit(__doc__)
main(*sys.argv[1:])
