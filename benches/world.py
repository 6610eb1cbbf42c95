"""How fast the simulated world is: virtual seconds a second, with its rules checked. `python -m benches.world`.

Each node publishes 100-byte messages to the next one and reads those of the one before, in a ring, so many a virtual
second; all in one thread. Build for release first: `make build`.
"""

from __future__ import annotations

import time

import headrace
from headrace.testing import Link, Node, World

_STREAM_ID = 1
_PORT = 24600
_MESSAGE = bytes(100)
_NODES = (2, 10)
_RATES = (0, 100, 1000)
# Of the clock on the wall, for each world.
_DURATION_S = 5.0
_STEP_S = 0.05


def virtual_seconds_a_second(node_count: int, rate: int) -> float:
    """How much virtual time passes while the clock on the wall moves a second."""
    with World(seed=1) as world:
        world.set_links(Link(delay_s=0.0001))
        nodes = [world.add_node(f"node{number}") for number in range(node_count)]
        ring = [_join(node, nodes[(number + 1) % node_count]) for number, node in enumerate(nodes)]
        world.run_until(lambda: all(publication.is_connected for publication, _ in ring), within_s=10)
        for node, (publication, subscription) in zip(nodes, ring, strict=True):
            node.run(_Program(node, publication, subscription, rate).turn)
        begin, begin_ns = time.perf_counter(), world.now_ns
        while (elapsed_s := time.perf_counter() - begin) < _DURATION_S:
            world.run_for(_STEP_S)
        return (world.now_ns - begin_ns) / 1e9 / elapsed_s


def _join(node: Node, following: Node) -> tuple[headrace.Publication, headrace.Subscription]:
    client = node.connect()
    subscription = client.add_subscription(f"aeron:udp?endpoint={node.address}:{_PORT}", _STREAM_ID)
    publication = client.add_publication(f"aeron:udp?endpoint={following.address}:{_PORT}", _STREAM_ID)
    return publication, subscription


class _Program:
    """Publishes at a rate, and reads."""

    def __init__(
        self, node: Node, publication: headrace.Publication, subscription: headrace.Subscription, rate: int
    ) -> None:
        self._node, self._publication, self._subscription = node, publication, subscription
        self._interval_ns = 1_000_000_000 // rate if rate else None
        self._due_ns = node.time_ns

    def turn(self) -> int:
        """One turn; the number of messages sent and read."""
        count = self._subscription.poll(_take)
        if self._interval_ns is not None and self._node.time_ns >= self._due_ns:
            self._due_ns += self._interval_ns
            self._publication.offer(_MESSAGE)
            count += 1
        return count


def _take(payload: bytes, header: headrace.Header) -> None:
    pass


def main() -> None:
    """Print one line for each number of nodes."""
    for node_count in _NODES:
        rates = ", ".join(f"{virtual_seconds_a_second(node_count, rate):.1f} at {rate}" for rate in _RATES)
        print(f"{node_count} nodes: virtual seconds a second {rates} messages a second each", flush=True)


if __name__ == "__main__":
    main()
