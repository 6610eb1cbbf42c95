"""Rows as messages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headrace
from headrace.spark import CommittedBatches
from tests.helpers import await_true
from tests.spark.recordings import RecordingFiles
from tests.spark.streams import CHANNEL, listening

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.system, pytest.mark.slow]


def options(driver: headrace.MediaDriver, stream_id: int, **others: str) -> dict[str, str]:
    return {"channel": CHANNEL, "streamId": str(stream_id), "aeronDirectory": driver.directory, **others}


def test_a_frame_is_published_through_back_pressure(
    spark: SparkSession, media_driver: headrace.MediaDriver, media_client: headrace.Client
):
    frame = spark.range(50_000).selectExpr("cast(id as string) as payload")
    with listening(media_client, 8001) as received:
        frame.write.format("headrace").options(**options(media_driver, 8001)).mode("append").save()
        await_true(lambda: len(received) >= 50_000)
    assert sorted(map(int, received)) == list(range(50_000))


def test_marked_delivery_of_a_replayed_batch_is_taken_once(
    spark: SparkSession, media_driver: headrace.MediaDriver, media_client: headrace.Client, tmp_path: Path
):
    files = RecordingFiles(tmp_path / "archive")
    files.append((b"row %d" % index, 0) for index in range(2000))
    checkpoint = tmp_path / "checkpoint"

    def publish(bytes_per_partition: str) -> None:
        stream = spark.readStream.format("headrace").option("maxBytesPerTrigger", "40k")
        stream = stream.option("bytesPerPartition", bytes_per_partition)
        writer = stream.load(str(tmp_path / "archive")).writeStream.format("headrace")
        writer = writer.options(**options(media_driver, 8002, delivery="marked"))
        writer.trigger(availableNow=True).option(
            "checkpointLocation", str(checkpoint)
        ).start().awaitTermination()

    with listening(media_client, 8002) as received:
        publish("16k")
        last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
        (checkpoint / "commits" / str(last)).unlink()
        (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
        files.append([(b"row 2000", 0)])
        # The last batch runs again, cut into other partitions.
        publish("4k")
        await_true(lambda: len(committed(received)) > 2000)
    rows = committed(received)
    assert len(received) > len(rows) + last + 2, "nothing was published twice, so nothing was tested"
    assert rows == [b"row %d" % index for index in range(2001)]


def committed(messages: list[bytes]) -> list[bytes]:
    batches = CommittedBatches(-1)
    return [row for message in messages for batch in batches.on_message(message) for row in batch.payloads]


@pytest.mark.parametrize(
    ("changes", "mode", "expected"),
    [
        ({"streamId": ""}, "append", "streamId=: must be a whole number"),
        ({"payloadColumn": "id"}, "append", "payloadColumn=id: is long, and must be binary or string"),
        ({"payloadColumn": "body"}, "append", "no such column"),
        ({"retries": "3"}, "append", "no such option"),
        ({}, "overwrite", "a stream can only be appended to"),
        ({"timeoutMs": "200"}, "append", "no subscriber to"),
    ],
)
def test_what_cannot_be_published_is_refused(
    spark: SparkSession, media_driver: headrace.MediaDriver, changes: dict, mode: str, expected: str
):
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    frame = spark.range(3).selectExpr("id", "cast(id as string) as payload")
    with pytest.raises((PySparkException, Py4JJavaError)) as refused:
        frame.write.format("headrace").options(**options(media_driver, 8003) | changes).mode(mode).save()
    assert expected in str(refused.value)
