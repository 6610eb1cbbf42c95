"""The row of following: a Python program catches up with a recording and goes on with its publisher."""

import time

from benches.archive_rows import BESIDE, IPC, ROUNDS, STREAM_ID, Running, our_archive
from benches.processes import background, python_peer
from benches.report import Measurement, Row

HISTORY = 8_000_000
LIVE = 8_000_000
LENGTH = 32


def _rates(running: Running) -> tuple[float, float]:
    """Messages a second, and the part of them that came from the publisher."""
    command = python_peer("follow_peer.py", running.directory, STREAM_ID, HISTORY, LIVE, LENGTH)
    with background(command, ready="READY", is_fed=True) as publisher:
        assert publisher.stdin is not None
        recording = running.archive.list_recordings()[-1]
        with running.archive.follow(recording.recording_id) as follow:
            taken = from_live = 0
            has_begun = False
            begin_s = time.perf_counter()
            while taken < HISTORY + LIVE:
                count = len(follow.poll_batch())
                taken += count
                from_live += count if follow.is_live else 0
                if follow.is_live and not has_begun:
                    # One that began before would have ended by the time that the history is read.
                    has_begun = True
                    publisher.stdin.write("go\n")
                    publisher.stdin.flush()
                if not count:
                    time.sleep(0)
            duration_s = time.perf_counter() - begin_s
        publisher.stdin.write("end\n")
        publisher.stdin.flush()
        publisher.wait(timeout=60)
    return taken / duration_s, from_live / taken


def archive_follow() -> Row:
    """From the first recorded message to the last live one, in Python."""
    rates, shares = [], []
    for _ in range(ROUNDS):
        with our_archive() as running:
            rate, share = _rates(running)
            rates.append(rate)
            shares.append(share)
    return Row(
        name="archive-follow",
        unit="msg/s",
        ours=Measurement(observations=rates),
        peer_name="none",
        peer=None,
        target=">= 4 M",
        configuration=(
            f"{HISTORY:,} messages of {LENGTH} bytes are recorded; Archive.follow with poll_batch reads them, and when "
            f"it is live a publisher in Python, in another process, sends {LIVE:,} more over {IPC} in batches; {BESIDE}"
        ),
        notes={"least part that came live": min(shares), "greatest part that came live": max(shares)},
    )
