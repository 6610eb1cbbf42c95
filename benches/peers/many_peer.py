"""A publisher of many streams that are all recorded: a batch to one stream after the other.

usage: many_peer.py DIR CHANNEL FIRST_STREAM_ID STREAMS REPLAYS WINDOWS WINDOW_S

The first REPLAYS of the recordings are replayed to it from their beginning, without an end.
Prints `count nanoseconds` for each window: messages recorded by then.
"""

import sys
import time

import headrace
from headrace.archive.protocol.counters import RECORDING_POSITION

MESSAGE = b"x" * 32
BATCH = [MESSAGE] * 64
FRAME_LENGTH = 64
BLOCK_LENGTH = 1 << 20
REPLAY_STREAM_ID = 100_000


def main(
    directory: str, channel: str, first: str, streams: str, replays: str, windows: str, window_s: str
) -> None:
    """All streams are recorded before the first message."""
    with headrace.connect(directory) as client, headrace.Archive.connect(client) as archive:
        publications = [
            archive.add_recorded_publication(channel, int(first) + index) for index in range(int(streams))
        ]
        counters = [record.counter_id for record in client.counters if record.type_id == RECORDING_POSITION]
        assert len(counters) == len(publications)
        recordings = [one.recording_id for one in archive.list_recordings()][: int(replays)]
        replayed = [
            archive.replay(recording_id, channel=channel, stream_id=REPLAY_STREAM_ID + recording_id)
            for recording_id in recordings
        ]

        def recorded() -> int:
            return sum(client.counters.value(counter_id) for counter_id in counters) // FRAME_LENGTH

        for _ in range(int(windows)):
            before, start = recorded(), time.perf_counter_ns()
            deadline = start + int(float(window_s) * 1e9)
            while time.perf_counter_ns() < deadline:
                for publication in publications:
                    publication.offer_batch(BATCH)
                for replay in replayed:
                    for image in replay.subscription.images:
                        image.block_poll(lambda *_: None, BLOCK_LENGTH)
            print(recorded() - before, time.perf_counter_ns() - start, flush=True)


if len(sys.argv) != 8:
    sys.exit(__doc__)
main(*sys.argv[1:])
