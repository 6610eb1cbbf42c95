"""`headrace stat`, `streams`, `errors` and `loss`: what people see, what programs see, how it ends."""

from __future__ import annotations

import io
import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

import headrace
from headrace import _core
from headrace._base.control_characters import shown
from headrace.cli.app import app
from headrace.cli.lifecycle import run_to_exit
from headrace.cli.live_table import LiveTable
from headrace.cli.output import contains
from headrace.cnc.error_log import ErrorEntry
from headrace.testing import random_loss
from headrace.tools import LossEntry
from headrace.tools.views.errors import errors_table
from headrace.tools.views.loss import loss_table
from tests.cli.fake_cnc import FakeCnc, a_busy_driver
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_port

Run = Callable[..., tuple[int, str, str]]

LONG_CHANNEL = "aeron:udp?endpoint=market-data.example:40123|interface=10.20.30.0/24|term-length=16m"
LONG_ERROR = f"cannot bind the socket of {LONG_CHANNEL}: the address is in use, choose another port"
LONG_LOSS = LossEntry(
    4, 1408, 1_699_000_000_000, 1_699_000_001_000, -2_000_000_007, 1001, LONG_CHANNEL, "10.0.0.1:9"
)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process: exit status, stdout, stderr."""

    def run_command(*arguments: object) -> tuple[int, str, str]:
        status = run_to_exit(app, [str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_command


def test_stat_groups_counters_and_reads_their_units(run: Run, driver_directory: Path) -> None:
    status, out, err = run("stat", "--dir", driver_directory, "--once")
    assert (status, err) == (0, "")
    order = [out.index(text) for text in ("system", "publications", "subscriptions", "channels", "clients")]
    assert order == sorted(order)
    for text in ("5,000,000", "4.8 MiB", "ACTIVE", "pub-lmt: 31 -7 1001", "pid 4242", "73,000"):
        assert text in out


def test_stat_gives_programs_one_object_with_the_key_read(run: Run, driver_directory: Path) -> None:
    status, out, _ = run("stat", "--dir", driver_directory, "--json", "--once", "--type", "sub-pos")
    (line,) = out.splitlines()
    shown = json.loads(line)
    assert status == 0
    assert [counter["value"] for counter in shown["counters"]] == [7936, 64]
    assert (
        shown["counters"][0] | {"stream_id": 1001, "session_id": -7, "group": "subscriptions"}
        == shown["counters"][0]
    )
    assert shown["pid"] == 4242


def test_texts_of_strangers_do_not_control_the_terminal(run: Run, tmp_path: Path) -> None:
    channel = "aeron:udp?alias=A\x1b]0;OWNED\x07B"
    cnc = FakeCnc()
    cnc.error(1, 1_699_000_000_000, 1_699_000_100_000, "why \x1b]0;OWNED\x07 not\x9b2J\u202e")
    cnc.stream_counter(0, 12, "pub-pos", 64, registration_id=40, session_id=-7, stream_id=9, channel=channel)
    cnc.write(tmp_path)
    for command in ("errors", "streams", "stat"):
        status, out, _ = run(command, "--dir", tmp_path, "--once")
        assert status == 0
        assert "OWNED" in out
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)
    assert shown("two\nlines\tand \x7f") == "two\nlines\tand \u2421"


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (["--stream", 1001, "--type", 1, "--type", "snd-pos"], [3, 4]),
        (["--session", 8], []),
        (["--channel", "2012."], [2, 3, 4, 5, 6, 7, 8, 10, 11]),
        (["--label", "^Errors"], [1]),
    ],
)
def test_stat_filters(run: Run, driver_directory: Path, filters: list[object], ids: list[int]) -> None:
    _, out, _ = run("stat", "--dir", driver_directory, "--json", "--once", *filters)
    assert [counter["id"] for counter in json.loads(out)["counters"]] == ids


def test_streams_say_what_each_party_has_left(run: Run, driver_directory: Path) -> None:
    _, out, _ = run("streams", "--dir", driver_directory, "--once")
    for text in ("stream 1001  session -7", "publisher", "62.5 KiB", "sender", "receiver", "subscription 40"):
        assert text in out
    _, out, _ = run("streams", "--dir", driver_directory, "--once", "--json")
    (stream,) = json.loads(out)["streams"]
    assert stream["readers"][1] == {
        "registration_id": 40,
        "position": 64,
        "backlog": 8896,
        "client_id": None,
        "client_name": None,
        "is_spy": False,
        "is_tethered": True,
    }


def test_streams_say_whose_a_reader_is_and_where_it_listens(run: Run) -> None:
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        driver.connect() as client,
        headrace.Client.connect(driver=driver, client_name="the [/reader]") as named,
        named.add_subscription("aeron:udp?endpoint=127.0.0.1:0", 5) as subscription,
    ):
        endpoint = subscription.resolved_endpoint
        assert endpoint is not None
        with client.add_publication(f"aeron:udp?endpoint={endpoint}", 5) as publication:
            publication.wait_until_connected(TIMEOUT_S)
            subscription.wait_until_connected(TIMEOUT_S)

            def received() -> dict[str, Any]:
                _, out, _ = run("streams", "--dir", driver.directory, "--once", "--json")
                (stream,) = [stream for stream in json.loads(out)["streams"] if stream["readers"]]
                return stream

            # A client's name comes with its first heartbeat.
            await_true(lambda: received()["readers"][0]["client_name"] == "the [/reader]")
            assert received()["readers"][0]["client_id"] == named.client_id
            assert received()["receive_addresses"] == [endpoint]
            _, out, _ = run("streams", "--dir", driver.directory, "--once")
            assert f"of client {named.client_id} (the [/reader])" in " ".join(out.split())
            assert endpoint in out


def test_streams_names_the_program_that_does_not_read_and_how_long_it_has_not(run: Run) -> None:
    channel = "aeron:ipc?term-length=64k"
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED", timer_interval_ns=5_000_000) as driver,
        driver.connect() as client,
        headrace.Client.connect(driver=driver, client_name="the [/sleeper] :100:") as sleeper,
        sleeper.add_subscription(channel, 5) as subscription,
        client.add_publication(channel, 5) as publication,
    ):
        publication.wait_until_connected(TIMEOUT_S)

        def held_back() -> dict[str, Any]:
            while publication.offer(bytes(1_000)):
                pass
            _, out, _ = run("streams", "--dir", driver.directory, "--once", "--json")
            (stream,) = json.loads(out)["streams"]
            return stream["publisher_held_back"] or {}

        await_true(held_back)
        by = f"subscription {subscription.registration_id} of client {sleeper.client_id}"
        await_true(lambda: held_back()["client_name"] == "the [/sleeper] :100:")
        assert held_back()["by"] == by
        assert held_back()["for_ms"] >= 0
        _, out, _ = run("streams", "--dir", driver.directory, "--once")
        assert f"held back by {by} (the [/sleeper] :100:) for" in " ".join(out.split())


def test_streams_say_that_a_receiver_drops_what_comes(run: Run) -> None:
    control = f"control=127.0.0.1:{free_port()}"
    publisher = f"aeron:udp?{control}|control-mode=dynamic|term-length=64k"
    channels = [f"aeron:udp?endpoint=127.0.0.1:{free_port()}|{control}" for _ in range(2)]
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED", timer_interval_ns=300_000_000) as driver,
        driver.connect() as client,
        client.add_subscription(channels[0], 5) as fast,
        client.add_subscription(channels[1], 5) as slow,
        client.add_publication(publisher, 5) as publication,
    ):
        fast.wait_until_connected(TIMEOUT_S)
        slow.wait_until_connected(TIMEOUT_S)

        def drops() -> dict[str, Any]:
            while publication.offer(bytes(1_000)):
                pass
            fast.poll(lambda payload, header: None, 100)
            _, out, _ = run("streams", "--dir", driver.directory, "--once", "--json")
            of_slow = [each for each in json.loads(out)["streams"] if each["channel"] == channels[1]]
            return (of_slow[0]["receiver_drops"] or {}) if of_slow else {}

        await_true(drops)
        seen = drops()
        assert seen["source"].startswith("127.0.0.1:")
        assert seen["place"] == "more than half a term ahead of the slowest reader"
        assert seen["for_ms"] >= 0
        _, out, _ = run("streams", "--dir", driver.directory, "--once")
        expected = f", drops packets from {seen['source']}, {seen['place']}, for"
        assert " ".join(out.split()).count(expected) == 1


def test_streams_say_what_the_receivers_lost(run: Run) -> None:
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as sends,
        headrace.MediaDriver.embedded(
            threading_mode="SHARED", properties=random_loss(0.2, seed=9)
        ) as receives,
        sends.connect() as publisher,
        receives.connect() as subscriber,
    ):
        channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
        subscription = subscriber.add_subscription(channel, 5)
        publication = publisher.add_publication(f"{channel}|term-length=64k", 5)
        for _ in range(100):
            publication.offer_blocking(bytes(1_000), timeout_s=TIMEOUT_S)
            assert subscription.receive(timeout_s=TIMEOUT_S)
        _, out, _ = run("streams", "--dir", sends.directory, "--once", "--json")
        (stream,) = json.loads(out)["streams"]
        naks, repairs = stream["naks_received"], stream["retransmits_sent"]
        assert naks > 0
        assert repairs > 0
        _, out, _ = run("streams", "--dir", sends.directory, "--once")
        told = re.search(r"(\d+) NAKs, (\d+) retransmits", " ".join(out.split()))
        assert told, out
        # What is repaired twice comes later.
        assert int(told[1]) >= naks
        assert int(told[2]) >= repairs
        _, out, _ = run("streams", "--dir", receives.directory, "--once", "--json")
        (stream,) = json.loads(out)["streams"]
        assert (stream["naks_received"], stream["retransmits_sent"]) == (None, None)


def test_a_group_that_is_not_complete_is_told_as_such(run: Run) -> None:
    control = f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=dynamic|fc=min,g:/2"
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        driver.connect() as client,
        client.add_publication(control, 5) as publication,
        client.add_subscription(f"{control}|endpoint=127.0.0.1:0", 5),
    ):
        assert publication.wait_for_subscribers(1, TIMEOUT_S)
        assert not publication.is_connected
        with pytest.raises(
            headrace.PublicationTimeoutError, match=r"^too few .*: receivers=1: fc=min,g:/2 waits"
        ):
            publication.offer_blocking(b"x", timeout_s=0)
        told = ("publish", "-m", "x", "--dir", driver.directory, "-c", control, "-s", 5, "--timeout", "0.01")
        status, _, err = run(*told)
        assert status == 1
        assert (
            "too few receivers for the group connected within 0.01 s: receivers=1: fc=min,g:/2 waits" in err
        )
        arguments = ("streams", "--dir", driver.directory, "--once")
        _, out, _ = run(*arguments)
        assert "not connected: its group needs more receivers, and has 1" in " ".join(out.split())
        _, out, _ = run(*arguments, "--json")
        assert 1 in [stream["receiver_count"] for stream in json.loads(out)["streams"]]


def test_a_subscription_that_comes_back_by_its_tag_shows_its_paths(run: Run) -> None:
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        driver.connect() as client,
        client.add_publication(endpoint, 5) as publication,
    ):
        for _ in range(2):
            with client.add_subscription("aeron:udp?control-mode=manual|tags=7", 5) as subscription:
                subscription.add_destination(endpoint)
                assert publication.wait_until_connected(TIMEOUT_S)
                assert subscription.wait_until_connected(TIMEOUT_S)

                def paths() -> list[str]:
                    _, out, _ = run("streams", "--dir", driver.directory, "--once", "--json")
                    streams = json.loads(out)["streams"]
                    return [path["channel"] for stream in streams for path in stream["paths"] or []]

                await_true(lambda: endpoint in paths())
            await_true(lambda: not publication.is_connected)


def test_a_stream_is_found_by_the_channel_of_any_of_its_parties(run: Run) -> None:
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        driver.connect() as client,
        client.add_publication(f"{endpoint}|alias=desk", 5) as publication,
        client.add_subscription(f"{endpoint}|alias=screen", 5) as subscription,
    ):
        publication.wait_until_connected(TIMEOUT_S)
        subscription.wait_until_connected(TIMEOUT_S)
        for alias, count in (("desk", 1), ("screen", 1), (f"{endpoint}|alias=screen", 1), ("neither", 0)):
            _, out, _ = run("streams", "--dir", driver.directory, "--once", "--json", "--channel", alias)
            found = json.loads(out)["streams"]
            assert [(stream["channel"], len(stream["readers"])) for stream in found] == [
                (f"{endpoint}|alias=desk", 1)
            ] * count


def test_streams_name_destinations_in_lines_of_their_own(run: Run) -> None:
    ports = [free_port() for _ in range(8)]
    addresses = [f"127.0.0.1:{port}" for port in ports]
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        driver.connect(client_name="me") as client,
        client.add_publication("aeron:udp?control-mode=manual", 5) as publication,
        client.add_subscription("aeron:udp?control-mode=manual", 5) as subscription,
    ):
        for address in addresses:
            publication.add_destination(f"aeron:udp?endpoint={address}")
        for address in addresses[:2]:
            subscription.add_destination(f"aeron:udp?endpoint={address}")
        subscription.add_destination("aeron:ipc")

        def streams() -> list[dict[str, Any]]:
            _, out, _ = run("streams", "--dir", driver.directory, "--stream", 5, "--once", "--json")
            return list(json.loads(out)["streams"])

        def destinations() -> list[dict[str, Any]]:
            return [each for stream in streams() for each in stream["destinations"] or []]

        await_true(lambda: len(destinations()) == len(addresses))
        assert {each["address"] for each in destinations()} == set(addresses)
        assert {each["name"] for each in destinations()} == {None}
        await_true(lambda: addresses[:2] in [stream["receive_addresses"] for stream in streams()])

        def paths() -> list[dict[str, Any]]:
            return [each for stream in streams() for each in stream["paths"] or []]

        expected = [
            {"channel": f"aeron:udp?endpoint={address}", "kind": "udp", "address": address, "state": "live"}
            for address in addresses[:2]
        ]
        expected.append({"channel": "aeron:ipc", "kind": "ipc", "address": None, "state": "silent"})
        await_true(lambda: paths() == expected)
        _, out, _ = run("streams", "--dir", driver.directory, "--stream", 5, "--once")
        # The first line has the directory.
        lines = [line.strip() for line in out.splitlines()[1:]]
        assert all(len(line) <= 80 for line in lines)
        assert [line for line in lines if line.endswith("and 2 more: see --json")]
        (first,) = [number for number, line in enumerate(lines) if line.startswith("sends to")]
        shown = [line.split()[-1] for line in lines[first : first + 6]]
        assert shown == [each["address"] for each in destinations()[:6]]
        shown = [line.split()[1:] for line in lines if line.startswith("path")]
        assert shown == [*(["live", "udp", address] for address in addresses[:2]), ["silent", "ipc"]]
        assert "aeron:ipc" in lines


def test_errors_show_the_whole_text(run: Run, driver_directory: Path) -> None:
    status, out, _ = run("errors", "--dir", driver_directory, "--once")
    assert status == 0
    for text in ("it broke", "at here", "1 distinct error\n"):
        assert text in out
    _, out, _ = run("errors", "--dir", driver_directory, "--once", "--json")
    assert json.loads(out)["errors"][0]["observation_count"] == 3


def test_errors_reads_any_file_at_an_offset(run: Run, driver_directory: Path, tmp_path: Path) -> None:
    with (tmp_path / "mark.dat").open("wb") as file:
        file.write(b"\0" * 64 + a_busy_driver().errors)
    _, out, _ = run("errors", "--file", tmp_path / "mark.dat", "--offset", 64, "--once", "--json")
    assert len(json.loads(out)["errors"]) == 1


def test_loss_shows_the_worst_first(run: Run, driver_directory: Path) -> None:
    _, out, _ = run("loss", "--dir", driver_directory, "--once")
    assert out.index("10.0.0.1:9") < out.index("10.0.0.2:90")
    assert "2 loss entries" in out
    _, out, _ = run("loss", "--dir", driver_directory, "--once", "--json")
    assert [entry["total_bytes_lost"] for entry in json.loads(out)["losses"]] == [1408, 64]


@pytest.mark.parametrize("name", ["errors", "loss"])
def test_exit_code_tells_scripts_whether_there_is_anything(
    run: Run, driver_directory: Path, name: str
) -> None:
    assert run(name, "--dir", driver_directory, "--once", "--exit-code")[0] == 4
    assert run(name, "--dir", driver_directory, "--once")[0] == 0
    FakeCnc().write(driver_directory)
    (driver_directory / "loss-report.dat").write_bytes(bytes(4096))
    assert run(name, "--dir", driver_directory, "--once", "--exit-code")[0] == 0


@pytest.mark.parametrize("name", ["stat", "streams", "errors", "loss"])
def test_no_driver_is_status_three_and_one_line(run: Run, tmp_path: Path, name: str) -> None:
    status, out, err = run(name, "--dir", tmp_path, "--once")
    assert (status, out) == (3, "")
    assert err.startswith(f"error: {tmp_path}/")
    assert err.count("\n") == 1


def test_a_damaged_file_is_status_one_and_says_which(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cnc.dat").write_bytes(b"\1\2\3\4" * 64)
    status, _, err = run("stat", "--dir", tmp_path, "--once")
    assert status == 1
    assert "version=" in err
    assert str(tmp_path / "cnc.dat") in err


def test_a_wrong_option_is_status_two_and_says_what_is_right(run: Run, driver_directory: Path) -> None:
    status, _, err = run("stat", "--dir", driver_directory, "--type", "subpos")
    assert status == 2
    assert "sub-pos" in err
    status, _, err = run("stat", "--dir", driver_directory, "--channel", "(")
    assert status == 2
    assert "regular expression" in err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("replay", "did you mean `headrace archive replay`?"),
        ("reecord", "did you mean `headrace archive record`?"),
        ("sta", "did you mean `stat` or `streams`?"),
    ],
)
def test_a_misspelt_command_is_answered_with_the_nearest(run: Run, given: str, meant: str) -> None:
    status, _, err = run(given)
    assert status == 2
    assert meant in err


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "headrace", *map(str, arguments)]


def read_terminal(terminal: int, until: bytes | None = None) -> bytes:
    """What a process writes to its terminal, until it writes `until` or ends."""
    seen = b""
    while until is None or until not in seen:
        try:
            more = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        seen += more
    return seen


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_live_table_takes_the_screen_and_ends_cleanly(driver_directory: Path, end: signal.Signals) -> None:
    ours, theirs = pty.openpty()
    environment: dict[str, Any] = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    arguments = command("stat", "--dir", driver_directory, "--interval", "0.05")
    process = subprocess.Popen(arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        assert b"\x1b[?1049h" in read_terminal(ours, until=b"client-heartbeat")
        process.send_signal(end)
        rest = read_terminal(ours)
        process.wait(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert process.returncode == 0
    assert b"Traceback" not in rest
    _, left_the_screen, last = rest.rpartition(b"\x1b[?1049l")
    assert left_the_screen
    assert b"client-heartbeat" in last


@pytest.mark.asyncio
async def test_a_live_table_filters_scrolls_and_pauses() -> None:
    taken = itertools.count()
    names = [f"counter {number}" for number in range(100)]

    def table(current: int, previous: int | None, search: str) -> RenderableType:
        return "\n".join(f"{name} at {current}" for name in names if contains(search, name))

    app = LiveTable(lambda: next(taken), table, interval_s=0.2)
    async with app.run_test(size=(80, 24)) as pilot:
        scroll = app.query_one("#scroll")
        await pilot.press("pagedown")
        await pilot.wait_for_scheduled_animations()
        assert scroll.scroll_offset.y > 0
        await pilot.press("slash", *"counter 99", "enter")
        assert str(app.drawn()).startswith("counter 99 at")
        paused = app.query_one("#paused")
        assert not paused.display
        await pilot.press("space")
        assert paused.display
        shown = str(app.drawn())
        for _ in range(3):
            await pilot.pause(0.1)
        assert str(app.drawn()) == shown
        await pilot.press("space")
        assert not paused.display
        assert str(app.drawn()) != shown
        await pilot.press("escape")
        assert str(app.drawn()).count("\n") == 99
        await pilot.press("q")
    assert app.return_code == 0


def test_the_first_line_of_each_table_says_what_when_and_where(
    run: Run, driver_directory: Path, tmp_path: Path
) -> None:
    for name, title in (("stat", "counters"), ("streams", "streams"), ("errors", "errors"), ("loss", "loss")):
        status, out, _ = run(name, "--dir", driver_directory, "--once")
        assert status == 0
        assert re.match(rf"{title}  \d{{4}}-\d\d-\d\d [\d:.]+\S+  {driver_directory}\b", out), out
    log = tmp_path / "log"
    log.write_bytes(bytes(64))
    _, out, _ = run("errors", "--file", log, "--once")
    assert re.match(rf"errors  \d{{4}}-\d\d-\d\d [\d:.]+\S+  {log}$", out.splitlines()[0]), out


@pytest.mark.asyncio
async def test_what_a_live_table_cannot_read_reaches_the_command() -> None:
    answers = iter([1])

    def take() -> int:
        for answer in answers:
            return answer
        raise OSError("the file has gone")

    app = LiveTable(take, lambda current, previous, search: str(current), interval_s=0.01)
    async with app.run_test() as pilot:
        while app.fault is None:
            await pilot.pause(0.01)
    assert str(app.fault) == "the file has gone"


@pytest.mark.parametrize(
    ("draw", "texts"),
    [
        (
            lambda: loss_table(Text("loss"), [LONG_LOSS]),
            ["1.4 KiB", "stream 1001", "10.0.0.1:9", "seen 4 times", LONG_CHANNEL[:40]],
        ),
        (
            lambda: errors_table(
                Text("errors"), [ErrorEntry(3, 1_699_000_000_000, 1_699_000_001_000, LONG_ERROR)]
            ),
            ["3", "cannot bind", "last ", "first "],
        ),
    ],
    ids=["loss", "errors"],
)
def test_tables_read_well_at_eighty_columns(draw: Callable[[], RenderableType], texts: list[str]) -> None:
    console = Console(width=80, file=io.StringIO())
    console.print(draw())
    assert isinstance(console.file, io.StringIO)
    out = console.file.getvalue()
    for text in texts:
        assert text in out
    # Nothing is folded into a column of a few characters: a table of one entry stays short.
    assert len(out.splitlines()) < 12


def test_counters_that_are_zero_come_last(run: Run, tmp_path: Path) -> None:
    cnc = a_busy_driver()
    cnc.counter(13, 0, "Failed offers", 0)
    cnc.counter(14, 0, "Bytes received", 7)
    cnc.write(tmp_path)
    _, out, _ = run("stat", "--dir", tmp_path, "--once")
    before, after = re.split(r"^ +zero *$", out, flags=re.MULTILINE)
    assert "Bytes received" in before
    (line,) = after.strip().splitlines()
    assert line.split()[:2] == ["13", "0"]
    assert line.endswith("Failed offers")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(run: Run, shell: str) -> None:
    status, script, _ = run("completion", shell)
    assert status == 0
    assert "_HEADRACE_COMPLETE" in script


def test_completion_names_what_fits() -> None:
    asked = {"_HEADRACE_COMPLETE": "bash_complete", "COMP_WORDS": "headrace stat --str", "COMP_CWORD": "2"}
    done = subprocess.run(
        command(), env={**os.environ, **asked}, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert done.stdout.split() == ["plain,--stream"]


def test_json_goes_on_line_by_line_until_stopped(driver_directory: Path) -> None:
    arguments = command("stat", "--dir", driver_directory, "--json", "--interval", "0.05")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert lines[0]["time_ms"] < lines[2]["time_ms"]
    assert (process.returncode, err) == (0, "")


def test_a_reader_that_leaves_ends_the_command_quietly(driver_directory: Path) -> None:
    arguments = command("stat", "--dir", driver_directory, "--json", "--interval", "0.05")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=TIMEOUT_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize("name", ["stat", "errors", "loss", "streams", "events"])
def test_a_table_that_nothing_reads_is_no_failure(driver_directory: Path, name: str) -> None:
    _core.EventLog(driver_directory, 8, 1).append(10**18, "driver", 42, "", "Running", "launched")
    once = () if name == "events" else ("--once",)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end) as stdout:
        done = subprocess.run(
            command(name, "--dir", driver_directory, *once),
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_restarted_driver_is_followed(driver_directory: Path) -> None:
    arguments = command("stat", "--dir", driver_directory, "--json", "--interval", "0.05")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["pid"] == 4242
        (driver_directory / "cnc.dat").unlink()
        FakeCnc(pid=5151).write(driver_directory)
        while json.loads(process.stdout.readline())["pid"] != 5151:
            pass
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)


@pytest.mark.parametrize(
    "name", ["driver", "publish", "subscribe", "ping", "pong", "throughput", "bench", "stat", "completion"]
)
def test_every_command_has_help_with_examples(run: Run, name: str) -> None:
    status, out, _ = run(name, "--help")
    assert status == 0
    assert "Examples:" in out
    assert f"headrace {name}" in out
