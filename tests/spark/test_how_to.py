"""Every program of the how-to page about Spark, on the recordings and streams that it speaks of."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benches.processes import ROOT

import headrace
from headrace import sbe
from headrace.archive import ArchiveServer, DirectoryStorage, NamedStream
from headrace.archive.files.declarations import store_streams
from tests.helpers import await_true
from tests.spark.recordings import RecordingFiles
from tests.spark.streams import free_udp_channel
from tests.spark.test_batch import SBE_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.system, pytest.mark.slow]

PAGE = ROOT / "docs/user/how-to/spark.md"
BLOCKS = re.findall(r"```(python|sql|sh)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
# The program about a cluster's log is run in test_cluster_log.py.
READ, READ_BY_REPLAY, DECODE, DEAD_LETTERS, _CLUSTER_LOG, FOLLOW, DELTA, PUBLISH, TAKE = [
    text for kind, text in BLOCKS if kind == "python"
]
(STATEMENTS,) = [text for kind, text in BLOCKS if kind == "sql"]
INSTALLATION = [text for kind, text in BLOCKS if kind == "sh"]


def run(program: str, spark: SparkSession, changes: dict[str, str], **names: Any) -> dict[str, Any]:
    """The names that a program makes, after its paths and addresses were changed to those of a test."""
    for text, other in changes.items():
        assert text in program
        program = program.replace(text, other)
    # Functions of `__main__` are pickled whole, as those that a user types are.
    namespace: dict[str, Any] = {"__name__": "__main__", "spark": spark, **names}
    exec(program, namespace)
    return namespace


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Recordings 0 and 3 have ten messages each; 1001 is the stream of two, and 2002 of one."""
    directory = tmp_path / "archive"
    for stream_id in (1001, 2002, 3003, 1001):
        files = RecordingFiles(directory, stream_id=stream_id)
        files.append([(b"%d" % index, 0) for index in range(10)])
        files.stop()
    store_streams(DirectoryStorage(directory), [NamedStream("trades", "aeron:ipc", 1001)])
    return directory


def test_nothing_but_the_installation_is_left_out():
    assert len(INSTALLATION) == 1
    assert INSTALLATION[0].startswith("pip install")


def test_read_what_was_recorded(spark: SparkSession, archive: Path, capsys: pytest.CaptureFixture[str]):
    run(READ, spark, {"/data/archive": str(archive)})
    assert "|     1001|   20|" in capsys.readouterr().out


def test_read_in_sql(spark: SparkSession, archive: Path):
    changed = STATEMENTS.replace("/data/archive", str(archive))
    # Views belong to a session, and another test may have made one of the same name.
    spark = spark.newSession()
    try:
        results = [spark.sql(statement) for statement in changed.split(";") if statement.strip()]
        assert results[-1].first() == (20,)
        assert spark.table("orders").count() == 10
        assert spark.table("trades").count() == 20
    finally:
        spark.sql("DROP TABLE IF EXISTS trades")


def test_read_without_the_files(
    spark: SparkSession, archive: Path, media_driver: headrace.MediaDriver, capsys: pytest.CaptureFixture[str]
):
    control = free_udp_channel()
    with ArchiveServer(driver=media_driver, archive_directory=archive, control_channel=control):
        made = run(READ_BY_REPLAY, spark, {"aeron:udp?endpoint=archive-host:8010": control})
        assert made["frame"].count() == 20


def test_decode_payloads(spark: SparkSession, tmp_path: Path):
    schema = tmp_path / "market.xml"
    schema.write_text(SBE_SCHEMA.replace('"Order"', '"Trade"'))
    trade = sbe.Schema.from_file(schema)["Trade"].encode(id=1, quantity=2, side="BUY")
    for name, payload, expected in (
        ("orders", b'{"id": 7, "price": 1.5}', {"id": 7, "price": 1.5}),
        ("trades", trade, {"quantity": 2, "side": "BUY"}),
        ("own", b"*", {"price": ord("*")}),
    ):
        directory = tmp_path / name
        RecordingFiles(directory).append([(payload, 0)])
        made = run(DECODE, spark, {"/data/archive": str(directory), "/schemas/market.xml": str(schema)})
        row = made[name].first().asDict()
        assert row == row | expected


def test_dead_letters(spark: SparkSession, tmp_path: Path):
    files = RecordingFiles(tmp_path / "archive")
    files.append([(b'{"id": 1}', 0), (b"oh", 0)])
    files.stop()
    letters = tmp_path / "dead-letters"
    run(DEAD_LETTERS, spark, {"/data/archive": str(tmp_path / "archive"), "/data/dead-letters": str(letters)})
    assert [row.payload for row in spark.read.parquet(str(letters)).collect()] == [b"oh"]


def test_follow_recordings(spark: SparkSession, archive: Path, tmp_path: Path):
    query = run(FOLLOW, spark, {"/data": str(tmp_path)})["query"]
    query.processAllAvailable()
    query.stop()
    assert spark.read.parquet(str(tmp_path / "output")).count() == 20


def test_into_delta(spark: SparkSession, archive: Path, tmp_path: Path):
    deltalake = pytest.importorskip("deltalake", reason="delta-rs is not installed: pip install deltalake")
    stream = spark.readStream.format("headrace").load(str(archive))
    program = DELTA.replace("stream.writeStream", "writer = stream.writeStream")
    writer = run(program, spark, {"/data/table": str(tmp_path / "table")}, stream=stream)["writer"]
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert deltalake.DeltaTable(str(tmp_path / "table")).to_pyarrow_table().num_rows == 40


def test_publish_rows_and_take_each_once(
    spark: SparkSession, media_driver: headrace.MediaDriver, media_client: headrace.Client
):
    frame = spark.range(10).selectExpr("cast(id as string) as payload")
    taken: list[bytes] = []
    with media_client.add_subscription("aeron:ipc", 7) as subscription:
        take = TAKE.replace("...  #", "taken.extend(batch.payloads)  #")
        assert take != TAKE
        reader = threading.Thread(
            target=run, args=(take, spark, {}), kwargs={"subscription": subscription, "taken": taken}
        )
        reader.start()
        try:
            options = (
                f'.option("aeronDirectory", "{media_driver.directory}").option("delivery", "marked").save()'
            )
            run(PUBLISH, spark, {".save()": options}, frame=frame)
            await_true(lambda: len(taken) >= 10)
        finally:
            subscription.close()
            reader.join()
    assert sorted(map(int, taken)) == list(range(10))
