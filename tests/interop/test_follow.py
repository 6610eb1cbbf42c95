"""Catching up and going live: ours on the reference's archive, and both of the reference's ways on ours."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import JavaPeer, background, fresh_directory

import headrace
from headrace.archive import Archive, ArchiveTimeoutError
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.interop

STREAM_ID = 1001
COUNT = 2000
LATER = 500
OUR_CONTROL = f"aeron:udp?endpoint={free_endpoint()}"
ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0"


def payload(number: int) -> bytes:
    """A message, each seventh of several fragments."""
    return b"%d " % number * (1 + (number % 7 == 0) * number % 700)


def publish(publication: headrace.Publication, begin: int, end: int) -> None:
    for number in range(begin, end):
        publication.offer_blocking(payload(number), timeout_s=TIMEOUT_S)


@pytest.mark.parametrize("way", ["merge", "persistent", "persistent over ipc", "persistent back"])
def test_java_catches_up_with_our_archive_and_goes_live(java: JavaPeer, tmp_path: Path, way: str) -> None:
    control = free_endpoint()
    live = f"aeron:udp?control={control}|control-mode=dynamic|endpoint=127.0.0.1:0"
    published = f"aeron:udp?control={control}|control-mode=dynamic|term-length=1m|ssc=true"
    requests, answers, replay = "aeron:ipc", "aeron:ipc", ANY_PORT
    if way == "persistent back":
        requests = OUR_CONTROL
        answers = replay = f"aeron:udp?control-mode=response|control={free_endpoint()}"
    if way == "persistent over ipc":
        live, published, replay = "aeron:ipc", "aeron:ipc?term-length=1m", "aeron:ipc"
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=tmp_path / "archive", control_channel=OUR_CONTROL
        ) as archiving,
        archiving.connect_archive() as archive,
        archive.add_recorded_publication(published, STREAM_ID) as publication,
    ):
        publish(publication, 0, COUNT)
        last = publication.session_id if way == "merge" else replay
        command = java.command(
            "ArchiveFollower",
            way.split()[0],
            archiving.directory,
            live,
            last,
            COUNT + LATER,
            requests,
            answers,
        )
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if lines[-1] == "LIVE":
                    publish(publication, COUNT, COUNT + LATER)
            assert process.wait(TIMEOUT_S) == 0, lines[-20:]
    assert lines[-1] == "DONE"
    messages = [line for line in lines[:-1] if line != "LIVE"]
    assert messages == [payload(number).decode() for number in range(COUNT + LATER)]


def test_java_is_answered_through_our_response_channels(java: JavaPeer, tmp_path: Path) -> None:
    """A session and a replay, over IPC and over UDP; the reference closes the connection of the replay at once."""
    back = f"aeron:udp?control-mode=response|control={free_endpoint()}"
    ipc = "aeron:ipc?control-mode=response"
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=tmp_path / "archive", control_channel=OUR_CONTROL
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        with archive.add_recorded_publication("aeron:ipc?term-length=1m", STREAM_ID) as publication:
            publish(publication, 0, COUNT)
        await_true(lambda: archive.stop_position(0) is not None)
        for requests, answers, replay in [("aeron:ipc", ipc, ipc), (OUR_CONTROL, back, back)]:
            command = java.command("ArchiveResponder", archiving.directory, requests, answers, replay, COUNT)
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            assert done.returncode == 0, (requests, done.stdout[-500:], done.stderr)
            expected = [payload(number).decode() for number in range(COUNT)]
            assert done.stdout.split("\n")[:-1] == [*expected, "DONE"], requests


@pytest.fixture
def java_archive(java: JavaPeer, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Driver directory and control channel of a running, unmodified Java archive."""
    directory, archive_directory = fresh_directory("interop-follow"), tmp_path / "java-archive"
    control = f"aeron:udp?endpoint={free_endpoint()}"
    properties = {
        "aeron.dir": str(directory),
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(archive_directory),
        "aeron.archive.control.channel": control,
        "aeron.archive.replication.channel": ANY_PORT,
    }
    command = java.command("io.aeron.archive.ArchivingMediaDriver", properties=properties)
    with background(command, ready=archive_directory / "archive-mark.dat"):
        yield directory, control


@pytest.mark.parametrize("transport", ["ipc", "udp", "back"])
def test_ours_catches_up_with_the_java_archive_and_goes_live(
    java_archive: tuple[Path, str], transport: str
) -> None:
    directory, control = java_archive
    cast = free_endpoint()
    channel = f"aeron:udp?control={cast}|control-mode=dynamic|term-length=1m|ssc=true"
    far = {"control_channel": control, "response_channel": ANY_PORT}
    back = {
        "control_channel": control,
        "response_channel": f"aeron:udp?control-mode=response|control={free_endpoint()}",
    }
    settings = {"ipc": {}, "udp": far, "back": back}[transport]
    live = f"aeron:udp?control={cast}|control-mode=dynamic|endpoint=127.0.0.1:0"
    with (
        headrace.Client.connect(directory=directory) as client,
        Archive.connect(client) as archive,
        Archive.connect(client, **settings) as session,  # type: ignore[arg-type]
        archive.add_recorded_publication(channel, STREAM_ID) as publication,
        session.follow(0, live_channel=live, live_stream_id=STREAM_ID) as follow,
    ):
        publish(publication, 0, COUNT)
        taken = 0

        def take(end: int) -> None:
            nonlocal taken
            while taken < end:
                message = follow.receive(TIMEOUT_S)
                assert message is not None
                assert message.payload == payload(taken)
                taken += 1

        def is_live() -> bool:
            assert follow.poll_message() is None
            return follow.is_live

        take(COUNT)
        await_true(is_live)
        for end in (COUNT + LATER, COUNT + 2 * LATER):
            publish(publication, end - LATER, end)
            take(end)
            source = follow._follower.source
            assert source is not None
            assert source.image is not None
            source.image.reject("a fault")
            await_true(lambda: not follow.is_live or is_live())
        publication.close()
        await_true(lambda: archive.stop_position(0) == follow.position)


def test_the_java_archive_leaves_a_declaration_unanswered_and_its_session_goes_on(
    java_archive: tuple[Path, str],
) -> None:
    directory, _ = java_archive
    with (
        headrace.Client.connect(directory=directory) as client,
        Archive.connect(client, message_timeout_s=2.0) as archive,
    ):
        with pytest.raises(ArchiveTimeoutError, match="did not answer"):
            archive.declare("trades", "aeron:ipc", STREAM_ID)
        assert archive.list_recordings() == []
