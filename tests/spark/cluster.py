"""A standalone Spark cluster of real processes, out of the PySpark package alone: a master and workers on loopback."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.helpers import await_true

_PR_SET_PDEATHSIG = 1
_HOST = "127.0.0.1"


@contextmanager
def spark_cluster(base: Path, worker_count: int) -> Iterator[str]:
    """The URL of a master that all workers have joined, each with one core. Logs and work are under ``base``."""
    with ExitStack() as processes:
        log = base / "master.log"
        ports = ["--port", 0, "--webui-port", 0]
        processes.enter_context(_running("master.Master", log, "--host", _HOST, *ports))
        url = _awaited(r"Starting Spark master at (spark://\S+)", log)[0]
        for number in range(worker_count):
            work = base / f"worker-{number}"
            size = ["--cores", 1, "--memory", "512m", "--work-dir", work]
            processes.enter_context(
                _running("worker.Worker", base / f"{work.name}.log", "--host", _HOST, *ports, *size, url)
            )
        _awaited(r"Registering worker \S+ with 1 cores", log, worker_count)
        yield url


def _awaited(pattern: str, log: Path, count: int = 1) -> list[str]:
    found: list[str] = []

    def is_there() -> bool:
        found[:] = re.findall(pattern, log.read_text())
        assert "Exception in thread" not in log.read_text(), log.read_text()
        return len(found) >= count

    await_true(is_there)
    return found


@contextmanager
def _running(main: str, log: Path, *args: object) -> Iterator[None]:
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        # A worker that is killed leaves the empty directory that it made for its programs.
        "SPARK_DAEMON_JAVA_OPTS": f"-XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.io.tmpdir={tempfile.gettempdir()}",
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{main}", *args]
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=log.parent,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    try:
        yield
    finally:
        # Executors are in the group of their worker, and end by themselves when it is gone.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_with_parent() -> None:
    """For a test run that is killed itself: the kernel then ends the process that this becomes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
