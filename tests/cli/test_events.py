"""`headrace events`: what people see, what programs see, live and of a dead driver."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

import headrace
from headrace import _core
from headrace.cli.app import app
from headrace.cli.lifecycle import run_to_exit
from headrace.event_log import Event, read_events
from headrace.tools.snapshot import DriverWatcher
from headrace.tools.views.events import event_lines
from headrace.tools.views.header import header_line
from tests.helpers import TIMEOUT_S
from tests.ports import free_endpoint

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process: exit status, stdout, stderr."""

    def run_command(*arguments: object) -> tuple[int, str, str]:
        status = run_to_exit(app, [str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_command


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    log = _core.EventLog(tmp_path, 8, 1)
    log.append(10**18, "driver", 42, "", "Running", "launched")
    log.append(
        13 * 10**17,
        "image",
        17,
        "Active",
        "Draining",
        "silent",
        stream_id=1001,
        session_id=-77,
        detail="10.0.0.5:9",
        is_fault=True,
    )
    return tmp_path


def test_people_see_what_changed_and_why(run: Run, directory: Path) -> None:
    status, out, err = run("events", "--dir", directory)
    assert (status, err) == (0, "")
    assert [line.strip() for line in out.splitlines()[1::2]] == ["launched", "silent  10.0.0.5:9"]
    assert "image 17  Active -> Draining  stream 1001  session -77" in out


def test_programs_get_one_object_an_event(run: Run, directory: Path) -> None:
    _, out, _ = run("events", "--dir", directory, "--json", "--kind", "image")
    (line,) = out.splitlines()
    shown = json.loads(line)
    assert (shown["directory"], shown["id"], shown["parent_id"]) == (str(directory), 17, None)
    assert (shown["old"], shown["new"], shown["time_ns"]) == ("Active", "Draining", 13 * 10**17)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--stream", 1001), 1),
        (("--session", 1), 0),
        (("--id", 42), 1),
        (("--since", "2010-01-01"), 1),
        (("--since", "5m"), 0),
        (("--faults",), 1),
        (("--kind", "image", "--kind", "driver"), 2),
    ],
)
def test_filters_leave_the_rest_out(
    run: Run, directory: Path, options: tuple[object, ...], count: int
) -> None:
    status, out, _ = run("events", "--dir", directory, "--json", *options)
    assert (status, len(out.splitlines())) == (0, count)


def test_several_directories_are_merged_by_time(run: Run, directory: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    _core.EventLog(other, 8, 1).append(11 * 10**17, "recording", 3, "", "Active", "begins")
    _, out, _ = run("events", "--dir", directory, "--dir", other, "--json")
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["driver", "recording", "image"]


def test_a_directory_without_events_and_a_wrong_time_are_told(run: Run, tmp_path: Path) -> None:
    status, _, err = run("events", "--dir", tmp_path)
    assert status == 3
    assert "has no event log" in err
    status, _, err = run("events", "--since", "yesterday")
    assert status == 2
    assert "'yesterday' must be a number with s, m, h or d" in err


def test_lines_fit_80_columns_and_lose_no_text() -> None:
    detail = "aeron:udp?endpoint=market-data.example:40123|interface=10.20.30.0/24"
    event = Event(
        1,
        10**18,
        "publication",
        2**40,
        2**40,
        2_000_000_007,
        -2_000_000_007,
        "Active",
        "Draining",
        "closed",
        detail,
        is_fault=True,
    )
    text = io.StringIO()
    Console(file=text, width=80).print(event_lines(event))
    assert all(len(line) <= 80 for line in text.getvalue().splitlines())
    for part in ("publication 1099511627776", "Active -> Draining", "-2000000007", "closed"):
        assert part in " ".join(text.getvalue().split())
    assert detail in "".join(text.getvalue().split())


@pytest.mark.slow
def test_a_driver_is_followed_and_read_after_its_death(tmp_path: Path) -> None:
    directory = tmp_path / "driver"
    command = [sys.executable, "-m", "headrace"]
    driver = subprocess.Popen([*command, "driver", "--dir", directory], stdout=subprocess.DEVNULL)
    try:
        with headrace.connect(directory, driver_timeout_ms=int(TIMEOUT_S * 1000)) as client:
            follow = subprocess.Popen(
                [*command, "events", "--dir", directory, "--follow", "--json", "--kind", "image"],
                stdout=subprocess.PIPE,
                text=True,
            )
            try:
                channel = f"aeron:udp?endpoint={free_endpoint()}"
                subscription = client.add_subscription(channel, 10)
                publication = client.add_publication(channel, 10)
                assert subscription.wait_until_connected(TIMEOUT_S)
                assert publication.wait_until_connected(TIMEOUT_S)
                assert follow.stdout is not None
                seen = [json.loads(follow.stdout.readline()) for _ in range(2)]
                assert [event["new"] for event in seen] == ["Init", "Active"]
                assert seen[0]["session_id"] == publication.session_id
            finally:
                follow.send_signal(signal.SIGINT)
                follow.communicate(timeout=TIMEOUT_S)
            assert follow.returncode == 0
            driver.kill()
            driver.wait()
    finally:
        driver.kill()
        driver.wait()
    with DriverWatcher(directory) as watcher:
        after = watcher.snapshot()
    assert not after.is_alive
    assert "the driver's process has ended" in header_line(after, "stat").plain
    left = read_events(directory)
    assert left[0].kind == "driver"
    assert {event.kind for event in left} >= {"driver", "image", "connection"}
    assert not any(event.new == "Closed" for event in left), "a killed driver says nothing of its end"


def test_a_misspelt_kind_and_a_time_before_all_times_are_named(run: Run, directory: Path) -> None:
    status, _, err = run("events", "--dir", directory, "--kind", "imag")
    assert status == 2
    assert "'imag' is not one of" in err
    status, _, err = run("events", "--dir", directory, "--since", "0001-01-01")
    assert status == 2
    assert "take one after 1970" in err
