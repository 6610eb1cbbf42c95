"""Read the recordings with Spark: the weather by day, the latencies of the stream, and the gaps in it."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

SCHEMA = Path(__file__).with_name("weather.xml")


@dataclass(frozen=True)
class Stream:
    """The recorded messages, a table for each kind."""

    readings: DataFrame
    receipts: DataFrame


def load(spark: SparkSession, archive_directory: Path, recordings: list[int]) -> Stream:
    """The messages in columns; the data source picks them by template and decodes them."""

    def messages(name: str) -> DataFrame:
        return (
            spark.read.format("headrace")
            .option("recordings", ",".join(map(str, recordings)))
            .option("codec", "sbe")
            .option("sbeSchema", str(SCHEMA))
            .option("sbeMessage", name)
            .load(str(archive_directory))
        )

    return Stream(messages("Reading"), messages("Receipt"))


def weather_by_day(stream: Stream) -> DataFrame:
    """One row a city and day."""
    return (
        stream.readings.groupBy("city", f.window(f.timestamp_seconds("observedS"), "1 day").alias("day"))
        .agg(
            f.count("*").alias("readings"),
            f.min("fahrenheit").alias("low"),
            f.avg("fahrenheit").alias("mean"),
            f.max("fahrenheit").alias("high"),
        )
        .withColumn("day", f.col("day.start").cast("date"))
        .orderBy("city", "day")
    )


def deliveries(stream: Stream) -> DataFrame:
    """One row a reading: when it was sent, and how long it took to arrive; null if there is no receipt."""
    received = stream.receipts.select("sequence", "receivedNs")
    return stream.readings.join(received, "sequence", "left").selectExpr(
        "timestamp_micros(sentNs div 1000) AS sent", "(receivedNs - sentNs) / 1000 AS latency_us"
    )


def at_percentiles(*wanted: float) -> list[Column]:
    """Columns for an aggregation of deliveries. A mean would hide the slow ones."""
    exact = [f.percentile("latency_us", f.lit(each / 100)).alias(f"p{each:g}") for each in wanted]
    counts = [f.count("*").alias("sent"), f.count("latency_us").alias("received")]
    return [*counts, *exact, f.max("latency_us").alias("max")]


def latency_by_window(stream: Stream, width: str = "100 milliseconds") -> DataFrame:
    """One row a window of the time at which readings were sent."""
    return (
        deliveries(stream)
        .groupBy(f.window("sent", width).alias("window"))
        .agg(*at_percentiles(50, 90, 99))
        .withColumn("window", f.col("window.start"))
        .orderBy("window")
    )


def gaps(stream: Stream) -> DataFrame:
    """One row for each place where the sequence number does not grow by one; negative if a reading was repeated."""
    in_order = Window.partitionBy("recording_id").orderBy("position")
    return (
        stream.readings.withColumn("expected", f.lag("sequence", 1, -1).over(in_order) + 1)
        .where("sequence != expected")
        .selectExpr(
            "recording_id", "position", "expected", "sequence AS found", "sequence - expected AS missing"
        )
        .orderBy("recording_id", "position")
    )


@contextlib.contextmanager
def session(log: Path) -> Iterator[SparkSession]:
    """Spark on all cores of this machine. Its log goes to a file."""
    # Otherwise Spark starts whichever python3 is first on the PATH, and that may not have Headrace.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.host", "127.0.0.1")  # stays on this machine
        # A short program starts faster so.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")  # the default of 200 suits larger data
    )
    with stderr_to(log):
        spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextlib.contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """Start processes, such as Java, with a file as their standard error."""
    terminal = os.dup(2)
    try:
        with path.open("wb") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
