"""Starting and reading the processes that a benchmark measures or an interoperability test plays against."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from headrace import HeadraceError
from headrace.cnc.cnc_file import CncFile

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(__file__).resolve().parent / "peers"
# Of what does not come; long enough for a machine with ten times the work that it can do.
READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 120.0


class PeerUnavailable(Exception):
    """The reference cannot run here; the text says why."""


@contextmanager
def background(
    command: Sequence[str | Path], ready: Path | str | None = None, *, is_fed: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Runs a process until the block ends.

    `ready` is awaited first: a path that must exist, of a driver that shows life if it is a driver's, or a line the
    process must print. With `is_fed` the caller writes to its standard input.
    """
    stdin = subprocess.PIPE if is_fed else None
    process = subprocess.Popen(
        [str(word) for word in command], stdin=stdin, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        _await_ready(process, ready)
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _await_ready(process: subprocess.Popen[str], ready: Path | str | None) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    if isinstance(ready, Path):
        while not _is_there(ready):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{process.args} did not create {ready}")
            time.sleep(0.01)
    elif ready is not None:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if line != ready:
            raise RuntimeError(f"{process.args} printed {line!r}, not {ready!r}")


def _is_there(path: Path) -> bool:
    """A driver's file comes before the driver is ready."""
    if path.name != "cnc.dat":
        return path.exists()
    try:
        with CncFile.open(path.parent) as cnc:
            return cnc.heartbeat_ms() > 0
    except HeadraceError:
        return False


def output(command: Sequence[str | Path], timeout_s: float = 120.0) -> list[str]:
    """Runs a process to its end and returns the lines it printed."""
    finished = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        timeout=timeout_s,
        check=True,
    )
    return finished.stdout.splitlines()


def processor_s(pid: int) -> float:
    """Processor time of a process so far, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def python_peer(name: str, *args: object) -> list[str]:
    """The command line of one of the programs under `peers/`."""
    return [sys.executable, str(PEERS / name), *map(str, args)]


def native(*args: object) -> list[str]:
    """The command line of the native rig, which `make bench` has built."""
    return [str(ROOT / "target" / "release" / "headrace-bench"), *map(str, args)]


def fresh_directory(name: str) -> Path:
    """A driver directory in shared memory that no driver uses."""
    base = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(os.environ.get("TMPDIR", "/tmp"))
    path = base / f"headrace-bench-{os.getpid()}-{name}"
    shutil.rmtree(path, ignore_errors=True)
    return path


@contextmanager
def headrace_driver(
    name: str, threading_mode: str, properties: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """Our driver in a process of its own."""
    directory = fresh_directory(name)
    executable = ROOT / "target" / "release" / "headraced"
    command = [
        executable,
        f"-Daeron.dir={directory}",
        f"-Daeron.threading.mode={threading_mode}",
        "-Daeron.dir.delete.on.start=true",
        "-Daeron.dir.delete.on.shutdown=true",
        *(f"-D{name}={value}" for name, value in (properties or {}).items()),
    ]
    with background(command, ready=directory / "cnc.dat"):
        yield directory


# Where what a project depends on is, once this process has fetched it.
_fetched: dict[Path, Path] = {}


def fetch_jars(pom: Path, jars: Path) -> None:
    """Fetches what a project depends on from the public repository into a directory; once for each project."""
    if (earlier := _fetched.get(pom)) is not None and earlier.is_dir():
        jars.symlink_to(earlier)
        return
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        raise PeerUnavailable("the peer needs a JDK and Maven: `mvn` or `javac` is not on the PATH")
    fetch = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    finished = subprocess.run([str(word) for word in fetch], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise PeerUnavailable(f"Maven could not fetch the peer: {finished.stdout.strip()[:300]}")
    _fetched[pom] = jars


class JavaPeer:
    """The reference's Java artifacts, from the public repository through Maven."""

    OPTIONS = (
        "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        "--add-opens=java.base/java.util.zip=ALL-UNNAMED",
        # Leaves no files in the temporary directory.
        "-XX:-UsePerfData",
    )

    def __init__(self, classes: Path, *sources: Path, properties: dict[str, str] | None = None) -> None:
        """Fetches the artifacts and compiles programs that use them into `classes`.

        `properties` go to every program that is started.
        """
        self.properties = properties or {}
        jars = classes / "jars"
        fetch_jars(ROOT / "tests" / "interop" / "java" / "pom.xml", jars)
        self.class_path = os.pathsep.join([*(str(jar) for jar in jars.glob("*.jar")), str(classes)])
        subprocess.run(
            ["javac", "-J-XX:-UsePerfData", "-cp", self.class_path, "-d", str(classes), *map(str, sources)],
            check=True,
        )

    def command(self, main: str, *args: object, properties: dict[str, str] | None = None) -> list[str]:
        """The command line of a Java program."""
        defines = [f"-D{name}={value}" for name, value in {**self.properties, **(properties or {})}.items()]
        return ["java", *self.OPTIONS, *defines, "-cp", self.class_path, main, *map(str, args)]

    @contextmanager
    def driver(
        self, name: str, threading_mode: str, properties: dict[str, str] | None = None
    ) -> Iterator[Path]:
        """The reference's driver in a process of its own."""
        directory = fresh_directory(name)
        properties = {
            "aeron.dir": str(directory),
            "aeron.threading.mode": threading_mode,
            "aeron.dir.delete.on.shutdown": "true",
            **(properties or {}),
        }
        command = self.command("io.aeron.driver.MediaDriver", properties=properties)
        with background(command, ready=directory / "cnc.dat"):
            yield directory


@cache
def java_peer() -> JavaPeer:
    """The reference with the programs of the benchmarks, fetched and compiled once."""
    classes = Path(tempfile.mkdtemp(prefix="headrace-bench-java-"))
    atexit.register(shutil.rmtree, classes, ignore_errors=True)
    # The reference's own scripts measure without bounds checks too.
    fastest = {"agrona.disable.bounds.checks": "true"}
    sources = [ROOT / "benches" / "java" / f"{name}.java" for name in ("Throughput", "EchoNode")]
    sources.append(ROOT / "tests" / "interop" / "java" / "EchoMember.java")
    return JavaPeer(classes, *sources, properties=fastest)
