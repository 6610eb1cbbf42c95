"""What lost datagrams do to the latency of the messages after them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
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
SEEDS = (7, 8, 9)
CONTROL = "127.0.0.1:24960"
ONE = "aeron:udp?endpoint=127.0.0.1:24961"
MANY = f"aeron:udp?control={CONTROL}|control-mode=dynamic|fc=min"
RECEIVERS = [f"aeron:udp?endpoint=127.0.0.1:{port}|control={CONTROL}" for port in (24962, 24963, 24964)]
GROUP = "aeron:udp?endpoint=224.20.30.41:24965|interface=127.0.0.1"


@dataclass(frozen=True)
class _Case:
    """Who receives what is sent to `channel`."""

    name: str
    channel: str
    receivers: Sequence[str]
    # Subscriptions of one driver to a group share what it receives.
    has_driver_each: bool = False


CAST = _Case("three receivers", MANY, RECEIVERS)
CASES = (
    _Case("one receiver", ONE, [ONE]),
    CAST,
    _Case("three receivers of a group", f"{GROUP}|fc=min,g:/3", [GROUP] * 3, has_driver_each=True),
)


class _Driver(Protocol):
    """Ours, or the reference's."""

    def __call__(
        self, name: str, threading_mode: str, properties: dict[str, str], /
    ) -> AbstractContextManager[Path]: ...


def _ours(loss: float) -> list[dict[str, str]]:
    """The settings of each receiver's driver: what it loses is not what the others lose."""
    return [dict(random_loss(loss, seed=seed)) if loss else {} for seed in SEEDS]


def _javas(loss: float) -> list[dict[str, str]]:
    """As the reference's own harness loses data: its receivers drop what comes."""
    supplier = "io.aeron.driver.ext.DebugReceiveChannelEndpointSupplier"
    return [
        {
            "aeron.ReceiveChannelEndpoint.supplier": supplier,
            "aeron.debug.receive.data.loss.rate": str(loss),
            "aeron.debug.receive.data.loss.seed": str(seed),
        }
        if loss
        else {}
        for seed in SEEDS
    ]


def _latencies_ns(driver: _Driver, lossy: Sequence[dict[str, str]], case: _Case) -> np.ndarray:
    """Of every receiver's messages. The receivers' drivers lose data; the publisher's loses nothing that comes back."""
    with ExitStack() as stack:
        source = stack.enter_context(driver("loss-from", "SHARED", {}))
        count = len(case.receivers) if case.has_driver_each else 1
        targets = [
            stack.enter_context(driver(f"loss-to-{number}", "SHARED", lossy[number]))
            for number in range(count)
        ]
        pairs = [
            word
            for number, receiver in enumerate(case.receivers)
            for word in (targets[number % count], receiver)
        ]
        return samples(output(native("latency", source, case.channel, STREAM_ID, SAMPLES, *pairs)))


def _p999_us(runs: Sequence[np.ndarray]) -> Measurement:
    return Measurement(observations=[float(np.percentile(run, 99.9)) / 1e3 for run in runs])


def loss_latency() -> Row:
    """0.01 % and 1 % of datagrams lost, one receiver and three, also of a group, against no loss and Java's drivers."""
    java = java_peer().driver
    notes: dict[str, float | str] = {}
    cast: dict[float, list[np.ndarray]] = {}
    for case in CASES:
        # Turn by turn, so that all meet the same machine.
        turns = [
            {loss: _latencies_ns(headrace_driver, _ours(loss), case) for loss in LOSSES} for _ in range(RUNS)
        ]
        ours = {loss: [turn[loss] for turn in turns] for loss in LOSSES}
        javas = {loss: [_latencies_ns(java, _javas(loss), case)] for loss in LOSSES}
        for side, runs in (("ours", ours), ("Java's drivers", javas)):
            for loss in LOSSES:
                together = np.concatenate(runs[loss])
                notes |= {
                    f"{side}, {case.name}, {loss:.2%} lost, p{point:g} us": float(
                        np.percentile(together, point)
                    )
                    / 1e3
                    for point in POINTS
                }
        if case is CAST:
            cast = ours
    return Row(
        name="loss-latency",
        unit="us (p99.9)",
        ours=_p999_us(cast[0.0001]),
        peer_name="ours, nothing lost",
        peer=_p999_us(cast[0.0]),
        target="<= 3 x lossless (ratio >= 0.33)",
        configuration=(
            f"{len(RECEIVERS)} receivers of control-mode=dynamic on loopback, 0.01 % of the datagrams that come to "
            "their driver lost, against none; some ten thousand 32-byte messages a second; a process with a publisher "
            "thread and a thread that polls all subscriptions; one driver process for the publisher and one for the "
            f"receivers, in SHARED mode with default settings; our client in every case; the notes also have {GROUP}, "
            "with a driver for each receiver"
        ),
        higher_is_better=False,
        notes=notes,
    )
