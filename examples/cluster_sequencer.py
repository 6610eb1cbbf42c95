"""Several publishers, one total order: a service numbers their messages, and any subscriber reads the numbered stream.

The argument is a directory for the cluster's files. A second run on the same directory continues the numbers.
"""

import argparse
import itertools
import struct
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from headrace import Subscription
from headrace.cluster import ClientSession, Cluster, ClusteredService, ClusterNode, Role

CHANNEL = "aeron:ipc?term-length=1m"
STREAM_ID = 2001
PUBLISHERS = ("north", "east", "south")
MESSAGES_EACH = 1_000
NUMBER = struct.Struct("<q")
KEPT = 10_000


class Sequencer(ClusteredService):
    """Numbers messages from 1 on, tells each publisher its numbers, and publishes the messages in that order.

    The state is the last number and the newest messages. The stream is not part of it: only the leader publishes. A new
    leader cannot know how far subscribers have read, so it publishes the newest messages again; subscribers skip the
    numbers that they have.
    """

    def __init__(self) -> None:
        self.last = 0
        self.newest: deque[bytes] = deque(maxlen=KEPT)
        self.to_publish: deque[bytes] = deque(maxlen=KEPT)

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        # The container owns this client and closes its streams when the service ends.
        self.feed = cluster.client.add_publication(CHANNEL, STREAM_ID)
        for index, message in enumerate(snapshot or ()):
            if index == 0:
                (self.last,) = NUMBER.unpack(message)
            else:
                self.newest.append(message)

    def on_role_change(self, role: Role) -> None:
        self.to_publish.clear()
        if role is Role.LEADER:
            self.to_publish.extend(self.newest)

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self.last += 1
        numbered = NUMBER.pack(self.last) + message
        self.newest.append(numbered)
        if self.cluster.role is Role.LEADER:
            self.to_publish.append(numbered)
        if session is not None:
            session.offer(NUMBER.pack(self.last))

    def do_background_work(self, now_ns: int) -> int:
        """Publish as fast as subscribers read, so that no handler waits for them."""
        count = 0
        while self.to_publish and self.feed.offer(self.to_publish[0]) > 0:
            self.to_publish.popleft()
            count += 1
        return count

    def on_take_snapshot(self) -> Iterator[bytes]:
        yield NUMBER.pack(self.last)
        yield from self.newest


def publish(node: ClusterNode, name: str, numbers: list[int]) -> None:
    """A publisher. The number in each answer is the place of the message in the order."""
    with node.connect() as cluster:
        for count in range(MESSAGES_EACH):
            cluster.offer_blocking(f"{name} {count}".encode())
        for _ in range(MESSAGES_EACH):
            answer = cluster.receive(timeout_s=30.0)
            if answer is None:
                raise TimeoutError(f"{name}: an answer is missing")
            numbers.extend(NUMBER.unpack(answer.payload))


def read(subscription: Subscription, last: list[int], received: list[bytes]) -> None:
    """A subscriber, which reads up to the number in `last`, once that is known."""
    expected: int | None = None
    while not (last and expected is not None and expected > last[0]):
        message = subscription.receive(timeout_s=0.1)
        if message is None:
            continue
        (number,) = NUMBER.unpack_from(message.payload)
        if expected is not None and number < expected:
            continue
        if expected is not None and number > expected:
            raise ValueError(f"{number - expected} messages from number {expected} on are missing")
        received.append(message.payload)
        expected = number + 1


def run(directory: str | Path) -> None:
    numbers: list[int] = []
    last: list[int] = []
    one: list[bytes] = []
    other: list[bytes] = []
    with (
        ClusterNode(Sequencer(), directory=directory) as node,
        node.connect_driver() as client,
        client.add_subscription(CHANNEL, STREAM_ID) as first,
        client.add_subscription(CHANNEL, STREAM_ID) as second,
    ):
        node.wait_until_leader()
        readers = [
            threading.Thread(target=read, args=arguments)
            for arguments in ((first, last, one), (second, last, other))
        ]
        publishers = [threading.Thread(target=publish, args=(node, name, numbers)) for name in PUBLISHERS]
        for thread in (*readers, *publishers):
            thread.start()
        for thread in publishers:
            thread.join()
        last.append(max(numbers))
        for thread in readers:
            thread.join()
    count = len(PUBLISHERS) * MESSAGES_EACH
    print(f"{len(PUBLISHERS)} publishers, {count} messages, numbers {min(numbers)} to {max(numbers)}")
    names = [message[NUMBER.size :].split()[0] for message in one[-count:]]
    changes = sum(a != b for a, b in itertools.pairwise(names))
    print(f"the order changes from one publisher to another {changes} times")
    assert sorted(numbers) == list(range(max(numbers) - count + 1, max(numbers) + 1))
    assert one[-count:] == other[-count:]
    print("both subscribers have read the same order")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "directory", nargs="?", help="directory of the cluster's files; default: a temporary one"
    )
    directory = parser.parse_args().directory
    if directory:
        run(directory)
    else:
        with tempfile.TemporaryDirectory() as made:
            run(Path(made) / "sequencer")


if __name__ == "__main__":
    main()
