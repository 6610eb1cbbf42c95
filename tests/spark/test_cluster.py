"""The sources and the sink on a standalone cluster: a master, two workers and an executor on each, all processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import headrace
from headrace.archive import ArchiveServer
from headrace.spark import CommittedBatches
from tests.helpers import await_true
from tests.spark.cluster import spark_cluster
from tests.spark.recordings import RecordingFiles
from tests.spark.streams import free_udp_channel, listening

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
HERE = Path(__file__).parent
SOURCES = ("files", "replays")
RUN_TIMEOUT_S = 420


def payload_of(index: int) -> bytes:
    # Some are fragmented, and all are different.
    return b"%d " % index * (1 + index * 7 % 400)


PAYLOADS = [payload_of(index) for index in range(600)]


@dataclass(frozen=True)
class Outcome:
    """What the program on the cluster made of each source."""

    output: Path
    published: dict[str, list[bytes]]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or later, and there is no `java` on the PATH")
    base = tmp_path_factory.mktemp("cluster")
    files = RecordingFiles(base / "archive")
    files.append((payload, 0) for payload in PAYLOADS)
    files.stop()
    control = free_udp_channel()
    common = {"bytesPerPartition": "64k"}
    options = {
        "files": {"archiveDirectory": str(base / "archive"), **common},
        "replays": {"controlChannel": control, **common},
    }
    published: dict[str, list[bytes]] = {}
    with ExitStack() as stack:
        # A crowded machine may give the archive's process nothing for long; that is not what is tested.
        timeouts = {"client_liveness_timeout_ns": 120 * 10**9, "publication_unblock_timeout_ns": 130 * 10**9}
        driver = stack.enter_context(headrace.MediaDriver.embedded(threading_mode="SHARED", **timeouts))
        server = ArchiveServer(driver=driver, archive_directory=base / "archive", control_channel=control)
        stack.enter_context(server)
        client = stack.enter_context(driver.connect())
        for number, name in enumerate(SOURCES):
            published[name] = stack.enter_context(listening(client, 9000 + number))
        master = stack.enter_context(spark_cluster(base, 2))
        sources = [f"{name}={json.dumps(options[name])}" for name in SOURCES]
        run_program(master, base / "output", driver.directory, *sources)
        yield Outcome(base / "output", published)


def run_program(*args: object) -> None:
    command = [sys.executable, str(HERE / "on_cluster.py"), *map(str, args)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=RUN_TIMEOUT_S)
            assert process.returncode == 0, printed
        finally:
            # The whole session: a Python program that ends badly leaves its JVM running.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def rows_of(outcome: Outcome, source: str, name: str) -> list[dict[str, object]]:
    import pyarrow.parquet as parquet

    found = outcome.output / source / name
    parts = sorted(found.glob("*.parquet")) if found.is_dir() else [found]
    assert parts, f"nothing was written to {found}"
    rows = [row for part in parts for row in parquet.read_table(part).to_pylist()]
    return sorted(rows, key=lambda row: row["position"])


@pytest.mark.parametrize("source", SOURCES)
def test_a_batch_is_read_by_both_executors(outcome: Outcome, source: str):
    rows = rows_of(outcome, source, "batch.parquet")
    assert [row["message"] for row in rows] == PAYLOADS
    assert {(row["recording_id"], row["session_id"], row["stream_id"]) for row in rows} == {(0, 77, 1001)}
    assert len({row["executor"] for row in rows}) == 2


@pytest.mark.parametrize("source", SOURCES)
def test_a_stream_gives_each_message_once(outcome: Outcome, source: str):
    assert [row["payload"] for row in rows_of(outcome, source, "followed")] == PAYLOADS


@pytest.mark.parametrize("source", SOURCES)
def test_the_sink_publishes_each_row(outcome: Outcome, source: str):
    messages = outcome.published[source]
    await_true(lambda: len(committed(messages)) >= len(PAYLOADS))
    assert sorted(committed(messages)) == sorted(PAYLOADS)


def committed(messages: list[bytes]) -> list[bytes]:
    batches = CommittedBatches(-1)
    return [row for message in messages for batch in batches.on_message(message) for row in batch.payloads]


def test_files_and_replays_give_the_same_rows(outcome: Outcome):
    files, replays = (rows_of(outcome, source, "batch.parquet") for source in SOURCES)
    for row in (*files, *replays):
        del row["executor"]
    assert files == replays
