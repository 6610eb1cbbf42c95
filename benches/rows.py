"""The rows: what is measured, against whom, in which configuration."""

import platform
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benches.archive_rows import (
    archive_live_latency,
    archive_many,
    archive_memory,
    archive_record_bytes,
    archive_record_small,
    archive_recovery,
    archive_replay,
    archive_replicate,
)
from benches.cluster_node_rows import cluster_rtt_one, cluster_throughput_one
from benches.cluster_rows import cluster_replay, cluster_service_python
from benches.durable_rows import archive_ack
from benches.failover_rows import cluster_failover, cluster_transfer
from benches.figures import in_turns, rates, rtt_row, samples, thrice
from benches.follow_rows import archive_follow
from benches.group_rows import ipc_many_subscribers, mdc_throughput, multicast_throughput
from benches.loss_rows import loss_latency
from benches.paced_rows import paced_latency_python
from benches.processes import (
    background,
    fresh_directory,
    headrace_driver,
    java_peer,
    native,
    output,
    python_peer,
)
from benches.report import Measurement, Row
from benches.request_rows import request_response_many_python, request_response_python
from benches.sbe_rows import sbe_columnar, sbe_single
from benches.several_rows import cluster_catch_up, cluster_read, cluster_rtt, cluster_throughput
from benches.simulation_rows import simulation_speed
from benches.snapshot_rows import cluster_snapshot
from benches.spark_rows import spark_batch_read, spark_replay_read
from benches.stream_rows import streams_1000

WINDOWS = 6
WINDOW_MS = 1000
ROUNDS = 4
ROUNDS_MAX = 12
ROUND_WINDOWS = 3
CORE_ROUND_TRIPS = 200_000
PACE_WINDOWS = 21
PACE_WINDOW_MS = 50
FAR_NS = 150
MOVED = "moved"
RTT_SAMPLES = 50_000
IPC = "aeron:ipc"
# Three terms that stay in the cache: at batch rates zeroing colder ones is what costs most.
IPC_SMALL_TERMS = "aeron:ipc?term-length=16m"
UDP = "aeron:udp?endpoint=127.0.0.1:24981"
UDP_SMALL_TERMS = f"{UDP}|term-length=4m"
UDP_BACK = "aeron:udp?endpoint=127.0.0.1:24982"
MESSAGE_LENGTH = 40

_measured: dict[str, Measurement] = {}


@dataclass(frozen=True)
class _Round:
    """Both sides, one after the other, and where the two cores were meanwhile."""

    ours: Measurement
    peer: Measurement
    placement: str
    line_ns: tuple[int, int, int]

    def __str__(self) -> str:
        sides = f"{self.ours.value / 1e6:.2f} M to {self.peer.value / 1e6:.2f} M"
        return f"{sides}; a cache line to the other core and back: {', '.join(map(str, self.line_ns))} ns"


def _native_throughput(name: str, channel: str, lengths: tuple[int, int], target: str, mode: str) -> Row:
    java = java_peer()
    arguments = (channel, *lengths, ROUND_WINDOWS, WINDOW_MS)
    rounds: list[_Round] = []
    pace: list[float] = []
    # In turns, so that both sides meet the same placements of the cores. Those that count have the same one.
    while len(rounds) < ROUNDS_MAX and len(_counted(rounds)) < ROUNDS:
        pace += rates(output(native("pace", PACE_WINDOWS, PACE_WINDOW_MS))).observations
        before = _line_round_trip_ns()
        with headrace_driver(name, mode) as directory:
            ours = rates(output(native("throughput", directory, *arguments)))
        between = _line_round_trip_ns()
        with java.driver(name, mode) as directory:
            peer = rates(output(java.command("Throughput", directory, *arguments)))
        after = _line_round_trip_ns()
        rounds.append(_Round(ours, peer, _placement(before, between, after), (before, between, after)))
    counted = _counted(rounds)
    notes: dict[str, float | str] = {f"round {number}": str(each) for number, each in enumerate(rounds, 1)}
    for placement in dict.fromkeys(each.placement for each in rounds):
        notes[f"ours while the cores {placement}"] = _spread(
            [rate for each in rounds if each.placement == placement for rate in each.ours.observations]
        )
    notes["counted"] = f"{len(counted)} rounds in which the cores {counted[0].placement}"
    notes["a thread that only computes, alone, steps/s"] = _spread(pace)
    return Row(
        name=name,
        unit="msg/s",
        ours=Measurement(observations=[rate for each in counted for rate in each.ours.observations]),
        peer_name="Aeron's Java client and driver",
        peer=Measurement(observations=[rate for each in counted for rate in each.peer.observations]),
        target=target,
        notes=notes,
        configuration=(
            f"{channel}, {lengths[0]}..{lengths[1]} byte messages, one process with a publisher and a subscriber "
            f"thread that back off, ours by idle_after_poll, driver process beside with its default idle strategy, "
            f"threading mode {mode}, concurrent publication, up to {ROUNDS_MAX} rounds of {ROUND_WINDOWS - 1} windows "
            f"a side, until {ROUNDS} have met the same placement of the cores"
        ),
    )


def _counted(rounds: list[_Round]) -> list[_Round]:
    """The rounds of the placement that most have; one in which the cores moved counts only if all are so."""
    ranks = Counter({each.placement: 0 for each in rounds})
    ranks.update(each.placement for each in rounds if each.placement != MOVED)
    most = ranks.most_common(1)
    return [each for each in rounds if each.placement == most[0][0]] if most else []


def _placement(*line_ns: int) -> str:
    """On one core a cache line takes 60 to 130 ns to the other processor and back, on two 200 and more."""
    sides = {"were far apart" if time_ns >= FAR_NS else "were near" for time_ns in line_ns}
    return sides.pop() if len(sides) == 1 else MOVED


def _spread(observations: list[float]) -> str:
    least, most = min(observations), max(observations)
    share = 100 * (most - least) / float(np.median(observations))
    return f"{least / 1e6:.2f} M .. {most / 1e6:.2f} M, which is {share:.0f} % of the median"


def _line_round_trip_ns() -> int:
    """Says where the two cores are: on one, near each other or far, which a virtual machine changes as it likes."""
    (line,) = output(native("cores", CORE_ROUND_TRIPS))
    return int(line)


def ipc_throughput_native() -> Row:
    """Shared memory, 32-byte messages, no Python in the loop."""
    return _native_throughput("ipc-throughput-native", IPC, (32, 32), ">= 1.3 x; spread < 20 %", "SHARED")


def udp_throughput_native() -> Row:
    """UDP loopback, 32-byte messages, default MTU."""
    return _native_throughput("udp-throughput-native", UDP, (32, 32), ">= 8 x", "SHARED")


def udp_throughput_mixed() -> Row:
    """UDP loopback with lengths that leave segmentation offload nothing to do."""
    lengths = (16, 1000)
    row = _native_throughput("udp-throughput-mixed", UDP, lengths, ">= 2 x; 0.9 of the bare loop", "SHARED")
    bare = rates(output(native("datagrams", *lengths, WINDOWS, WINDOW_MS)))
    row.notes["one thread in a bare loop of sendmmsg and recvmmsg with such datagrams, msg/s"] = bare.value
    row.notes["ours, of the bare loop"] = row.ours.value / bare.value
    return row


def _zmq_throughput(address: str) -> Measurement:
    with background(python_peer("zmq_peer.py", "push", address, MESSAGE_LENGTH)):
        return rates(
            output(python_peer("zmq_peer.py", "pull", address, MESSAGE_LENGTH, WINDOWS, WINDOW_MS / 1000))
        )


def _headrace_throughput(name: str, channel: str, style: str) -> Measurement:
    if name not in _measured:
        with (
            headrace_driver(name, "SHARED") as directory,
            background(python_peer("headrace_peer.py", f"push-{style}", directory, channel, MESSAGE_LENGTH)),
        ):
            pull = python_peer(
                "headrace_peer.py",
                f"pull-{style}",
                directory,
                channel,
                MESSAGE_LENGTH,
                WINDOWS,
                WINDOW_MS / 1000,
            )
            _measured[name] = rates(output(pull))
    return _measured[name]


PYTHON_CONFIGURATION = (
    f"{MESSAGE_LENGTH} byte messages, publisher process to subscriber process, which back off, driver process beside "
    "in SHARED mode with its default idle strategy"
)


def ipc_throughput_python() -> Row:
    """One offer and one handler call a message over shared memory."""
    with tempfile.TemporaryDirectory() as directory:
        peer = _zmq_throughput(f"ipc://{directory}/zmq")
    return Row(
        name="ipc-throughput-python",
        unit="msg/s",
        ours=_headrace_throughput("ipc-throughput-python", IPC, "messages"),
        peer_name="pyzmq PUSH/PULL over ipc",
        peer=peer,
        target=">= 4 x",
        configuration=f"{IPC}, one offer and one handler call a message, {PYTHON_CONFIGURATION}",
    )


def udp_throughput_python() -> Row:
    """One offer and one handler call a message over UDP."""
    return Row(
        name="udp-throughput-python",
        unit="msg/s",
        ours=_headrace_throughput("udp-throughput-python", UDP, "messages"),
        peer_name="pyzmq PUSH/PULL over tcp",
        peer=_zmq_throughput("tcp://127.0.0.1:24985"),
        target=">= 2 x",
        configuration=f"{UDP}, one offer and one handler call a message, {PYTHON_CONFIGURATION}",
    )


def _batch_row(medium: str, channel: str, message_channel: str, target: str) -> Row:
    return Row(
        name=f"{medium}-throughput-python-batch",
        unit="msg/s",
        ours=_headrace_throughput(f"{medium}-throughput-python-batch", channel, "batches"),
        peer_name=f"{medium}-throughput-python",
        peer=_headrace_throughput(f"{medium}-throughput-python", message_channel, "messages"),
        target=target,
        configuration=(
            f"{channel}, offer_batch of a 2-D numpy array with 8,192 rows and poll_batch, against one offer and one "
            f"handler call a message on {message_channel}; {PYTHON_CONFIGURATION}"
        ),
    )


def ipc_throughput_python_batch() -> Row:
    """Numpy batches over shared memory."""
    return _batch_row("ipc", IPC_SMALL_TERMS, IPC, ">= 5 x")


def udp_throughput_python_batch() -> Row:
    """Numpy batches over UDP."""
    return _batch_row("udp", UDP_SMALL_TERMS, UDP, ">= 4 x")


def _headrace_python_rtt() -> np.ndarray:
    with (
        headrace_driver("rtt", "SHARED") as directory,
        background(python_peer("headrace_peer.py", "pong", directory, IPC), ready="READY"),
    ):
        return samples(
            output(python_peer("headrace_peer.py", "ping", directory, IPC, MESSAGE_LENGTH, RTT_SAMPLES))
        )


def _zmq_rtt(waiting: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as directory:
        address = f"ipc://{directory}/zmq"
        ping = python_peer("zmq_peer.py", "ping", waiting, address, MESSAGE_LENGTH, RTT_SAMPLES // 10)
        with background(python_peer("zmq_peer.py", "pong", waiting, address)):
            return samples(output(ping))


def ipc_rtt_python() -> Row:
    """Round trip between two spinning Python processes, against pyzmq spinning or blocking, which is better."""
    peers = {waiting: thrice(partial(_zmq_rtt, waiting)) for waiting in ("spinning", "blocking")}
    medians = {waiting: float(np.median(np.concatenate(runs))) / 1e3 for waiting, runs in peers.items()}
    better = min(medians, key=medians.__getitem__)
    row = rtt_row(
        "ipc-rtt-python",
        thrice(_headrace_python_rtt),
        f"pyzmq PAIR over ipc, {better}",
        peers[better],
        "p50 <= 3 us; >= 10 x",
        f"{IPC}, {MESSAGE_LENGTH} byte messages, two spinning Python processes, driver process beside in SHARED mode; "
        "pyzmq both spinning and blocking, of which the better counts",
    )
    row.notes.update({f"pyzmq {waiting} p50 us": median for waiting, median in medians.items()})
    return row


def _echo() -> np.ndarray:
    """What a datagram alone takes."""
    address = "127.0.0.1:24983"
    with background(native("echo-pong", address), ready="READY"):
        return samples(output(native("echo-ping", address, RTT_SAMPLES)))


def udp_rtt_native() -> Row:
    """UDP round trip with the driver invoked from the client's thread on each side."""

    def ours() -> np.ndarray:
        ping_dir, pong_dir = fresh_directory("ping"), fresh_directory("pong")
        with background(native("pong", pong_dir, UDP, UDP_BACK), ready="READY"):
            return samples(output(native("ping", ping_dir, UDP, UDP_BACK, RTT_SAMPLES)))

    our_runs, echo_runs = in_turns(ours, _echo)
    return rtt_row(
        "udp-rtt-native",
        our_runs,
        "raw UDP echo",
        echo_runs,
        "p50 <= 1.25 x the echo (ratio >= 0.8)",
        f"{UDP} and back, 32 byte messages, one busy thread a side that invokes its own driver",
    )


def udp_rtt_python() -> Row:
    """UDP round trip between two Python processes whose threads invoke their own drivers."""

    def ours() -> np.ndarray:
        ping = python_peer("headrace_peer.py", "udp-ping", UDP, UDP_BACK, MESSAGE_LENGTH, RTT_SAMPLES)
        with background(python_peer("headrace_peer.py", "udp-pong", UDP, UDP_BACK), ready="READY"):
            return samples(output(ping))

    our_runs, echo_runs = in_turns(ours, _echo)
    return rtt_row(
        "udp-rtt-python",
        our_runs,
        "raw UDP echo, native",
        echo_runs,
        "p50 <= 2 x the echo (ratio >= 0.5)",
        f"{UDP} and back, {MESSAGE_LENGTH} byte messages, one busy Python thread a side that invokes its own driver",
    )


def grpc_rtt_python() -> Row:
    """Unary echo with grpcio against our round trip."""

    def peer() -> np.ndarray:
        address = "127.0.0.1:24984"
        with background(python_peer("grpc_peer.py", "server", address), ready="READY"):
            return samples(output(python_peer("grpc_peer.py", "client", address, RTT_SAMPLES // 10)))

    return rtt_row(
        "grpc-rtt-python",
        thrice(_headrace_python_rtt),
        "grpcio unary echo",
        thrice(peer),
        ">= 10 x",
        f"ours {IPC} between spinning processes; grpcio over loopback; {MESSAGE_LENGTH} byte messages",
    )


def driver_start() -> Row:
    """From `MediaDriver()` to the first message received in the same process."""
    runs = [output(python_peer("headrace_peer.py", "start"))[-1].split() for _ in range(7)]
    return Row(
        name="driver-start",
        unit="ms",
        ours=Measurement(observations=[int(elapsed_ns) / 1e6 for elapsed_ns, _ in runs]),
        peer_name="none",
        peer=None,
        target="< 300 ms",
        configuration=f"embedded MediaDriver with default settings, {IPC}, {platform.python_implementation()}",
        higher_is_better=False,
        notes={"resident memory after the first message, MiB": max(int(kib) for _, kib in runs) / 1024},
    )


ROWS: dict[str, Callable[[], Row]] = {
    row.__name__.replace("_", "-"): row
    for row in (
        ipc_throughput_native,
        udp_throughput_native,
        udp_throughput_mixed,
        mdc_throughput,
        multicast_throughput,
        ipc_many_subscribers,
        streams_1000,
        loss_latency,
        ipc_throughput_python,
        udp_throughput_python,
        ipc_throughput_python_batch,
        udp_throughput_python_batch,
        ipc_rtt_python,
        paced_latency_python,
        udp_rtt_native,
        udp_rtt_python,
        grpc_rtt_python,
        request_response_python,
        request_response_many_python,
        driver_start,
        sbe_single,
        sbe_columnar,
        spark_batch_read,
        spark_replay_read,
        archive_record_small,
        archive_record_bytes,
        archive_replay,
        archive_replicate,
        archive_live_latency,
        archive_many,
        archive_recovery,
        archive_ack,
        archive_follow,
        archive_memory,
        cluster_rtt_one,
        cluster_throughput_one,
        cluster_service_python,
        cluster_replay,
        cluster_rtt,
        cluster_throughput,
        cluster_failover,
        cluster_transfer,
        cluster_read,
        cluster_catch_up,
        cluster_snapshot,
        simulation_speed,
    )
}
