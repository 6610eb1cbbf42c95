"""The other process of a measurement: `python -m headrace.cli.worker DIR CHANNEL STREAM LENGTH BATCHED`.

Sends as fast as it can until it is ended, or nothing reads any more.
"""

from __future__ import annotations

import sys

from headrace.cli.lifecycle import until_stopped

_BATCH = 1024
_OFFERS_A_LOOK = 4096
_CONNECT_TIMEOUT_S = 10.0


def push(directory: str, channel: str, stream_id: int, length: int, is_batched: bool) -> None:
    """Publish messages of `length` bytes until stopped, or until back pressure does not end."""
    import headrace
    from headrace._base.extras import needs

    with needs("numpy"):
        import numpy as np

    with (
        until_stopped() as stop,
        headrace.Client.connect(directory=directory, client_name="headrace worker") as client,
        client.add_exclusive_publication(channel, stream_id) as publication,
    ):
        publication.wait_until_connected(_CONNECT_TIMEOUT_S)
        rows = np.full((_BATCH, length), ord("x"), dtype=np.uint8)
        message = b"x" * length
        offer, idle = publication.offer, headrace.BackoffIdleStrategy()
        # Also when the reader is gone without a word: this process is not of its terminal's group.
        while not stop.is_set and publication.is_connected:
            if is_batched:
                accepted = publication.offer_batch(rows).accepted
            else:
                accepted = sum(1 for _ in range(_OFFERS_A_LOOK) if offer(message) > 0)
            idle.idle(accepted)


if __name__ == "__main__":
    push(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "1")
