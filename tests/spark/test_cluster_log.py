"""The log of a cluster as rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benches.processes import ROOT

from headrace.cluster import ClientSession, Cluster, ClusteredService, ClusterNode
from headrace.cluster.protocol.header import pack_header
from tests.helpers import TIMEOUT_S, await_true
from tests.spark.recordings import RecordingFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.system, pytest.mark.slow]

LOG_STREAM_ID = 100
TIMER = 77
LONG = b"l" * 5000


class Echo(ClusteredService):
    """Answers with what it gets; the first message also sets a timer, which answers too, and sends to the cluster."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        if session is None:
            return
        if message == b"first":
            self.cluster.schedule_timer(TIMER, timestamp)
            self.cluster.offer(b"to itself")
        session.offer(message)

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        for session in self.cluster.sessions:
            session.offer(b"timer")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a node that was started twice, with a snapshot between."""
    directory = tmp_path_factory.mktemp("node")
    for messages, answer_count in (((b"first", b"", LONG), 4), ((b"after",), 1)):
        with (
            ClusterNode(Echo(), directory=directory, authorisation="ALLOW_ALL") as node,
            node.connect() as cluster,
        ):
            for message in messages:
                cluster.offer_blocking(message)
            for _ in range(answer_count):
                assert cluster.receive(TIMEOUT_S) is not None
            cluster.request_snapshot()
            counters = node.module._context.counters
            await_true(lambda: counters.snapshot_count.value == 1)  # noqa: B023
            cluster.offer_blocking(b"last")
            assert cluster.receive(TIMEOUT_S) is not None
    return directory / "archive"


def load(spark: SparkSession, archive: Path, **options: str) -> DataFrame:
    chosen = {"codec": "cluster-log", "streamId": str(LOG_STREAM_ID)} | options
    return spark.read.format("headrace").options(**chosen).load(str(archive))


def test_each_entry_is_a_row_of_its_kind(spark: SparkSession, archive: Path):
    rows = load(spark, archive).orderBy("position").collect()
    messages = [row for row in rows if row.kind == "message"]
    sent = [bytes(row.payload) for row in messages if row.cluster_session_id > 0]
    assert sent == [b"first", b"", LONG, b"last", b"after", b"last"]
    assert [bytes(row.payload) for row in messages if row.cluster_session_id < 0] == [b"to itself"]
    assert [row.correlation_id for row in rows if row.kind == "timer"] == [TIMER]
    assert [row.action for row in rows if row.kind == "action"] == ["SNAPSHOT", "SNAPSHOT"]
    terms = [row for row in rows if row.kind == "term"]
    assert [(row.leadership_term_id, row.leader_member_id, row.time_unit) for row in terms] == [
        (0, 0, "MILLIS"),
        (1, 0, "MILLIS"),
    ]
    opened = [row for row in rows if row.kind == "session-open"]
    assert [row.response_channel.split("?")[0] for row in opened] == ["aeron:ipc", "aeron:ipc"]
    assert {row.cluster_session_id for row in opened} == {
        row.cluster_session_id for row in messages if row.cluster_session_id > 0
    }
    assert {row.close_reason for row in rows if row.kind == "session-close"} <= {"CLIENT_ACTION", "TIMEOUT"}
    times = [row.cluster_time for row in rows]
    assert times == sorted(times)
    assert min(times) > 1_600_000_000_000
    assert all(row.payload is None for row in rows if row.kind != "message")


def test_columns_are_chosen_and_rows_counted(spark: SparkSession, archive: Path):
    counted = load(spark, archive, columns="kind,position").groupBy("kind").count().collect()
    assert {row.kind: row["count"] for row in counted}["message"] == 7
    assert load(spark, archive).count() == sum(row["count"] for row in counted)


def test_the_program_of_the_how_to_page(
    spark: SparkSession, archive: Path, capsys: pytest.CaptureFixture[str]
):
    page = (ROOT / "docs/user/how-to/spark.md").read_text()
    (program,) = [
        text for text in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "cluster-log" in text
    ]
    assert '"counters/archive"' in program
    exec(program.replace("counters/archive", str(archive)), {"spark": spark})
    assert "first" in capsys.readouterr().out


def test_a_stream_that_is_no_log_is_an_error(spark: SparkSession, tmp_path: Path):
    files = RecordingFiles(tmp_path)
    files.append([(pack_header(0, 1, 2) + b"fine", 0), (b"not of a cluster", 0)])
    files.stop()
    with pytest.raises(Exception, match="not an entry of a cluster's log: schema_id="):
        load(spark, tmp_path, streamId="1001").collect()
    rows = load(spark, tmp_path, streamId="1001", onBadPayload="null").orderBy("position").collect()
    assert [row.kind for row in rows] == ["message", None]
    assert bytes(rows[0].payload) == b"fine"
