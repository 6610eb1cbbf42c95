"""Recordings as data frames."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.recordings import SEGMENT_LENGTH, RecordingFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.system, pytest.mark.slow]

SECOND_NS = 1_000_000_000
FIRST_NS = 1_700_000_000 * SECOND_NS


def payload_of(index: int) -> bytes:
    # Lengths from 0 to 3,000, so that some messages are fragmented.
    return bytes([index % 256]) * (index * 37 % 3000)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recording 0: five segments of mixed lengths. 1: JSON, another stream. 2: empty."""
    directory = tmp_path_factory.mktemp("archive")
    mixed = RecordingFiles(directory, start_position=65536 + 96)
    mixed.append((payload_of(index), FIRST_NS + index * SECOND_NS) for index in range(400))
    mixed.stop()
    orders = RecordingFiles(
        directory, stream_id=2002, channel="aeron:udp?endpoint=orders:1", start_timestamp=1_800_000_000_000
    )
    orders.append((json.dumps({"id": index, "price": index / 4}).encode(), 0) for index in range(100))
    orders.stop(1_800_000_060_000)
    RecordingFiles(directory, stream_id=3003).stop()
    return directory


def load(spark: SparkSession, archive: Path, **options: object) -> DataFrame:
    reader = spark.read.format("headrace")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(archive))


def test_every_message_comes_once_whole_and_as_recorded(spark: SparkSession, archive: Path):
    rows = load(spark, archive, recordings=0, bytesPerPartition="20k").orderBy("position").collect()
    assert [bytes(row.payload) for row in rows] == [payload_of(index) for index in range(400)]
    assert {(row.recording_id, row.session_id, row.stream_id) for row in rows} == {(0, 77, 1001)}
    assert [row.reserved_value for row in rows] == [FIRST_NS + index * SECOND_NS for index in range(400)]


def test_partitions_follow_segments_and_size(spark: SparkSession, archive: Path):
    whole = load(spark, archive, recordings=0)
    cut = load(spark, archive, recordings=0, bytesPerPartition=SEGMENT_LENGTH)
    assert whole.rdd.getNumPartitions() == 1
    assert cut.rdd.getNumPartitions() == 5
    assert cut.count() == whole.count() == 400


def test_sql_and_selected_columns(spark: SparkSession, archive: Path):
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW orders USING headrace OPTIONS (path '{archive}', streamId '2002', "
        "codec 'json', payloadSchema 'id bigint, price double', columns 'price,id')"
    )
    assert spark.table("orders").columns == ["price", "id"]
    assert spark.sql("SELECT sum(price), max(id) FROM orders").first() == (sum(range(100)) / 4, 99)


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    yield "orders_of_a_test"
    spark.sql("DROP TABLE IF EXISTS orders_of_a_test")


@pytest.mark.parametrize(
    "definition",
    [
        "OPTIONS (streamId '1001', columns 'position,payload') LOCATION '{path}' COMMENT 'o' TBLPROPERTIES ('k' = 'v')",
        "OPTIONS (archiveDirectory '{path}', columns 'position,payload')",
        "OPTIONS (path 'file://{path}', codec 'json', payloadSchema 'a struct<`it\\'s`: int>', columns 'position,a')",
    ],
    ids=["location", "directory", "path"],
)
def test_a_table_remembers_its_options(spark: SparkSession, table: str, tmp_path: Path, definition: str):
    directory = tmp_path / "a table's 100%2 $archive"
    RecordingFiles(directory).append([(b'{"a": {"it\'s": 1}}', 0), (b"{}", 0)])
    path = str(directory).replace("'", "\\'")
    spark.sql(f"CREATE TABLE {table} USING headrace {definition.replace('{path}', path)}")
    assert spark.table(table).columns[0] == "position"
    assert len(spark.table(table).columns) == 2
    assert spark.sql(f"SELECT * FROM {table}").count() == 2
    assert spark.sql(f"SELECT * FROM {table} WITH (endPosition '64')").count() == 1
    stream = spark.readStream.table(table).writeStream.format("memory").queryName("rows_of_a_table")
    query = (
        stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert spark.table("rows_of_a_table").count() == 2


def test_a_pattern_that_matches_nothing_is_refused(spark: SparkSession, archive: Path):
    from pyspark.errors import PySparkException

    for options, expected in (
        ({"channel": "ordres"}, "has it; known are aeron:ipc, aeron:udp\\?endpoint=orders:1"),
        ({"streamId": 7}, "has it; known are 1001, 2002, 3003"),
        ({"channel": "orders", "streamId": 1001}, "has it and streamId=1001; known are aeron:ipc"),
    ):
        with pytest.raises(PySparkException, match=f"no recording in {archive} {expected}"):
            load(spark, archive, **options).collect()


def test_a_user_schema_chooses_columns(spark: SparkSession, archive: Path):
    frame = spark.read.format("headrace").schema("position bigint").load(str(archive))
    assert frame.columns == ["position"]
    assert frame.count() == 500


def test_recordings_are_chosen_by_id_stream_channel_and_time(spark: SparkSession, archive: Path):
    assert load(spark, archive).count() == 500
    assert load(spark, archive, recordings="0,2").count() == 400
    assert load(spark, archive, channel="orders").count() == 100
    assert load(spark, archive, streamId=3003).count() == 0
    assert load(spark, archive, startTime="2026-01-01").count() == 100
    assert load(spark, archive, endTime="2026-01-01").count() == 400


def test_messages_are_chosen_by_position_session_and_time(spark: SparkSession, archive: Path):
    ends = [row.position for row in load(spark, archive, recordings=0).orderBy("position").collect()]
    middle = load(spark, archive, recordings=0, startPosition=ends[99], endPosition=ends[199] - 32)
    assert sorted(row.position for row in middle.collect()) == ends[100:200]
    assert load(spark, archive, recordings=0, sessionId=78).count() == 0
    timed = load(
        spark,
        archive,
        recordings=0,
        timestamps="reserved_value_ns",
        startTime=(FIRST_NS + 10 * SECOND_NS) // 1_000_000,
        endTime="2023-11-14T22:13:50+00:00",
    )
    times = [row.timestamp for row in timed.orderBy("timestamp").collect()]
    assert len(times) == 20
    assert times[0] == datetime.datetime.fromtimestamp(FIRST_NS / SECOND_NS + 10)


def test_a_users_function_decodes(spark: SparkSession, archive: Path):
    from headrace.spark import packed

    def lengths(payloads: object) -> dict[str, object]:
        import pyarrow.compute as compute

        return {"size": compute.binary_length(payloads)}

    frame = load(
        spark, archive, recordings=0, codec="python", decoder=packed(lengths), payloadSchema="size bigint"
    )
    assert frame.selectExpr("sum(size)").first()[0] == sum(len(payload_of(index)) for index in range(400))


def test_workers_do_not_search_what_they_imported_for_garbage(spark: SparkSession, archive: Path):
    from headrace.spark import packed

    def frozen(payloads: pa.Array) -> dict[str, object]:
        import gc

        import pyarrow as pa

        return {"count": pa.array([gc.get_freeze_count()] * len(payloads))}

    options = {"codec": "python", "payloadSchema": "count bigint", "bytesPerPartition": "100k"}
    counts = {row["count"] for row in load(spark, archive, decoder=packed(frozen), **options).collect()}
    assert min(counts) > 10_000


def test_sbe_messages_become_columns(spark: SparkSession, tmp_path: Path):
    from headrace import sbe

    schema = tmp_path / "orders.xml"
    schema.write_text(SBE_SCHEMA)
    codecs = sbe.Schema.from_file(schema)
    orders = [codecs["Order"].encode(id=index, quantity=index * 2, side="SELL") for index in range(50)]
    noise = codecs["Noise"].encode(level=1)
    files = RecordingFiles(tmp_path / "archive")
    positions = files.append((each, 0) for order in orders for each in (order, noise))
    files.stop()
    frame = load(
        spark,
        tmp_path / "archive",
        codec="sbe",
        sbeSchema=schema,
        sbeMessage="Order",
        columns="position,id,quantity,side",
    )
    assert dict(frame.dtypes) == {
        "position": "bigint",
        "id": "decimal(20,0)",
        "quantity": "bigint",
        "side": "string",
    }
    rows = frame.orderBy("position").collect()
    assert [tuple(row) for row in rows] == [(positions[2 * i], i, i * 2, "SELL") for i in range(50)]


SBE_SCHEMA = """<?xml version="1.0" encoding="UTF-8"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="test" id="9" version="0"
                   byteOrder="littleEndian">
  <types>
    <composite name="messageHeader">
      <type name="blockLength" primitiveType="uint16"/>
      <type name="templateId" primitiveType="uint16"/>
      <type name="schemaId" primitiveType="uint16"/>
      <type name="version" primitiveType="uint16"/>
    </composite>
    <enum name="Side" encodingType="uint8">
      <validValue name="BUY">0</validValue>
      <validValue name="SELL">1</validValue>
    </enum>
  </types>
  <sbe:message name="Order" id="1">
    <field name="id" id="1" type="uint64"/>
    <field name="quantity" id="2" type="uint32"/>
    <field name="side" id="3" type="Side"/>
  </sbe:message>
  <sbe:message name="Noise" id="2"><field name="level" id="1" type="uint8"/></sbe:message>
</sbe:messageSchema>
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"recordings": 9}, "recordings=9: "),
        ({"startPosition": "-1"}, "startPosition=-1: must be from 0"),
        ({"startPosition": 64, "endPosition": 32}, "endPosition=32: must not be before startPosition=64"),
        (
            {"startTime": "2026-02-01", "endTime": "2026-01-31"},
            "endTime=2026-01-31: must not be before startTime=2026-02-01",
        ),
        ({"columns": "price"}, "columns=price: no such column"),
        ({"codec": "json"}, "codec=json needs it"),
        ({"onBadPayload": "null"}, "onBadPayload=null: has no meaning with codec=binary"),
        ({"codec": "avro"}, "codec=avro: must be one of"),
        ({"startTime": "soon"}, "startTime=soon: must be ISO 8601"),
        ({"recordChecksum": "MD5"}, "recordChecksum=MD5: must be one of CRC-32"),
        ({"startPositon": 1}, "no such option"),
        ({"controlChannel": "aeron:udp?endpoint=localhost:8010"}, "read from the archive or from its files"),
        ({"replayStreamId": 7}, "has no meaning without controlChannel"),
        ({"recordings": 1, "startPosition": 1 << 20}, "is after the end of recording 1"),
        ({"codec": "python", "decoder": "nowhere:f", "payloadSchema": "a int"}, "must be module:function"),
    ],
)
def test_wrong_options_are_refused_by_name(spark: SparkSession, archive: Path, options: dict, expected: str):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as refused:
        load(spark, archive, **options).collect()
    assert expected in str(refused.value)


def damaged(directory: Path) -> RecordingFiles:
    files = RecordingFiles(directory)
    files.append((bytes(1000), 0) for _ in range(400))
    files.stop()
    return files


@pytest.mark.parametrize("damage", ["missing", "truncated", "overwritten"])
def test_a_damaged_segment_fails_the_query_and_is_named(spark: SparkSession, tmp_path: Path, damage: str):
    from pyspark.errors import PySparkException

    damaged(tmp_path)
    segment = tmp_path / f"0-{SEGMENT_LENGTH}.rec"
    if damage == "missing":
        segment.unlink()
    elif damage == "truncated":
        with segment.open("r+b") as file:
            file.truncate(1000)
    else:
        with segment.open("r+b") as file:
            file.seek(1056)
            file.write(bytes(32))
    with pytest.raises(PySparkException) as refused:
        load(spark, tmp_path).count()
    assert str(segment) in str(refused.value)


def test_a_wrong_checksum_fails_the_query_with_its_place(spark: SparkSession, tmp_path: Path):
    from pyspark.errors import PySparkException

    from headrace.archive.files.checksum import Checksum

    files = RecordingFiles(tmp_path)
    # The last is fragmented.
    payloads = [b"one", b"two", bytes(3000)]
    positions = files.append((payload, 0) for payload in payloads)
    files.put_checksums(Checksum("CRC-32C"))
    files.stop()
    checked = {"recordChecksum": "org.agrona.checksum.Crc32c", "sessionId": files.session_id}
    rows = load(spark, tmp_path, **checked).orderBy("position").collect()
    assert [(bytes(row.payload), row.session_id) for row in rows] == [(each, 77) for each in payloads]
    segment = tmp_path / "0-0.rec"
    with segment.open("r+b") as file:
        file.seek(positions[0] + 32)
        file.write(b"!")
    assert load(spark, tmp_path).count() == 3
    place = f"{segment}: recording_id=0 offset={positions[0]} position={positions[0]}: checksum="
    with pytest.raises(PySparkException, match=re.escape(place)):
        load(spark, tmp_path, **checked).count()


def check_bad_payloads(
    spark: SparkSession, directory: Path, payloads: list[bytes], expected: list[object], **options: object
) -> None:
    """The second of some payloads is the first that is bad. Expected is column ``id``, with null for all bad ones."""
    from pyspark.errors import PySparkException

    files = RecordingFiles(directory)
    positions = files.append([(payload, 0) for payload in payloads])
    files.stop()
    place = f"ends at position={positions[1]} in recording_id=0: "
    with pytest.raises(PySparkException, match=place):
        load(spark, directory, **options).collect()
    rows = load(spark, directory, onBadPayload="null", **options).orderBy("position").collect()
    assert [(row.position, row.id) for row in rows] == list(zip(positions, expected, strict=True))


def test_bad_json_fails_with_its_place_or_is_null(spark: SparkSession, tmp_path: Path):
    # The third and fourth would make two objects out of two payloads if they were read as one text.
    payloads = [
        b'{"id": 1}',
        b"oh",
        b'{"id": 2}{"id": 3}',
        b"",
        b'{"id": "x"}',
        b"null",
        b"\xff",
        b"{}",
        b'{"id":\n4}',
    ]
    expected = [1, None, None, None, None, None, None, None, 4]
    check_bad_payloads(spark, tmp_path, payloads, expected, codec="json", payloadSchema="id bigint")


def test_two_json_objects_in_a_payload_do_not_move_the_others(spark: SparkSession, tmp_path: Path):
    payloads = [b'{"id": 1}', b'{"id": 2}{"id": 3}', b""]
    check_bad_payloads(spark, tmp_path, payloads, [1, None, None], codec="json", payloadSchema="id bigint")


def test_bad_sbe_fails_with_its_place_or_is_null(spark: SparkSession, tmp_path: Path):
    from headrace import sbe

    schema = tmp_path / "orders.xml"
    schema.write_text(SBE_SCHEMA)
    orders = sbe.Schema.from_file(schema)["Order"]
    sound = [orders.encode(id=number, quantity=1, side="BUY") for number in range(4)]
    payloads = [sound[0], sound[1][:-1], sound[2], b"oh", sound[3]]
    options = {"codec": "sbe", "sbeSchema": schema, "sbeMessage": "Order"}
    check_bad_payloads(spark, tmp_path / "archive", payloads, [0, None, 2, None, 3], **options)


def test_what_a_users_function_cannot_decode_fails_with_its_place_or_is_null(
    spark: SparkSession, tmp_path: Path
):
    from headrace.spark import packed

    def numbers(payloads: pa.BinaryArray) -> dict[str, object]:
        # As users may: the buffers themselves.
        _, offsets, data = payloads.buffers()
        ends = memoryview(offsets).cast("i")[: len(payloads) + 1]
        text = bytes(data)
        return {"id": [int(text[ends[index] : ends[index + 1]]) for index in range(len(payloads))]}

    options = {"codec": "python", "decoder": packed(numbers), "payloadSchema": "id bigint"}
    payloads = [b"1", b"oh", b"2", b"3", b"", b"99999999999999999999", b"4"]
    check_bad_payloads(spark, tmp_path, payloads, [1, None, 2, 3, None, None, 4], **options)


def test_an_unfinished_recording_of_a_dead_archive_is_read_to_its_end(spark: SparkSession, tmp_path: Path):
    files = RecordingFiles(tmp_path)
    files.append((bytes(100), 0) for _ in range(10))
    assert load(spark, tmp_path).count() == 10
