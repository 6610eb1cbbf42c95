"""Nothing stays in the machine's temporary directories after the tests: what does is found and named."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
# Made by programs that are not ours, which never remove them.
_FOREIGN = (
    "pytest-of-",
    "hsperfdata_",
    "artifacts-",
    "liblz4-java",
    "snappy-",
    "libzstd-jni",
    "spark-",
    "blockmgr-",
)


class TestDirectories:
    """Gives a test run, and the processes it starts, temporary directories of their own."""

    __test__ = False

    def open(self) -> None:
        """Creates them and points the environment to them."""
        self._temporary = Path(tempfile.mkdtemp(prefix="headrace-tests-"))
        self._memory = [
            Path(tempfile.mkdtemp(prefix="headrace-tests-", dir=base)) for base in _memory_bases()
        ]
        os.environ["TMPDIR"] = str(self._temporary)
        tempfile.tempdir = None
        for memory in self._memory:
            # Embedded drivers take names beside this one.
            os.environ["AERON_DIR"] = str(memory / "aeron")
        # What a JVM unpacks goes to the same place, and nothing for `jps` to read.
        os.environ["SPARK_SUBMIT_OPTS"] = f"-Djava.io.tmpdir={self._temporary} -XX:-UsePerfData"
        os.environ["SPARK_LAUNCHER_OPTS"] = os.environ["MAVEN_OPTS"] = "-XX:-UsePerfData"

    def close(self, *, keep: bool) -> list[Path]:
        """Removes them, or keeps what a failed test left to look at; returns what the tests did not remove."""
        left = [path for path in self._temporary.iterdir() if not path.name.startswith(_FOREIGN)]
        for memory in self._memory:
            left += memory.iterdir()
        if SHARED_MEMORY.is_dir():
            left += SHARED_MEMORY.glob(f"headrace-bench-{os.getpid()}-*")
        if not keep:
            for directory in (self._temporary, *self._memory):
                shutil.rmtree(directory, ignore_errors=True)
        return left


def _memory_bases() -> list[Path]:
    return [SHARED_MEMORY] if SHARED_MEMORY.is_dir() else []
