"""A publisher that waits until each message is recorded, beside one that waits for a Kafka broker."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benches.figures import percentiles, samples, thrice
from benches.processes import ROOT, background, fetch_jars, fresh_directory, output, python_peer
from benches.report import Measurement, Row

SAMPLES = 4_000
IPC = "aeron:ipc"
UDP = "aeron:udp?endpoint=127.0.0.1:24986"
CONTROL = "aeron:udp?endpoint=127.0.0.1:24987"
BROKER = "127.0.0.1:24988"
CONTROLLER = "127.0.0.1:24989"
START_TIMEOUT_S = 60.0
_BROKER_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": f"1@{CONTROLLER}",
    "listeners": f"PLAINTEXT://{BROKER},CONTROLLER://{CONTROLLER}",
    "advertised.listeners": f"PLAINTEXT://{BROKER}",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def _one_archive() -> np.ndarray:
    directory = fresh_directory("durable")
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-") as files,
        background(python_peer("archive_peer.py", directory, files), ready="READY"),
    ):
        return samples(output(python_peer("durable_peer.py", "archive", directory, IPC, SAMPLES)))


def _two_archives() -> np.ndarray:
    first, second = fresh_directory("durable-1"), fresh_directory("durable-2")
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-") as files,
        background(python_peer("archive_peer.py", first, f"{files}/first"), ready="READY"),
        background(python_peer("archive_peer.py", second, f"{files}/second", CONTROL), ready="READY"),
    ):
        publisher = python_peer("durable_peer.py", "archive", first, UDP, SAMPLES, CONTROL)
        return samples(output(publisher))


@contextmanager
def _broker() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as base:
        jars, settings = Path(base) / "jars", Path(base) / "server.properties"
        fetch_jars(ROOT / "benches" / "java" / "kafka" / "pom.xml", jars)
        given = _BROKER_SETTINGS | {"log.dirs": f"{base}/logs"}
        settings.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        java = ["java", "-XX:-UsePerfData", "-cp", f"{jars}/*"]
        command = [
            *java,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            "AAAAAAAAAAAAAAAAAAAAAA",
            "-c",
            str(settings),
        ]
        subprocess.run(command, check=True, capture_output=True)
        with background([*java, "kafka.Kafka", str(settings)]):
            _await_broker()
            yield


def _await_broker() -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": BROKER, "log_level": 0})
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            admin.list_topics(timeout=1.0)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        else:
            return


def archive_ack() -> Row:
    """Latency of a message that is safe when the call returns."""
    ours, twice = thrice(_one_archive), thrice(_two_archives)
    with _broker():
        peer = thrice(lambda: samples(output(python_peer("durable_peer.py", "kafka", BROKER, SAMPLES))))
    named = {"one archive": ours, "two archives": twice, "Kafka": peer}
    p99 = {
        name: Measurement(observations=[float(np.percentile(run, 99)) / 1e3 for run in runs])
        for name, runs in named.items()
    }
    return Row(
        name="archive-ack",
        unit="us (p99)",
        ours=p99["one archive"],
        peer_name="Kafka broker, acks=all",
        peer=p99["Kafka"],
        target=">= 10 x",
        configuration=(
            f"100 byte messages, one at a time, each waited for, 1 ms between them, {SAMPLES:,} a run; ours over {IPC} "
            "with driver and archive in one process, SHARED mode, default idle strategies, sync level 0; two "
            f"archives: over {UDP}, the second with a driver of its own on this machine; Kafka: one node, from Maven, "
            "confluent-kafka with linger.ms=0, default settings, which do not sync either"
        ),
        higher_is_better=False,
        notes={
            f"{name} {point}": value
            for name, runs in named.items()
            for point, value in percentiles(np.concatenate(runs)).items()
        }
        | {"Kafka / two archives, p99": p99["Kafka"].value / p99["two archives"].value},
    )
