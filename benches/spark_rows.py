"""The row about Apache Spark."""

from __future__ import annotations

import tempfile

from benches.processes import PeerUnavailable, output, python_peer
from benches.report import Measurement, Row

ROWS = 12_000_000


def _passes(other: str) -> tuple[Measurement, Measurement, str]:
    """Rows a second from an archive's files, and of the same rows elsewhere; and how they were read."""
    try:
        import pyspark
    except ImportError:
        raise PeerUnavailable("the row needs PySpark") from None
    with tempfile.TemporaryDirectory(prefix="headrace-bench-spark-") as directory:
        lines = output(python_peer("spark_peer.py", directory, ROWS, other), timeout_s=600)
    rates: dict[str, list[float]] = {"files": [], other: []}
    for line in lines:
        if line.startswith("rate "):
            _, name, duration_ns = line.split()
            rates[name].append(ROWS * 1e9 / int(duration_ns))
    configuration = f"PySpark {pyspark.__version__}, local[2], 64-byte payloads, all columns, noop sink, warm"
    return Measurement(observations=rates["files"]), Measurement(observations=rates[other]), configuration


def spark_batch_read() -> Row:
    """Reading a recording as a data frame, against the same rows from Parquet in the same session."""
    files, parquet, configuration = _passes("parquet")
    return Row(
        name="spark-batch-read",
        unit="rows/s",
        ours=files,
        peer_name="Parquet, uncompressed, same session",
        peer=parquet,
        target=">= 5 M rows/s; >= 0.33 x Parquet",
        configuration=configuration,
    )


def spark_replay_read() -> Row:
    """Reading a recording through its archive's control channel, against reading the archive's files."""
    files, replay, configuration = _passes("replay")
    return Row(
        name="spark-replay-read",
        unit="rows/s",
        ours=replay,
        peer_name="the archive's files, same session",
        peer=files,
        target="stated",
        configuration=f"{configuration}; the archive and its driver in a process beside, replays over UDP on loopback",
    )
