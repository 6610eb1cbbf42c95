"""Which of several values of one setting wins: the default, the environment, `-D`, an option."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.system

# By place, the weakest first; the directory that a command says it runs in tells which place won.
PLACES = ("environment", "definition", "option")


@contextlib.contextmanager
def first_line_of(arguments: list[str], environment: dict[str, str]) -> Iterator[str]:
    """What a command says when it runs; it is stopped afterwards and must end well."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("AERON_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", *arguments],
        env=settings | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, "")
    finally:
        process.kill()
        process.communicate()


def settings(
    directory: Path, places: tuple[str, ...], name: str, option: str
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment that give the setting another value in each place."""
    arguments, environment = [], {}
    for place in places:
        value = str(directory / place)
        if place == "environment":
            environment[name.upper().replace(".", "_")] = value
        else:
            arguments += ["-D", f"{name}={value}"] if place == "definition" else [option, value]
    return arguments, environment


@pytest.mark.parametrize("places", [PLACES[:count] for count in (1, 2, 3)], ids=lambda places: places[-1])
def test_the_strongest_place_names_the_drivers_directory(tmp_path: Path, places: tuple[str, ...]) -> None:
    arguments, environment = settings(tmp_path, places, "aeron.dir", "--dir")
    with first_line_of(["driver", "-m", "SHARED", *arguments], environment) as line:
        assert f"media driver in {tmp_path / places[-1]};" in line
        assert "; threading mode " in line


@pytest.mark.parametrize("command", ["driver", "archive"])
def test_settings_for_other_programs_are_passed_over_where_that_is_asked_for(
    tmp_path: Path, command: str
) -> None:
    arguments = [command, "--dir", str(tmp_path / "driver"), "-D", "aeron.threading.mode=SHARED"]
    if command == "archive":
        arguments += ["--with-driver", "--archive-dir", str(tmp_path / "archive")]
    arguments += ["-D", "aeron.cluster.id=3", "-D", "aeron.nonsense=1"]
    refused = subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert refused.returncode == 1
    assert "aeron.cluster.id=3: is not a setting of the media driver" in refused.stderr
    with first_line_of([*arguments, "--allow-unknown"], {}) as line:
        assert "Ctrl-C ends it" in line


@pytest.mark.parametrize("places", [PLACES[:count] for count in (1, 2, 3)], ids=lambda places: places[-1])
def test_the_strongest_place_names_the_archives_directories(tmp_path: Path, places: tuple[str, ...]) -> None:
    driver, archive = tmp_path / "driver", tmp_path / "archive"
    of_driver, environment = settings(driver, places, "aeron.dir", "--dir")
    of_archive, more = settings(archive, places, "aeron.archive.dir", "--archive-dir")
    command = ["archive", "--with-driver", "-D", "aeron.threading.mode=SHARED", *of_driver, *of_archive]
    with first_line_of(command, environment | more) as line:
        assert f"archive in {archive / places[-1]}, driver in {driver / places[-1]};" in line


@pytest.mark.parametrize("places", [PLACES[:count] for count in (1, 2, 3)], ids=lambda places: places[-1])
def test_the_strongest_place_names_the_driver_of_an_archive(tmp_path: Path, places: tuple[str, ...]) -> None:
    driver = tmp_path / places[-1]
    arguments, environment = settings(tmp_path, places, "aeron.dir", "--dir")
    with (
        first_line_of(["driver", "-m", "SHARED", "--dir", str(driver)], {}),
        first_line_of(["archive", "-a", str(tmp_path / "archive"), *arguments], environment) as line,
    ):
        assert f"driver in {driver};" in line


@pytest.mark.parametrize("place", PLACES)
def test_a_control_channel_opens_the_archive_from_each_place_of_a_setting(tmp_path: Path, place: str) -> None:
    channel = "aeron:udp?endpoint=127.0.0.1:0"
    arguments = ["archive", "--with-driver", "--dir", str(tmp_path / "d"), "-a", str(tmp_path / "a")]
    environment = {}
    if place == "environment":
        environment["AERON_ARCHIVE_CONTROL_CHANNEL"] = channel
    elif place == "definition":
        arguments += ["-D", f"aeron.archive.control.channel={channel}"]
    else:
        arguments += ["--control-channel", channel]
    with first_line_of(arguments, environment):
        described = subprocess.run(
            [sys.executable, "-m", "headrace", "archive", "describe", "-a", str(tmp_path / "a")],
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"control_channel: {channel}" in described.stdout
