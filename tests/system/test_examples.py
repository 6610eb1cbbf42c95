"""Every example runs, ends well and says what it promises."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import ROOT

from tests.helpers import TIMEOUT_S
from tests.ports import free_endpoint
from tests.system.processes import driver_process, finish, start

pytestmark = pytest.mark.system

EXAMPLES = ROOT / "examples"
ALONE = {
    "batch_numpy.py": "100000 trades",
    "batch_arrow.py": "10000 rows",
    "sbe_trades.py": "20000 trades",
    "asyncio_chat.py": "bert: bye",
    "native_handler_numba.py": "messages, first bytes add up to",
    "multicast.py": "3 receivers, 1000 messages each",
    "fan_out.py": "manual: 1 receiver, 1000 messages",
    "redundant_paths.py": "1000 messages, each once; one of two publishers died after 500",
    "request_response.py": "the last answer is 9801",
    "embedded_throughput.py": "messages a second",
    "cluster_key_value.py": "'visits': 100, 'runs': 1}",
    "cluster_sequencer.py": "both subscribers have read the same order",
    "cluster_order_book.py": "12 traded in all, 3 still for sale",
}
PAIRS = {"basic_publisher.py", "basic_subscriber.py", "ping.py", "pong.py"}
# Run by tests/spark/test_weather.py.
WITH_SPARK = {"weather"}
UDP = f"aeron:udp?endpoint={free_endpoint()}"
UDP_BACK = f"aeron:udp?endpoint={free_endpoint()}"


def test_no_example_is_left_out() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(ALONE) | PAIRS
    assert {path.parent.name for path in EXAMPLES.glob("*/__main__.py")} == WITH_SPARK


@pytest.mark.parametrize(("name", "promise"), ALONE.items())
def test_examples_that_need_nothing(name: str, promise: str) -> None:
    if name == "native_handler_numba.py" and importlib.util.find_spec("numba") is None:
        pytest.skip("numba is not installed: pip install '.[numba]'")
    arguments: list[str | Path] = [EXAMPLES / name, *(["1"] if name == "embedded_throughput.py" else [])]
    assert promise in finish(start(arguments))


@pytest.mark.parametrize("name", sorted([*ALONE, *PAIRS]))
def test_arguments_that_an_example_does_not_have_are_refused(name: str, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, EXAMPLES / name, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )

    if name == "native_handler_numba.py" and importlib.util.find_spec("numba") is None:
        pytest.skip("numba is not installed: pip install '.[numba]'")
    shown = run("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"usage: {name} [-h]")
    refused = run("1", "2", "3", "4")
    assert refused.returncode == 2
    assert "unrecognized arguments: " in refused.stderr or "invalid int value: " in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_whose_node_cannot_start_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, EXAMPLES / "cluster_key_value.py", tmp_path / "file"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 1
    assert "is a file and not a directory" in done.stderr
    assert done.stderr.endswith("the node's process ended with status 1; it printed why\n")


@pytest.mark.parametrize(
    ("name", "promise"),
    {
        "cluster_key_value.py": "'visits': 200, 'runs': 2}",
        "cluster_sequencer.py": "3000 messages, numbers 3001 to 6000",
        "cluster_order_book.py": "24 traded in all, 6 still for sale",
    }.items(),
)
def test_what_a_cluster_holds_is_there_at_the_second_run(name: str, promise: str, tmp_path: Path) -> None:
    assert promise not in finish(start([EXAMPLES / name, tmp_path / "cluster"]))
    assert promise in finish(start([EXAMPLES / name, tmp_path / "cluster"]))


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with driver_process("examples") as made:
        yield made


@pytest.mark.parametrize("channel", ["aeron:ipc", UDP], ids=["ipc", "udp"])
def test_the_basic_pair(directory: Path, channel: str) -> None:
    subscriber = start([EXAMPLES / "basic_subscriber.py", channel, "5"], directory)
    publisher = start([EXAMPLES / "basic_publisher.py", channel, "5"], directory)
    assert "sent 4, stream position" in finish(publisher)
    assert finish(subscriber).count("Hello World!") == 5


@pytest.mark.parametrize("channels", [("aeron:ipc", "aeron:ipc"), (UDP, UDP_BACK)], ids=["ipc", "udp"])
def test_ping_and_pong(directory: Path, channels: tuple[str, str]) -> None:
    pong = start([EXAMPLES / "pong.py", *channels], directory)
    ping = start([EXAMPLES / "ping.py", *channels, "200"], directory)
    assert "100 % within" in finish(ping)
    finish(pong)
