"""What lost datagrams do to the latency of the messages after them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np

from benches.figures import samples
from benches.processes import headrace_driver, java_peer, native, output
from benches.report import Measurement, Row
from headrace.testing import random_loss

STREAM_ID = 1001
SAMPLES = 100_000
POINTS = (50, 99, 99.9)
RUNS = 3
LOSSES = (0.0, 0.0001, 0.01)
SEED = 7
CONTROL = "127.0.0.1:24960"
ONE = "aeron:udp?endpoint=127.0.0.1:24961"
MANY = f"aeron:udp?control={CONTROL}|control-mode=dynamic|fc=min"
RECEIVERS = [f"aeron:udp?endpoint=127.0.0.1:{port}|control={CONTROL}" for port in (24962, 24963, 24964)]


class _Driver(Protocol):
    """Ours, or the reference's."""

    def __call__(
        self, name: str, threading_mode: str, properties: dict[str, str], /
    ) -> AbstractContextManager[Path]: ...


def _ours(loss: float) -> dict[str, str]:
    return dict(random_loss(loss, seed=SEED)) if loss else {}


def _javas(loss: float) -> dict[str, str]:
    """As the reference's own harness loses data: its receivers drop what comes."""
    if not loss:
        return {}
    return {
        "aeron.ReceiveChannelEndpoint.supplier": "io.aeron.driver.ext.DebugReceiveChannelEndpointSupplier",
        "aeron.debug.receive.data.loss.rate": str(loss),
        "aeron.debug.receive.data.loss.seed": str(SEED),
    }


def _latencies_ns(driver: _Driver, properties: dict[str, str], receivers: Sequence[str]) -> np.ndarray:
    """Of every receiver's messages. The receivers' driver loses data; the publisher's loses nothing that comes back."""
    with driver("loss-from", "SHARED", {}) as source, driver("loss-to", "SHARED", properties) as target:
        channel = ONE if len(receivers) == 1 else MANY
        pairs = [word for receiver in receivers for word in (target, receiver)]
        return samples(output(native("latency", source, channel, STREAM_ID, SAMPLES, *pairs)))


def _p999_us(runs: Sequence[np.ndarray]) -> Measurement:
    return Measurement(observations=[float(np.percentile(run, 99.9)) / 1e3 for run in runs])


def loss_latency() -> Row:
    """0.01 % and 1 % of datagrams lost, one receiver and three, against no loss and against Java's drivers."""
    java = java_peer().driver
    notes: dict[str, float | str] = {}
    three: dict[float, list[np.ndarray]] = {}
    for name, receivers in (("one receiver", [ONE]), ("three receivers", RECEIVERS)):
        # Turn by turn, so that all meet the same machine.
        turns = [
            {loss: _latencies_ns(headrace_driver, _ours(loss), receivers) for loss in LOSSES}
            for _ in range(RUNS)
        ]
        ours = {loss: [turn[loss] for turn in turns] for loss in LOSSES}
        javas = {loss: [_latencies_ns(java, _javas(loss), receivers)] for loss in LOSSES}
        for side, runs in (("ours", ours), ("Java's drivers", javas)):
            for loss in LOSSES:
                together = np.concatenate(runs[loss])
                notes |= {
                    f"{side}, {name}, {loss:.2%} lost, p{point:g} us": float(np.percentile(together, point))
                    / 1e3
                    for point in POINTS
                }
        three = ours
    return Row(
        name="loss-latency",
        unit="us (p99.9)",
        ours=_p999_us(three[0.0001]),
        peer_name="ours, nothing lost",
        peer=_p999_us(three[0.0]),
        target="<= 3 x lossless (ratio >= 0.33)",
        configuration=(
            f"{len(RECEIVERS)} receivers of control-mode=dynamic on loopback, 0.01 % of the datagrams that come to "
            "their driver lost, against none; some ten thousand 32-byte messages a second; a process with a publisher "
            "thread and a thread that polls all subscriptions; one driver process for the publisher and one for the "
            "receivers, in SHARED mode with default settings; our client in every case"
        ),
        higher_is_better=False,
        notes=notes,
    )
