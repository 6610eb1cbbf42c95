"""`headrace archive replicate`: what it says and does."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import headrace
from headrace.archive import RecordingSignal, extension_channel
from tests.cli.test_archive import run
from tests.ports import free_endpoint

pytestmark = pytest.mark.system

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 7
END = 100 * 1024


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[headrace.ArchivingMediaDriver, headrace.ArchivingMediaDriver]]:
    """An archive with a stopped recording, and an archive without any."""
    with ExitStack() as stack:
        source, standby = (
            stack.enter_context(
                headrace.ArchivingMediaDriver.embedded(
                    archive_directory=tmp_path / name,
                    segment_file_length=64 * 1024,
                    control_channel=f"aeron:udp?endpoint={free_endpoint()}",
                    replication_channel="aeron:udp?endpoint=127.0.0.1:0",
                )
            )
            for name in ("source", "standby")
        )
        publish(source, CHANNEL, is_new=True)
        yield source, standby


def publish(source: headrace.ArchivingMediaDriver, channel: str, *, is_new: bool) -> None:
    """A hundred messages that take 1 KiB each, recorded to the end."""
    with source.connect_archive() as archive:
        with archive.client.add_exclusive_publication(channel, STREAM_ID) as publication:
            if is_new:
                archive.start_recording(CHANNEL, STREAM_ID, auto_stop=True)
            else:
                archive.extend_recording(0, CHANNEL, STREAM_ID, auto_stop=True)
            for _ in range(100):
                publication.offer_blocking(bytes(1024 - 32))
        archive.await_signal(RecordingSignal.STOP)


def test_a_recording_is_copied_and_the_copy_goes_on(
    places: tuple[headrace.ArchivingMediaDriver, headrace.ArchivingMediaDriver],
) -> None:
    """What it would do, what it does, and where the copy ends."""
    source, standby = places
    control = source.archive.config.control_channel
    where = ("-d", standby.directory)
    would = run("replicate", 0, control, "--dry-run", *where).stdout
    assert would == (
        f"would copy positions 0 to {END}, 100.0 KiB, of recording 0 at {control} into a new recording\n"
    )
    said = run("replicate", 0, control, *where).stdout.splitlines()
    assert said[0] == "replicate recording 0 at position 0, 0 B"
    assert f"sync recording 0 at position {END}, 100.0 KiB" in said
    assert said[-1] == f"recording 0 is a copy of 0, and ends at position {END}"
    with source.connect_archive() as archive:
        channel = extension_channel(CHANNEL, archive.list_recordings()[0])
    publish(source, channel, is_new=False)
    would = run("replicate", 0, control, "--into", 0, "-n", *where).stdout
    assert f"would copy positions {END} to {2 * END}, " in would
    assert would.endswith(" into recording 0\n")
    lines = run("replicate", 0, control, "--into", 0, "--json", *where).stdout.splitlines()
    signals = [json.loads(line) for line in lines]
    assert {"signal": "SYNC", "recording_id": 0, "position": 2 * END} in signals
    assert "recording 0: OK" in run("verify", "-a", standby.archive.directory, "--thorough").stdout


def test_what_is_refused_is_said_in_one_line(
    places: tuple[headrace.ArchivingMediaDriver, headrace.ArchivingMediaDriver],
) -> None:
    """With the status of a failure."""
    source, standby = places
    control = source.archive.config.control_channel
    where = ("-d", standby.directory)
    refused = {
        ("replicate", 9, control): "unknown src recording id 9",
        ("replicate", 9, control, "--dry-run"): "unknown recording id: 9",
        ("replicate", 0, control, "--into", 5): "unknown destination recording id 5",
        ("replicate", 0, "aeron:tcp"): "the media is ipc or udp",
    }
    for command, words in refused.items():
        stderr = run(*command, *where, status=1).stderr
        assert words in stderr, command
        assert "Traceback" not in stderr
