"""The row about Apache Spark."""

from __future__ import annotations

import tempfile

from benches.processes import PeerUnavailable, output, python_peer
from benches.report import Measurement, Row

ROWS = 12_000_000


def spark_batch_read() -> Row:
    """Reading a recording as a data frame, against the same rows from Parquet in the same session."""
    try:
        import pyspark
    except ImportError:
        raise PeerUnavailable("the row needs PySpark") from None
    with tempfile.TemporaryDirectory(prefix="headrace-bench-spark-") as directory:
        lines = output(python_peer("spark_peer.py", directory, ROWS), timeout_s=600)
    rates: dict[str, list[float]] = {"headrace": [], "parquet": []}
    for line in lines:
        if line.startswith("rate "):
            _, name, duration_ns = line.split()
            rates[name].append(ROWS * 1e9 / int(duration_ns))
    return Row(
        name="spark-batch-read",
        unit="rows/s",
        ours=Measurement(observations=rates["headrace"]),
        peer_name="Parquet, uncompressed, same session",
        peer=Measurement(observations=rates["parquet"]),
        target=">= 5 M rows/s; >= 0.33 x Parquet",
        configuration=f"PySpark {pyspark.__version__}, local[2], 64-byte payloads, all columns, noop sink, warm",
    )
