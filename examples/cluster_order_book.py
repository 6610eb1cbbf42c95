"""A limit order book with matching by price and time: orders are commands, trades are answers to both sides.

Prices are integers, in cents: sums of floating-point numbers may differ between machines. The argument is a
directory for the cluster's files. A second run on the same directory finds the resting orders of the first.
"""

import argparse
import bisect
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.cluster import ClientSession, Cluster, ClusterClient, ClusteredService, ClusterNode

BUY, SELL, CANCEL = b"B", b"S", b"C"
# Kind; the client's reference; price in cents; quantity. A cancellation names the order's id in place of a price.
COMMAND = struct.Struct("<cqqq")
# Kind; the client's reference; order id; price; quantity.
ACCEPTED, TRADED, CANCELLED, REFUSED = b"A", b"T", b"X", b"R"
ANSWER = struct.Struct("<cqqqq")
Answer = tuple[bytes, int, int, int, int]
# A resting order in a snapshot.
ORDER = struct.Struct("<cqqqqq")


@dataclass
class Order:
    """An order, or its remainder."""

    side: bytes
    id: int
    owner: int
    reference: int
    price: int
    quantity: int

    def rank(self) -> tuple[int, int]:
        """Best first: by price, and of one price the oldest."""
        return (-self.price if self.side == BUY else self.price, self.id)

    def crosses(self, other: "Order") -> bool:
        """Whether the two sides agree on a price."""
        return self.price >= other.price if self.side == BUY else self.price <= other.price


class OrderBook(ClusteredService):
    """Resting orders by side, the best first."""

    def __init__(self) -> None:
        self.orders: dict[bytes, list[Order]] = {BUY: [], SELL: []}
        self.next_id = 1
        self.traded = 0

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        for index, message in enumerate(snapshot or ()):
            if index == 0:
                self.next_id, self.traded = struct.unpack("<qq", message)
            else:
                order = Order(*ORDER.unpack(message))
                self.orders[order.side].append(order)

    def on_take_snapshot(self) -> Iterator[bytes]:
        yield struct.pack("<qq", self.next_id, self.traded)
        for side in (BUY, SELL):
            for order in self.orders[side]:
                yield ORDER.pack(
                    order.side, order.id, order.owner, order.reference, order.price, order.quantity
                )

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        if session is None or len(message) != COMMAND.size:
            return
        kind, reference, price, quantity = COMMAND.unpack(message)
        if kind == CANCEL:
            self.cancel(session, reference, order_id=price)
        elif kind in (BUY, SELL) and price > 0 and quantity > 0:
            self.add(Order(kind, self.next_id, session.id, reference, price, quantity))
        else:
            session.offer(ANSWER.pack(REFUSED, reference, 0, price, quantity))

    def add(self, order: Order) -> None:
        """Match an order with resting orders; the remainder rests."""
        self.next_id += 1
        self.tell(ACCEPTED, order, order.price, order.quantity)
        others = self.orders[SELL if order.side == BUY else BUY]
        while order.quantity and others and order.crosses(others[0]):
            resting = others[0]
            quantity = min(order.quantity, resting.quantity)
            for side in (order, resting):
                side.quantity -= quantity
                # The order that waited sets the price.
                self.tell(TRADED, side, resting.price, quantity)
            self.traded += quantity
            if not resting.quantity:
                others.pop(0)
        if order.quantity:
            bisect.insort(self.orders[order.side], order, key=Order.rank)

    def cancel(self, session: ClientSession, reference: int, order_id: int) -> None:
        """Take out an order of this session."""
        for resting in self.orders.values():
            for order in resting:
                if order.id == order_id and order.owner == session.id:
                    resting.remove(order)
                    self.tell(CANCELLED, order, order.price, order.quantity)
                    return
        session.offer(ANSWER.pack(REFUSED, reference, order_id, 0, 0))

    def tell(self, kind: bytes, order: Order, price: int, quantity: int) -> None:
        """Tell the order's owner, if it is still connected: an order outlives its session."""
        owner = self.cluster.session(order.owner)
        if owner is not None:
            owner.offer(ANSWER.pack(kind, order.reference, order.id, price, quantity))


class Trader:
    """A client that sends orders and prints its trades."""

    def __init__(self, client: ClusterClient, name: str) -> None:
        self.client = client
        self.name = name
        self.references = 0
        self.answers: list[Answer] = []

    def send(self, kind: bytes, price: int, quantity: int) -> int:
        """Send an order or a cancellation; returns the order's id."""
        self.references += 1
        self.client.offer_blocking(COMMAND.pack(kind, self.references, price, quantity))
        return self.receive(self.references, (ACCEPTED, CANCELLED, REFUSED))[2]

    def receive(self, reference: int, kinds: tuple[bytes, ...]) -> Answer:
        """Read answers up to one of these kinds about this reference."""
        while True:
            message = self.client.receive(timeout_s=10.0)
            if message is None:
                raise TimeoutError(f"{self.name}: no answer to {reference}")
            answer: Answer = ANSWER.unpack(message.payload)
            self.answers.append(answer)
            kind, about, _, price, quantity = answer
            if kind == TRADED:
                print(f"  {self.name}: {quantity} at {price / 100:.2f}")
            if kind in kinds and (about == reference or kind == CANCELLED):
                return answer


def run(directory: str | Path) -> None:
    book = OrderBook()
    with ClusterNode(book, directory=directory) as node:
        node.wait_until_leader()
        resting = [(order.price, order.quantity) for order in book.orders[SELL]]
        print("sell orders from before:", resting)
        with node.connect() as first, node.connect() as second:
            ann, ben = Trader(first, "ann"), Trader(second, "ben")
            print("ann sells 10 at 101.00 and 5 at 100.50; ben buys 12 at 101.00")
            ann.send(SELL, 10_100, 10)
            ann.send(SELL, 10_050, 5)
            ben.send(BUY, 10_100, 12)
            bought = 0
            while bought < 12:
                bought += ben.receive(1, (TRADED,))[4]
            dearest = ann.send(SELL, 10_500, 1)
            ann.send(CANCEL, dearest, 0)
            kinds = Counter(answer[0] for answer in ann.answers + ben.answers)
        print(f"answers: {kinds[ACCEPTED]} accepted, {kinds[TRADED]} trades, {kinds[CANCELLED]} cancelled")
    rests = sum(order.quantity for order in book.orders[SELL])
    print(f"{book.traded} traded in all, {rests} still for sale")


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
            run(Path(made) / "book")


if __name__ == "__main__":
    main()
