"""The demo's subscriber process: `python -m headrace.demo.subscriber DIR CHANNEL STREAM COUNT`.

Verifies every message and prints its progress as JSON lines: `count`, `bytes`, `seconds` since the first message.
"""

from __future__ import annotations

import json
import sys
import time

import headrace
from headrace.demo.envelope import DeliveryError, Verifier

INTERVAL_S = 0.1
SILENCE_MAX_S = 30.0
FRAGMENTS_A_POLL = 512


def subscribe(directory: str, channel: str, stream_id: int, count: int) -> None:
    """Receive `count` messages and verify each.

    Raises:
        DeliveryError: a message is wrong, or they stop coming.
    """
    verifier = Verifier()
    idle = headrace.BackoffIdleStrategy()

    def handler(payload: bytes, header: headrace.Header) -> None:
        verifier.accept(payload)

    with (
        headrace.Client.connect(directory=directory, client_name="demo subscriber") as client,
        client.add_subscription(channel, stream_id) as subscription,
    ):
        _print(verifier, 0.0)
        while not (fragments := subscription.poll(handler, FRAGMENTS_A_POLL)):
            idle.idle(fragments)
        start = printed_at = moved_at = time.perf_counter()
        while verifier.count < count:
            fragments = subscription.poll(handler, FRAGMENTS_A_POLL)
            idle.idle(fragments)
            now = time.perf_counter()
            if fragments:
                moved_at = now
            elif now - moved_at > SILENCE_MAX_S:
                raise DeliveryError(f"only {verifier.count} of {count} messages arrived")
            if now - printed_at > INTERVAL_S:
                _print(verifier, now - start)
                printed_at = now
        _print(verifier, time.perf_counter() - start)


def _print(verifier: Verifier, elapsed_s: float) -> None:
    print(
        json.dumps({"count": verifier.count, "bytes": verifier.byte_count, "seconds": elapsed_s}), flush=True
    )


if __name__ == "__main__":
    try:
        subscribe(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    except (DeliveryError, headrace.HeadraceError) as failure:
        sys.exit(f"subscriber: {failure}")
