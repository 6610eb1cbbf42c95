"""One stream to many receivers: destinations, a group, and many subscribers of shared memory."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Protocol

import numpy as np

from benches.figures import rates
from benches.processes import JavaPeer, headrace_driver, java_peer, native, output
from benches.report import Measurement, Row

WINDOWS = 6
WINDOW_MS = 1000
LENGTH = 32
# No receiver is left out: with the default, which follows the fastest one, the others would skip what they missed.
EVERY_RECEIVER = "fc=min|term-length=4m"
CONTROL = "127.0.0.1:24970"
DESTINATIONS = [f"127.0.0.1:{port}" for port in range(24971, 24981)]
GROUP = "aeron:udp?endpoint=224.20.30.39:24990|interface=127.0.0.1"
GROUP_RECEIVERS = 3
SUBSCRIBERS = 200
SUBSCRIBED = "aeron:ipc?term-length=64k"
BURSTS = 2000


class _Side(Protocol):
    """Ours, or the reference's."""

    def driver(self, name: str, threading_mode: str) -> AbstractContextManager[Path]:
        """A driver in a process of its own."""

    def throughput(self, *args: object) -> list[str]:
        """The command line of a publisher and its subscribers."""


class _Ours:
    def driver(self, name: str, threading_mode: str) -> AbstractContextManager[Path]:
        return headrace_driver(name, threading_mode)

    def throughput(self, *args: object) -> list[str]:
        return native("throughput", *args)


class _Java:
    def __init__(self, peer: JavaPeer) -> None:
        self._peer = peer

    def driver(self, name: str, threading_mode: str) -> AbstractContextManager[Path]:
        return self._peer.driver(name, threading_mode)

    def throughput(self, *args: object) -> list[str]:
        return self._peer.command("Throughput", *args)


def _each(measured: Measurement, receivers: int) -> Measurement:
    """The rate that each receiver gets, of what all got together."""
    return Measurement(observations=[rate / receivers for rate in measured.observations])


def _rate(
    side: _Side, channel: str, directories: Sequence[Path], receivers: Sequence[tuple[Path, str]]
) -> Measurement:
    pairs = [word for receiver in receivers for word in receiver]
    command = side.throughput(directories[0], channel, LENGTH, LENGTH, WINDOWS, WINDOW_MS, *pairs)
    return _each(rates(output(command)), len(receivers))


def _destinations(side: _Side) -> Measurement:
    channel = f"aeron:udp?control={CONTROL}|control-mode=dynamic|{EVERY_RECEIVER}"
    with side.driver("mdc", "SHARED") as directory:
        receivers = [
            (directory, f"aeron:udp?endpoint={endpoint}|control={CONTROL}") for endpoint in DESTINATIONS
        ]
        return _rate(side, channel, [directory], receivers)


def _group(side: _Side) -> Measurement:
    with ExitStack() as running:
        # A driver has one socket, and one image, for all its subscribers of a group: each receiver needs its own.
        directories = [
            running.enter_context(side.driver(f"group-{number}", "SHARED"))
            for number in range(GROUP_RECEIVERS + 1)
        ]
        receivers = [(directory, GROUP) for directory in directories[1:]]
        return _rate(side, f"{GROUP}|{EVERY_RECEIVER}", directories, receivers)


def mdc_throughput() -> Row:
    """One publisher, ten destinations that join by themselves."""
    java = java_peer()
    return Row(
        name="mdc-throughput",
        unit="msg/s",
        ours=_destinations(_Ours()),
        peer_name="Aeron's Java client and driver",
        peer=_destinations(_Java(java)),
        target=">= 5 x",
        configuration=(
            f"{LENGTH} byte messages to each of {len(DESTINATIONS)} destinations of control-mode=dynamic on loopback, "
            f"{EVERY_RECEIVER}; one process with a publisher thread and a thread that polls all subscriptions, which "
            "back off; one driver process beside in SHARED mode"
        ),
    )


def multicast_throughput() -> Row:
    """One publisher, three receivers of a group."""
    java = java_peer()
    return Row(
        name="multicast-throughput",
        unit="msg/s",
        ours=_group(_Ours()),
        peer_name="Aeron's Java client and driver",
        peer=_group(_Java(java)),
        target=">= 5 x",
        configuration=(
            f"{GROUP}, {EVERY_RECEIVER}, {LENGTH} byte messages to each of {GROUP_RECEIVERS} receivers; one process "
            "with a publisher thread and a thread that polls all subscriptions, which back off; a driver process for "
            "the publisher and one for each receiver, all in SHARED mode"
        ),
    )


def ipc_many_subscribers() -> Row:
    """What an offer costs with 200 subscribers, against one."""

    def cost(subscribers: int) -> np.ndarray:
        with headrace_driver("subscribers", "SHARED") as directory:
            lines = output(native("offers", directory, SUBSCRIBED, subscribers, BURSTS))
        return np.array([float(line) for line in lines])

    def medians(runs: Sequence[np.ndarray]) -> Measurement:
        return Measurement(observations=[float(np.median(run)) for run in runs])

    # Turn by turn, so that both meet the same machine.
    turns = [(cost(SUBSCRIBERS), cost(1)) for _ in range(3)]
    return Row(
        name="ipc-many-subscribers",
        unit="ns an offer",
        ours=medians([many for many, _ in turns]),
        peer_name="ours, one subscriber",
        peer=medians([one for _, one in turns]),
        target="<= 1.1 x the cost (ratio >= 0.91)",
        configuration=(
            f"{SUBSCRIBED}, {LENGTH} byte messages, {SUBSCRIBERS} subscriptions against one; one thread offers a burst "
            "that fits the window, timed, and then reads it with each subscription, not timed; median of bursts; "
            "driver process beside in SHARED mode"
        ),
        higher_is_better=False,
    )
