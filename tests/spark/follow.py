"""One streaming query for each sink, in a process to be killed: ``follow BASE DRIVER_DIRECTORY``.

Prints ``SINK END_OFFSET`` after each batch that had rows, and ends when a query does.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.sinks import SINKS, start

# On a crowded machine: Spark waits ten seconds for a process of its own and no longer, and it serialises a plan that
# another of its threads still writes to.
FAULTS_OF_SPARK = ("failed to connect back", "java.lang.IllegalStateException: Illegal size")


def has_ended(query: StreamingQuery) -> bool:
    """A query that ended by a fault that is not Spark's; after one of Spark's its operator starts it anew."""
    return not query.isActive and not any(fault in causes_of(query) for fault in FAULTS_OF_SPARK)


def causes_of(query: StreamingQuery) -> str:
    """What ended a query, and the causes of that: a sink may tell of a fault of Spark's in words of its own."""
    found = query._jsq.exception()
    error = found.get() if found.isDefined() else None
    causes = []
    while error is not None:
        causes.append(error.toString())
        error = error.getCause()
    return "\n".join(causes)


def main(base: str, driver_directory: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    queries = {sink: start(spark, sink, Path(base), driver_directory) for sink in SINKS}
    seen = dict.fromkeys(SINKS, -1)
    while not any(has_ended(query) for query in queries.values()):
        for sink, query in queries.items():
            if not query.isActive:
                queries[sink] = start(spark, sink, Path(base), driver_directory)
                continue
            progress = query.lastProgress
            if progress is not None and progress["batchId"] != seen[sink] and progress["numInputRows"] > 0:
                seen[sink] = progress["batchId"]
                print(sink, progress["sources"][0]["endOffset"], flush=True)
        time.sleep(0.05)
    print(*(causes_of(query) for query in queries.values()), sep="\n", file=sys.stderr)


main(*sys.argv[1:])
