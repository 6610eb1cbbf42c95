"""What a command finds around it: encodings, closed streams, files that are something else. None is a traceback."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.system

IPC = "aeron:ipc"
NO_TIMES = [2**63 - 1, 10**17, 253_402_300_800_000]


def run(
    *arguments: object, stdin: int | None = subprocess.DEVNULL, **environment: str
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "headrace", *map(os.fspath, arguments)],
        stdin=stdin,
        capture_output=True,
        env={**os.environ, **environment},
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def client() -> Iterator[headrace.Client]:
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver, driver.connect() as client:
        yield client


def test_a_message_of_the_command_line_is_sent_as_it_was_typed(client: headrace.Client) -> None:
    with client.add_subscription(IPC, 1) as subscription:
        typed = ["publish", "-m", b"caf\xe9", "-m", "café", "--dir", client.directory, "-c", IPC, "-s", "1"]
        status, _, err = run(*typed, PYTHONUTF8="1")
        assert (status, b"Traceback" in err) == (0, False), err
        received = [subscription.receive(timeout_s=TIMEOUT_S) for _ in range(2)]
    assert [message and message.payload for message in received] == [b"caf\xe9", "café".encode()]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_text_outside_of_the_encoding_of_stdout_is_escaped(
    client: headrace.Client, encoding: str, form: list[str]
) -> None:
    text = "café 12 €"
    with client.add_exclusive_publication(IPC, 2) as publication:
        command = [sys.executable, "-m", "headrace", "subscribe", "--dir", client.directory]
        with subprocess.Popen(
            [*command, "-c", IPC, "-s", "2", "-n", "1", *form],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            publication.offer_blocking(text.encode(), timeout_s=TIMEOUT_S)
            out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err) == (0, b"")
    if form:
        assert json.loads(out.decode(encoding))["text"] == text
    else:
        assert out.decode(encoding) == text.encode(encoding, "backslashreplace").decode(encoding) + "\n"


@pytest.mark.parametrize("name", ["stat", "streams", "errors", "loss"])
def test_a_table_is_shown_where_stdin_is_closed(driver_directory: Path, name: str) -> None:
    line = f'exec "$0" -m headrace {name} --dir "$1" <&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, driver_directory],
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert str(driver_directory).encode() in done.stdout.splitlines()[0]


def test_a_secret_is_not_asked_for_where_stdin_is_closed(tmp_path: Path) -> None:
    line = 'exec "$0" -m headrace archive users add "$1" alice <&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, tmp_path / "users"],
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"error: stdin is closed: the secret cannot be read from it\n"
    assert not (tmp_path / "users").exists()


@pytest.mark.parametrize("moment", NO_TIMES)
def test_a_moment_in_a_file_that_is_no_error_log_is_shown_as_its_number(tmp_path: Path, moment: int) -> None:
    file = tmp_path / "mark.dat"
    file.write_bytes(struct.pack("<iiqq", 28, 1, moment, moment) + b"what".ljust(40, b"\0"))
    status, out, err = run("errors", "--file", file, "--once")
    assert (status, err) == (0, b"")
    assert str(moment).encode() in out
    assert b"what" in out
