"""The commands that move messages, each as a user runs it: processes, pipes, signals, exit statuses."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Container, Iterator
from pathlib import Path

import pytest
from benches.processes import fresh_directory

import headrace
from tests.cli.fake_cnc import FakeCnc
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.system

IPC = ("--channel", "aeron:ipc")
UDP = ("--channel", f"aeron:udp?endpoint={free_endpoint()}")


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "headrace", *map(str, arguments)]


@contextlib.contextmanager
def running(*arguments: object, stdin: bytes | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A command in another process, ended by force if the test leaves it."""
    process = subprocess.Popen(
        command(*arguments),
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        if stdin is not None and process.stdin is not None:
            process.stdin.write(stdin)
            process.stdin.close()
            process.stdin = None
        yield process
    finally:
        process.kill()
        process.communicate()


def run(*arguments: object, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        command(*arguments), input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def driver() -> Iterator[Path]:
    """A driver in a process of its own, for all tests of this file."""
    directory = fresh_directory("cli")
    with running("driver", "--dir", directory, "-m", "SHARED", "--delete-on-shutdown") as process:
        assert process.stdout is not None
        assert str(directory).encode() in process.stdout.readline()
        yield directory
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, b"")
    assert not directory.exists()


@pytest.mark.parametrize("channel", [IPC, UDP], ids=["ipc", "udp"])
def test_lines_of_stdin_arrive_as_lines(driver: Path, channel: tuple[str, str]) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(1000))
    with running("subscribe", "--dir", driver, *channel, "-s", 1, "-n", 1000) as subscriber:
        status, _, err = run("publish", "-", "--dir", driver, *channel, "-s", 1, stdin=lines)
        out, subscriber_err = subscriber.communicate(timeout=TIMEOUT_S)
    assert (status, out, subscriber_err) == (0, lines, b"")
    assert b"sent 1,000 messages" in err
    assert subscriber.returncode == 0


def test_a_binary_file_arrives_whole(driver: Path, tmp_path: Path) -> None:
    content = os.urandom(100_001)
    (tmp_path / "file").write_bytes(content)
    with running("subscribe", "--dir", driver, *UDP, "-s", 2, "-n", 73, "-f", "raw") as subscriber:
        publish = ["publish", tmp_path / "file", "--length", 1376, "--exclusive"]
        assert run(*publish, "--dir", driver, *UDP, "-s", 2)[0] == 0
        out, _ = subscriber.communicate(timeout=TIMEOUT_S)
    assert out == content


def test_messages_for_programs(driver: Path) -> None:
    with running("subscribe", "--dir", driver, *IPC, "-s", 3, "-n", 2, "--json") as subscriber:
        sent = run("publish", "-m", "grüße", "-m", "x", "--dir", driver, *IPC, "-s", 3, "--json")
        out, _ = subscriber.communicate(timeout=TIMEOUT_S)
    first, second = (json.loads(line) for line in out.splitlines())
    assert (first["text"], first["length"], first["stream_id"]) == ("grüße", 7, 3)
    assert second["position"] > first["position"]
    assert json.loads(sent[1]) | {"messages": 2, "bytes": 8} == json.loads(sent[1])


def test_a_payload_that_is_no_text_is_given_as_base64(driver: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xfe")
    with running("subscribe", "--dir", driver, *IPC, "-s", 4, "-n", 1, "--json") as subscriber:
        run("publish", tmp_path / "file", "--length", 2, "--dir", driver, *IPC, "-s", 4)
        out, _ = subscriber.communicate(timeout=TIMEOUT_S)
    assert json.loads(out)["base64"] == "//4="


@pytest.mark.parametrize("messages", [("-m", "x"), ("-",)], ids=["a message", "stdin"])
def test_no_subscriber_is_status_one_and_says_so(driver: Path, messages: tuple[str, ...]) -> None:
    publish = ["publish", *messages, "--dir", driver, *IPC, "-s", 5, "--timeout", 0.2]
    status, out, err = run(*publish, stdin=b"x\n")
    assert (status, out) == (1, b"")
    assert err.count(b"\n") == 1
    assert b"no subscriber connected" in err
    assert b"stream_id=5" in err


def test_an_empty_input_sends_nothing_and_says_so_without_waiting_for_a_subscriber(driver: Path) -> None:
    # Longer than the test may take.
    status, _, err = run("publish", "-", "--dir", driver, *IPC, "-s", 10, "--timeout", 3600)
    assert status == 0
    assert err.startswith(b"sent 0 messages")
    assert err.count(b"\n") == 1


def test_a_subscriber_that_leaves_ends_the_publisher_with_one_line(driver: Path) -> None:
    channel = ("--channel", "aeron:ipc?term-length=64k")
    with running("subscribe", "--dir", driver, *channel, "-s", 11, "-n", 10) as subscriber:
        # The short time-out is for the one that left; the one that starts has as long as it takes.
        with headrace.connect(driver) as client, client.add_publication(channel[1], 11) as probe:
            assert probe.wait_until_connected(TIMEOUT_S)
        publish = ["publish", "-", "--dir", driver, *channel, "-s", 11, "--timeout", 0.5]
        status, _, err = run(*publish, stdin=b"x\n" * 100_000)
        assert subscriber.wait(TIMEOUT_S) == 0
    assert status == 1
    assert err.count(b"\n") == 1
    assert b"messages" in err


@pytest.mark.parametrize(
    ("arguments", "closed", "text"),
    [
        (("publish", "-", "--timeout", 10), 0, b"stdin is closed"),
        (("subscribe", "-n", 1), 1, b"stdout is closed"),
        (("stat", "--once"), 1, b"stdout is closed"),
    ],
)
def test_a_closed_stream_is_one_line(
    driver: Path, arguments: tuple[object, ...], closed: int, text: bytes
) -> None:
    channel = () if arguments[0] == "stat" else (*IPC, "-s", 12)
    line = shlex.join(command(*arguments, "--dir", driver, *channel)) + f" {closed}>&-"
    with running("subscribe", "--dir", driver, *IPC, "-s", 12):
        done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 1
    assert text in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(("name", "status"), [("subscribe", 3), ("publish", 1)])
def test_a_killed_driver_is_one_line(name: str, status: int) -> None:
    directory = fresh_directory("cli-killed")
    stream = "--dir", directory, *IPC, "-s", 13
    numbers = sys.executable, "-c", "while True: print(1, flush=True)"
    with contextlib.ExitStack() as started:
        driver = started.enter_context(running("driver", "--dir", directory, "-m", "SHARED"))
        assert driver.stdout is not None
        driver.stdout.readline()
        if name == "publish":
            started.enter_context(running("subscribe", *stream))
            line = f"{shlex.join(numbers)} 2>/dev/null | {shlex.join(command('publish', '-', *stream))} >/dev/null"
        else:
            line = f"exec {shlex.join(command('subscribe', *stream))} >/dev/null"
        process = started.enter_context(subprocess.Popen(["sh", "-c", line], stderr=subprocess.PIPE))
        await_counter(directory, "--label", f"name=headrace {name}", process=process)
        driver.kill()
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err.count(b"\n")) == (status, 1), err
    shutil.rmtree(directory)


def test_silence_ends_a_subscriber_that_has_a_timeout(driver: Path) -> None:
    status, _, err = run("subscribe", "--dir", driver, *IPC, "-s", 6, "--timeout", 0.2)
    assert status == 1
    assert b"nothing arrived for 0.2 s" in err


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("subscribe",), 0), (("subscribe", "-n", 5), 130), (("pong", "--pong-channel", "aeron:ipc"), 0)],
)
def test_ctrl_c_is_clean(driver: Path, arguments: tuple[object, ...], status: int) -> None:
    client = "--label", f"name=headrace {arguments[0]}"
    before = counters(driver, *client)
    with running(*arguments, *IPC, "--dir", driver) as process:
        await_counter(driver, *client, process=process, before=before)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err) == (status, b"")


def test_a_publisher_that_is_told_to_end_says_how_far_it_came(driver: Path) -> None:
    with running("subscribe", *IPC, "--dir", driver) as subscriber:
        assert subscriber.stdout is not None
        slowly = ["--message", "one", "--message", "two", "--rate", 0.001]
        with running("publish", *slowly, *IPC, "--dir", driver) as process:
            assert subscriber.stdout.readline() == b"one\n"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert err.startswith(b"ended by a signal; sent 1 message"), err


def test_ping_meets_pong(driver: Path) -> None:
    with running("pong", "--dir", driver, *IPC, "--pong-channel", "aeron:ipc"):
        ping = ["ping", "--dir", driver, *IPC, "--pong-channel", "aeron:ipc", "-n", 200, "-w", 10]
        status, out, err = run(*ping, "--json")
        shown = run(*ping)[1]
    assert (status, err) == (0, b"")
    measured = json.loads(out)
    assert measured["count"] == 200
    assert 0 < measured["p50_ns"] <= measured["p99_ns"] <= measured["p100_ns"]
    assert b"99.99" in shown


def first_line_at_a_terminal(*arguments: object) -> bytes:
    """What a command that waits says first on a stderr that is a terminal."""
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb") as terminal:
        process = subprocess.Popen(
            command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs
        )
        os.close(theirs)
        try:
            return terminal.readline().strip()
        finally:
            process.kill()
            process.wait()


def test_ping_says_at_a_terminal_whom_it_waits_for(driver: Path) -> None:
    ping = ["ping", "--dir", driver, *IPC, "--pong-channel", "aeron:ipc", "--stream", 71]
    assert first_line_at_a_terminal(*ping) == b"waiting for `headrace pong` on aeron:ipc stream 71"


def test_publish_says_at_a_terminal_for_what_and_until_when_it_waits(driver: Path) -> None:
    publish = ["publish", "-m", "x", "--dir", driver, *IPC, "-s", 72, "--timeout", 3600]
    told = first_line_at_a_terminal(*publish)
    stream = rb"channel=aeron:ipc stream_id=72"
    assert re.search(rb"waiting until \d\d:\d\d:\d\d for a subscriber: " + stream, told), told


def test_publish_says_that_its_subscriber_left(driver: Path) -> None:
    publish = ["publish", "-", "--dir", driver, *IPC, "-s", 73, "--timeout", 1]
    with (
        headrace.connect(driver) as client,
        client.add_publication(IPC[1], 73) as same,
        client.add_subscription(IPC[1], 73) as subscription,
        subprocess.Popen(command(*publish), stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert subscription.receive(timeout_s=TIMEOUT_S) is not None
        subscription.close()
        await_true(lambda: not same.is_connected)
        _, err = process.communicate(b"two\n", timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert b"the subscriber left, and no other connected within 1 s: channel=aeron:ipc stream_id=73" in err
    assert b"sent 1 message," in err


def test_ping_and_pong_bring_their_own_drivers() -> None:
    streams = [
        "-c",
        f"aeron:udp?endpoint={free_endpoint()}",
        "--pong-channel",
        f"aeron:udp?endpoint={free_endpoint()}",
    ]
    with running("pong", "--embedded", *streams) as pong:
        status, out, err = run("ping", "--embedded", *streams, "-n", 200, "-w", 10, "--json")
        pong.send_signal(signal.SIGTERM)
        pong.communicate(timeout=TIMEOUT_S)
    assert (status, err) == (0, b"")
    assert json.loads(out)["count"] == 200
    assert pong.returncode == 0


def test_throughput_counts_what_another_process_sends(driver: Path) -> None:
    status, out, _ = run("throughput", "--dir", driver, "--seconds", 1, "--json", "--batch", "-s", 7)
    assert status == 0
    sample, closing = (json.loads(line) for line in out.splitlines())
    assert sample["messages"] > 0
    assert sample["bytes"] == 32 * sample["messages"]
    assert closing["median_messages_a_second"] > 0


def test_streams_of_a_live_driver_are_shown(driver: Path) -> None:
    with (
        running("subscribe", "--dir", driver, *UDP, "-s", 8),
        running(
            "publish", "-", "--rate", 100, "--dir", driver, *UDP, "-s", 8, stdin=b"x\n" * 10_000
        ) as publisher,
    ):
        await_counter(driver, "--type", "sub-pos", "--stream", 8, process=publisher)
        (stream,) = json.loads(run("streams", "--dir", driver, "--once", "--json", "-s", 8)[1])["streams"]
    assert stream["channel"] == UDP[1]
    assert None not in (stream["publisher_position"], stream["sender_position"], stream["receiver_position"])
    assert len(stream["readers"]) == 1


@pytest.mark.parametrize("name", ["publish", "subscribe", "ping", "pong"])
def test_no_driver_is_status_three_at_once(tmp_path: Path, name: str) -> None:
    message = ["-m", "x"] if name == "publish" else []
    status, out, err = run(name, *message, "--dir", tmp_path)
    assert (status, out) == (3, b"")
    assert b"headrace driver" in err
    FakeCnc(heartbeat_ms=-1).write(tmp_path)
    status, out, err = run(name, *message, "--dir", tmp_path)
    assert (status, out) == (3, b"")
    assert b"process 4242, has stopped" in err


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("publish",), 2, b"nothing to send"),
        (("publish", "-", "--repeat", 2), 2, b"--repeat cannot read stdin again"),
        (("publish", "no-such-file"), 2, b"no-such-file"),
        (("driver", "-D", "x"), 2, b"name=value"),
        (("driver", "-D", "aeron.term.buffer.length=1000"), 1, b"1000"),
        (("driver", "-D", "aeron.no.such.setting=1"), 1, b"aeron.no.such.setting"),
        (("driver", "-D", "aeron.threading.mode=Invoker"), 1, b"SHARED_NETWORK or SHARED for a command"),
        (("bench", "no-such-row"), 2, b"ipc-throughput"),
        (("sttat",), 2, b"did you mean `stat`?"),
        (("archive", "lst"), 2, b"did you mean `list`?"),
    ],
)
def test_mistakes_say_what_would_be_right(
    driver: Path, arguments: tuple[object, ...], status: int, text: bytes
) -> None:
    directory = (
        []
        if arguments[0] in ("bench", "sttat", "archive")
        else ["--dir", driver if arguments[0] == "publish" else fresh_directory("cli-refused")]
    )
    got, out, err = run(*arguments, *directory)
    assert (got, out) == (status, b"")
    assert text in err


def test_a_second_driver_on_a_directory_is_refused(driver: Path) -> None:
    status, _, err = run("driver", "--dir", driver)
    assert status == 1
    assert b"ctive" in err


def test_bench_measures_what_is_named() -> None:
    status, out, _ = run("bench", "driver-start", "--json")
    assert status == 0
    row = json.loads(out)
    assert (row["name"], row["unit"]) == ("driver-start", "ns")
    assert row["value"] > 0
    assert "cpu" in row["machine"]


def counters(directory: Path, *filters: object) -> dict[int, str]:
    """Labels of a driver's counters by registration id, which no two counters of a type share."""
    shown = json.loads(run("stat", "--dir", directory, "--once", "--json", *filters)[1])
    return {counter["registration_id"]: counter["label"] for counter in shown["counters"]}


def await_counter(
    directory: Path,
    *filters: object,
    process: subprocess.Popen[bytes],
    before: Container[int] = (),
) -> None:
    """Waits for a counter that was not there before, as long as the process that makes it runs."""
    deadline = time.monotonic() + TIMEOUT_S
    while all(registration_id in before for registration_id in counters(directory, *filters)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"{process.args} did not bring {filters}"
