"""Each wrong setting gives an error that names the setting, the value and the rule, and leaves no file."""

import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import fresh_directory

import headrace
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def driver() -> Iterator[headrace.MediaDriver]:
    """One driver for all refusals: none of them may harm it."""
    with headrace.MediaDriver(
        directory=fresh_directory("settings"), threading_mode="SHARED", dir_delete_on_shutdown=True
    ) as driver:
        yield driver


@pytest.fixture
def client(driver: headrace.MediaDriver) -> Iterator[headrace.Client]:
    """A client of that driver."""
    with headrace.Client.connect(directory=driver.directory) as client:
        yield client


PUBLICATION_REFUSALS = {
    "term length not a power of two": ("aeron:ipc?term-length=100000", ["term-length", "100000", "power of"]),
    "term length too small": ("aeron:ipc?term-length=4k", ["term", "4096", "65536"]),
    "term length too large": ("aeron:ipc?term-length=2g", ["term", "2147483648"]),
    "MTU above the limit": ("aeron:udp?endpoint=127.0.0.1:24651|mtu=70000", ["mtu", "70000", "65504"]),
    "MTU not a multiple of 32": ("aeron:udp?endpoint=127.0.0.1:24651|mtu=1400", ["mtu", "1400", "multiple"]),
    "unknown media": ("aeron:tcp?endpoint=127.0.0.1:24651", ["tcp"]),
    "no scheme": ("udp://127.0.0.1:24651", ["Aeron URIs must start with"]),
    "no endpoint": ("aeron:udp?term-length=64k", ["endpoint"]),
    "port 0": ("aeron:udp?endpoint=127.0.0.1:0", ["endpoint has port=0 for publication"]),
    "name that does not resolve": (
        "aeron:udp?endpoint=does-not-exist.invalid:24651",
        ["unknown host", "endpoint=does-not-exist.invalid:24651"],
    ),
    "response channel": (
        "aeron:udp?control-mode=response|control=127.0.0.1:24651",
        ["control-mode=response"],
    ),
    "dynamic destinations without control": ("aeron:udp?control-mode=dynamic", ["control", "dynamic"]),
    "flow control strategy": ("aeron:udp?endpoint=localhost:24651|fc=min", ["fc"]),
    "publication window": ("aeron:ipc?term-length=64k|pub-wnd=64k", ["pub-wnd", "65536"]),
    "half an initial position": (
        "aeron:ipc?init-term-id=1|term-id=2",
        ["params must be used as a complete set"],
    ),
}


@pytest.mark.parametrize("case", PUBLICATION_REFUSALS)
def test_a_wrong_publication_channel_is_refused_in_words(
    driver: headrace.MediaDriver, client: headrace.Client, case: str
) -> None:
    """No log file and no counter remains."""
    channel, words = PUBLICATION_REFUSALS[case]
    logs = Path(driver.directory) / "publications"
    counters_before = {record.counter_id for record in client.counters if record.type_id not in (0, 11)}
    with pytest.raises(headrace.RegistrationError) as refusal:
        client.add_publication(channel, 1)
    for word in words:
        assert word in str(refusal.value), str(refusal.value)
    assert not any(logs.iterdir())
    assert {
        record.counter_id for record in client.counters if record.type_id not in (0, 11)
    } == counters_before


def test_a_port_in_use_is_refused_by_name(client: headrace.Client) -> None:
    """The system's reason and the channel are in the text."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        channel = f"aeron:udp?endpoint=127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(headrace.RegistrationError, match="in use") as refusal:
            client.add_subscription(channel, 1)
        assert channel in str(refusal.value)


def test_an_address_of_another_machine_is_refused_by_name(client: headrace.Client) -> None:
    """192.0.2.0/24 is reserved for documentation, so no machine has it."""
    channel = "aeron:udp?endpoint=192.0.2.1:24652"
    with pytest.raises(headrace.RegistrationError, match=r"192\.0\.2\.1:24652"):
        client.add_subscription(channel, 1)


def test_an_unknown_parameter_is_ignored_as_aeron_does(client: headrace.Client) -> None:
    """The grammar keeps unknown keys; programs use them for notes."""
    with client.add_publication("aeron:ipc?colour=blue", 1) as publication:
        assert "colour=blue" in publication.channel


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"term_buffer_length": 100_000}, ["term", "100000", "power of"]),
        ({"mtu_length": 70_000}, ["mtu", "70000", "65504"]),
        ({"threading_mode": "TURBO"}, ["threading", "TURBO", "DEDICATED"]),
        ({"properties": {"aeron.client.liveness.timeout": "1ms"}}, ["liveness", "timer"]),
        ({"properties": {"aeron.conductor.idle.strategy": "nap"}}, ["idle", "nap"]),
    ],
)
def test_a_wrong_driver_setting_starts_nothing(
    tmp_path: Path, settings: dict[str, object], words: list[str]
) -> None:
    """Checked before anything is created."""
    directory = tmp_path / "driver"
    with pytest.raises(headrace.ConfigError) as refusal:
        headrace.MediaDriver(directory=directory, **settings)  # type: ignore[arg-type]
    for word in words:
        assert word in str(refusal.value), str(refusal.value)
    assert not directory.exists()


def test_an_unknown_property_is_refused(tmp_path: Path) -> None:
    """A misspelled property would otherwise be a setting silently lost."""
    with pytest.raises(headrace.ConfigError, match=r"aeron\.term\.bufer\.length"):
        headrace.MediaDriver(directory=tmp_path / "driver", properties={"aeron.term.bufer.length": "64k"})


def test_a_directory_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    """Even root cannot make a directory below a file."""
    file = tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises(headrace.HeadraceError, match=str(file)):
        headrace.MediaDriver(directory=file / "driver")


LAUNCH_AS_ANOTHER_USER = """
import getpass, os, pwd, sys, tempfile, headrace, headrace.archive.server
launches = {
    "driver": lambda directory: headrace.MediaDriver(directory=directory),
    "archive": lambda directory: headrace.ArchiveServer(archive_directory=directory, control_channel_enabled=False),
}
launch = launches[sys.argv[1]]
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    launch(sys.argv[2])
except headrace.HeadraceError as refusal:
    print(refusal)
else:
    sys.exit("it started where nothing may be written")
"""


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("launched", ["driver", "archive"])
def test_a_directory_not_writable_is_refused_by_name_and_with_what_to_do(
    launched: str, is_there: bool
) -> None:
    """Root may write anywhere, so root becomes another user, after importing what only root may be able to read."""
    with tempfile.TemporaryDirectory(dir="/tmp") as parent:
        directory = Path(parent) / "launched"
        if is_there:
            directory.mkdir(mode=0o555)
        Path(parent).chmod(0o555)
        command = [sys.executable, "-c", LAUNCH_AS_ANOTHER_USER, launched, directory]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        assert str(directory) in finished.stdout
        assert "Permission denied" in finished.stdout
        assert re.search("name (one|another directory)", finished.stdout), finished.stdout
        assert directory.exists() == is_there
        assert not is_there or not list(directory.iterdir())


def test_an_active_directory_is_not_taken_over(driver: headrace.MediaDriver) -> None:
    """Two drivers on one directory would corrupt each other."""
    with pytest.raises(headrace.HeadraceError, match=r"[Aa]ctive"):
        headrace.MediaDriver(directory=driver.directory)
