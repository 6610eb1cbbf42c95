"""Nothing stays in the machine's temporary directories after the tests: what does is found and named."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_OWN = "headrace-tests-"
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
_FILES_SHOWN = 20
_TIDY_UP_S = 60.0


@dataclass(frozen=True, slots=True)
class Leftover:
    """What the tests did not remove.

    Attributes:
        path: Where it is.
        test: The first test after which it was there.
        files: What is in it, at most 20 names.
    """

    path: Path
    test: str
    files: list[str]

    def __str__(self) -> str:
        return f"{self.path}, there since {self.test}, with {', '.join(self.files) or 'no file in it'}"


class TestDirectories:
    """Gives a process of tests, and the processes it starts, temporary directories of their own.

    Those of workers are in that of the process that starts the workers; each looks after its own.
    """

    __test__ = False

    def open(self) -> None:
        """Creates them and points the environment to them."""
        self._tests: dict[Path, str] = {}
        self._temporary = Path(tempfile.mkdtemp(prefix=_OWN))
        self._memory = [Path(tempfile.mkdtemp(prefix=_OWN, dir=base)) for base in _memory_bases()]
        os.environ["TMPDIR"] = str(self._temporary)
        tempfile.tempdir = None
        for memory in self._memory:
            # Embedded drivers take names beside this one.
            os.environ["AERON_DIR"] = str(memory / "aeron")
        # What a JVM unpacks goes to the same place, and nothing for `jps` to read.
        os.environ["SPARK_SUBMIT_OPTS"] = f"-Djava.io.tmpdir={self._temporary} -XX:-UsePerfData"
        os.environ["SPARK_LAUNCHER_OPTS"] = os.environ["MAVEN_OPTS"] = "-XX:-UsePerfData"

    @property
    def places(self) -> list[Path]:
        """The temporary directories, on disk and in memory."""
        return [self._temporary, *self._memory]

    def after(self, test: str) -> None:
        """Remembers the test that made what is there now and was not there before."""
        for path in self._present():
            self._tests.setdefault(path, test)

    def close(self, *, keep: bool) -> list[Leftover]:
        """Removes them, or keeps what a failed test left to look at; returns what the tests did not remove.

        Waits a moment for the shells that remove what killed processes of Spark left.
        """
        deadline = time.monotonic() + _TIDY_UP_S
        while self._present() and time.monotonic() < deadline:
            time.sleep(0.1)
        left = [
            Leftover(path, self._tests.get(path, "the end of the last test"), _files_in(path))
            for path in self._present()
        ]
        if not keep:
            for path in (*(one.path for one in left), self._temporary, *self._memory):
                shutil.rmtree(path, ignore_errors=True)
        return left

    def _present(self) -> list[Path]:
        present = [path for path in self._temporary.iterdir() if not path.name.startswith((_OWN, *_FOREIGN))]
        for memory in self._memory:
            present += memory.iterdir()
        if SHARED_MEMORY.is_dir():
            present += SHARED_MEMORY.glob(f"headrace-bench-{os.getpid()}-*")
        return present


def _files_in(path: Path) -> list[str]:
    names = (Path(directory, name) for directory, _, files in os.walk(path) for name in sorted(files))
    return [str(name.relative_to(path)) for name in islice(names, _FILES_SHOWN)]


def _memory_bases() -> list[Path]:
    return [SHARED_MEMORY] if SHARED_MEMORY.is_dir() else []
