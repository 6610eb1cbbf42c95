"""The row of the simulated world: how fast a cluster of three members goes in it."""

from __future__ import annotations

import random
import time

from benches.report import Measurement, Row
from headrace.cluster import ClientSession, ClusteredService
from headrace.testing.cluster import ClusterWorld

__all__ = ["simulation_speed"]

_ROUNDS = 5
_ROUND_S = 10.0
_CLIENTS = 2
_RATE = 50.0


class _Counter(ClusteredService):
    def __init__(self) -> None:
        self.count = 0

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self.count += 1
        if session is not None:
            session.offer(b"%d" % self.count)


def _command(chance: random.Random) -> bytes:
    return b"%d" % chance.randrange(100)


def simulation_speed() -> Row:
    """Virtual seconds a second of three members under load, with the rules of the cluster checked."""
    speeds = []
    with ClusterWorld(_Counter, seed=1, state_of=lambda service: service.count) as cluster:
        clients = [cluster.add_client(_command, rate=_RATE) for _ in range(_CLIENTS)]
        cluster.await_leader()
        cluster.run_until(lambda: all(client.answers for client in clients), what="answers")
        for _ in range(_ROUNDS):
            begin_s = time.perf_counter()
            cluster.run_for(_ROUND_S)
            speeds.append(_ROUND_S / (time.perf_counter() - begin_s))
        answers = sum(len(client.answers) for client in clients)
    return Row(
        name="simulation-speed",
        unit="virtual s/s",
        ours=Measurement(observations=speeds),
        peer_name="none",
        peer=None,
        target=">= 20",
        configuration=(
            f"three members and {_CLIENTS} clients on one thread, {_RATE:.0f} commands a virtual second each, rules "
            "checked"
        ),
        notes={"answers a virtual second": answers / (_ROUNDS * _ROUND_S)},
    )
