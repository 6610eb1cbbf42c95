"""Waiting until a message is safe: what the wait promises is in the files, here and on archives that keep copies."""

import asyncio
import contextlib
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.archive import (
    Archive,
    ArchiveError,
    ArchiveServer,
    ArchiveTimeoutError,
    DurablePublication,
    SourceLocation,
)
from headrace.archive.aio import AsyncArchive
from headrace.archive.files import ArchiveDirectory
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.system

IPC = "aeron:ipc?term-length=64k"
WAIT = {"timeout_s": TIMEOUT_S}


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    with headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as archiving:
        yield archiving


@pytest.fixture
def archive(archiving: headrace.ArchivingMediaDriver) -> Iterator[Archive]:
    with archiving.connect_archive() as archive:
        yield archive


def payloads_in(directory: Path | str, recording_id: int = 0) -> list[bytes]:
    """What a recording's files hold now, without padding."""
    with ArchiveDirectory(directory) as files:
        return [frame.payload for frame in files.frames(recording_id) if frame.header.type == 1]


def test_a_published_message_is_in_the_files_at_once(
    archiving: headrace.ArchivingMediaDriver, archive: Archive
) -> None:
    with archive.add_durable_publication(IPC, 1001) as orders:
        for number in range(200):
            position = orders.publish(b"%d" % number, **WAIT)
            assert archive.recording_position(orders.recording_id) >= position
            if number % 20 == 0:
                found = payloads_in(archiving.archive.directory, orders.recording_id)
                assert found == [b"%d" % each for each in range(number + 1)]


def test_many_are_sent_and_waited_for_together(archive: Archive) -> None:
    with archive.add_durable_publication(IPC, 1001) as orders:
        sent = [orders.publication.offer_blocking(bytes(1000)) for _ in range(500)]
        assert orders.wait_until_recorded(sent[0], **WAIT) == sent[0]
        assert orders.wait_until_recorded(**WAIT) == sent[-1]
        assert archive.recording_position(orders.recording_id) == sent[-1]


@contextlib.contextmanager
def turned(server: ArchiveServer) -> Iterator[threading.Event]:
    """Turns an archive on a thread while the event is set."""
    runs, ends = threading.Event(), threading.Event()

    def turn() -> None:
        while not ends.is_set():
            if runs.wait(0.001):
                server.do_work()

    thread = threading.Thread(target=turn)
    runs.set()
    thread.start()
    try:
        yield runs
    finally:
        ends.set()
        thread.join()


def test_the_wait_lasts_as_long_as_the_archive_does_not_record(tmp_path: Path) -> None:
    with (
        headrace.MediaDriver.embedded() as driver,
        ArchiveServer(
            driver=driver,
            aeron_directory=driver.directory,
            archive_directory=tmp_path,
            control_channel_enabled=False,
            replication_channel="aeron:udp?endpoint=127.0.0.1:0",
            is_invoked=True,
        ) as server,
        driver.connect() as client,
        turned(server) as runs,
        Archive.connect(client) as archive,
        archive.add_durable_publication(IPC, 1001) as orders,
    ):
        runs.clear()
        # A turn that had begun takes what is there.
        with contextlib.suppress(ArchiveTimeoutError):
            orders.publish(b"order", timeout_s=0.01)
        with pytest.raises(ArchiveTimeoutError, match=r"position \d+ is recorded 0 of 1 times within 0.01 s"):
            orders.publish(b"order", timeout_s=0.01)
        assert orders.publication.position is not None
        waited = threading.Thread(target=orders.wait_until_recorded, kwargs=WAIT)
        waited.start()
        runs.set()
        waited.join(TIMEOUT_S)
        assert archive.recording_position(orders.recording_id) == orders.publication.position


PROGRAM = """
import sys, headrace
with headrace.ArchivingMediaDriver.embedded(archive_directory=sys.argv[1]) as archiving:
    print(archiving.driver.directory, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("count", [1, 7, 300])
def test_what_was_published_survives_a_kill_of_driver_and_archive(tmp_path: Path, count: int) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    published = []
    try:
        directory = program.stdout.readline().strip()
        with headrace.connect(directory) as client, Archive.connect(client) as archive:
            orders = archive.add_durable_publication(IPC, 1001)
            for number in range(count):
                orders.publish(b"%d" % number * 30, **WAIT)
                published.append(b"%d" % number * 30)
            program.send_signal(signal.SIGKILL)
            program.wait(TIMEOUT_S)
            with pytest.raises((ArchiveError, headrace.HeadraceError)):
                orders.publish(b"lost", timeout_s=0.5)
    finally:
        program.kill()
        program.communicate()
        shutil.rmtree(directory)
    with headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path):
        assert payloads_in(tmp_path)[:count] == published


def test_a_wait_ends_with_the_driver_of_the_archive(tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    try:
        directory = program.stdout.readline().strip()
        with headrace.connect(directory) as client, Archive.connect(client) as archive:
            orders = archive.add_durable_publication(IPC, 1001)
            recorded = orders.publish(b"recorded", **WAIT)
            program.send_signal(signal.SIGSTOP)
            lost = orders.publication.offer_blocking(b"lost", **WAIT)
            program.send_signal(signal.SIGKILL)
            with pytest.raises(ArchiveError, match="recorded 0 of 1 times: ") as failure:
                orders.wait_until_recorded(lost, **WAIT)
            assert not isinstance(failure.value, ArchiveTimeoutError)
            assert orders.wait_until_recorded(recorded, **WAIT) == recorded
    finally:
        program.kill()
        program.communicate()
        shutil.rmtree(directory)


@pytest.fixture
def standby(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    """An archive on a driver of its own, reached over the network."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "standby", control_channel=f"aeron:udp?endpoint={free_endpoint()}"
    ) as standby:
        yield standby


@contextlib.contextmanager
def copied(
    archive: Archive, standby: headrace.ArchivingMediaDriver
) -> Iterator[tuple[DurablePublication, Archive]]:
    """A stream that both archives record from its first byte."""
    # The first archive's spy keeps the stream going when the second one is gone.
    channel = f"aeron:udp?endpoint={free_endpoint()}|term-length=64k|ssc=true"
    control = standby.archive.config.control_channel
    with Archive.connect(
        archive.client, control_channel=control, response_channel="aeron:udp?endpoint=127.0.0.1:0"
    ) as other:
        other.start_recording(channel, 1001, location=SourceLocation.REMOTE)
        with archive.add_durable_publication(channel, 1001) as orders:
            orders.add_copy(other)
            assert orders.copies == 2
            yield orders, other


def test_two_archives_have_what_was_published(
    archive: Archive, archiving: headrace.ArchivingMediaDriver, standby: headrace.ArchivingMediaDriver
) -> None:
    with copied(archive, standby) as (orders, other):
        for number in range(50):
            position = orders.publish(b"%d" % number, **WAIT)
            assert archive.recording_position(orders.recording_id) >= position
            assert other.recording_position(0) >= position
        expected = [b"%d" % number for number in range(50)]
        assert payloads_in(archiving.archive.directory, orders.recording_id) == expected
        assert payloads_in(standby.archive.directory) == expected


def test_an_archive_that_ends_is_named_and_the_others_go_on(
    archive: Archive, standby: headrace.ArchivingMediaDriver
) -> None:
    with copied(archive, standby) as (orders, other):
        orders.publish(b"both", **WAIT)
        standby.archive.close()
        await_true(lambda: not other.is_connected)
        orders.publish(b"one", copies=1, **WAIT)
        with pytest.raises(ArchiveError, match=r"1 of 2 times: recording \d+ of the archive .*gone"):
            orders.publish(b"two", **WAIT)
        orders.remove_copy(other)
        assert orders.copies == 1
        orders.publish(b"three", **WAIT)


def test_an_archive_that_came_late_has_no_copy(
    archive: Archive, standby: headrace.ArchivingMediaDriver
) -> None:
    endpoint, control = free_endpoint(), free_endpoint()
    cast = f"aeron:udp?control={control}|control-mode=dynamic"
    joined = f"aeron:udp?control={control}|endpoint={endpoint}"
    with (
        Archive.connect(
            archive.client,
            control_channel=standby.archive.config.control_channel,
            response_channel="aeron:udp?endpoint=127.0.0.1:0",
        ) as other,
        archive.client.add_subscription(f"aeron:udp?control={control}|endpoint={free_endpoint()}", 1001),
        archive.add_durable_publication(cast, 1001) as orders,
    ):
        orders.publish(b"first", **WAIT)
        other.start_recording(joined, 1001, location=SourceLocation.REMOTE)
        orders.add_copy(other)
        with pytest.raises(ArchiveError, match=r"begins at position \d+, and the stream at 0"):
            orders.publish(b"second", **WAIT)


def test_a_recording_of_another_stream_is_no_copy(
    archive: Archive, standby: headrace.ArchivingMediaDriver
) -> None:
    with Archive.connect(
        archive.client,
        control_channel=standby.archive.config.control_channel,
        response_channel="aeron:udp?endpoint=127.0.0.1:0",
    ) as other:
        begin = "init-term-id={0}|term-id={0}|term-offset=0"
        for differs, stream_id, length, term_id in (
            ("stream_id", 1002, "64k", 7),
            ("initial_term_id", 1001, "64k", 8),
            ("term_length", 1001, "128k", 7),
        ):
            channel = f"aeron:udp?endpoint={free_endpoint()}|term-length={length}|{begin.format(term_id)}"
            recording_id = len(other.list_recordings())
            other.start_recording(channel, stream_id, location=SourceLocation.REMOTE)
            with (
                archive.client.add_exclusive_publication(channel, stream_id) as longer,
                archive.add_durable_publication(f"{IPC}|{begin.format(7)}", 1001) as orders,
            ):
                position = longer.offer_blocking(bytes(1000), **WAIT)
                await_true(lambda at=position, of=recording_id: other.recording_position(of) == at)
                orders.add_copy(other, recording_id)
                with pytest.raises(
                    ArchiveError, match=f"recording {recording_id} is of another stream: it has {differs}="
                ):
                    orders.publish(b"recorded once", **WAIT)


def test_a_recording_of_an_earlier_publication_with_the_same_session_id_is_no_copy(
    archive: Archive, standby: headrace.ArchivingMediaDriver
) -> None:
    channel = f"aeron:udp?endpoint={free_endpoint()}|term-length=64k|session-id=77|ssc=true"
    with Archive.connect(
        archive.client,
        control_channel=standby.archive.config.control_channel,
        response_channel="aeron:udp?endpoint=127.0.0.1:0",
    ) as other:
        recorder = other.start_recording(channel, 1001, location=SourceLocation.REMOTE)
        with archive.client.add_exclusive_publication(channel, 1001) as earlier:
            earlier.offer_blocking(bytes(2000), **WAIT)
        await_true(lambda: [one.is_active for one in other.list_recordings()] == [False])
        other.stop_recording_subscription(recorder)
        orders = added_once_free(archive, channel, 1001)
        with orders:
            orders.add_copy(other)
            with pytest.raises(
                ArchiveTimeoutError, match=r"recorded 1 of 2 times .*has no recording of the stream"
            ):
                orders.publish(b"recorded once", timeout_s=0.5)


def added_once_free(archive: Archive, channel: str, stream_id: int) -> DurablePublication:
    """A publication with a session id that another had, once the driver has let go of that one."""
    added: list[DurablePublication] = []

    def add() -> bool:
        with contextlib.suppress(headrace.RegistrationError):
            added.append(archive.add_durable_publication(channel, stream_id))
        return bool(added)

    await_true(add)
    return added[0]


def test_an_archive_counts_once(
    archive: Archive, archiving: headrace.ArchivingMediaDriver, standby: headrace.ArchivingMediaDriver
) -> None:
    with copied(archive, standby) as (orders, other), archiving.connect_archive() as again:
        for same in (archive, again, other):
            with pytest.raises(headrace.ConfigError, match="this one already counts"):
                orders.add_copy(same)
        assert orders.copies == 2
        orders.remove_copy(other)
        orders.add_copy(other)
        orders.publish(b"both", **WAIT)


def test_an_archive_without_a_recording_is_waited_for_in_vain(
    archive: Archive, standby: headrace.ArchivingMediaDriver
) -> None:
    control = standby.archive.config.control_channel
    with (
        Archive.connect(
            archive.client, control_channel=control, response_channel="aeron:udp?endpoint=127.0.0.1:0"
        ) as other,
        archive.add_durable_publication(IPC, 1001) as orders,
    ):
        orders.add_copy(other)
        orders.publish(b"here", copies=1, **WAIT)
        with pytest.raises(ArchiveTimeoutError, match="has no recording of the stream"):
            orders.publish(b"there", timeout_s=0.3)


def test_a_recording_that_stops_is_an_error(archive: Archive) -> None:
    with (
        archive.client.add_subscription(IPC, 1001),
        archive.add_durable_publication(IPC, 1001) as orders,
    ):
        orders.publish(b"recorded", **WAIT)
        archive.stop_recording_by_id(orders.recording_id)
        await_true(lambda: archive.stop_position(orders.recording_id) is not None)
        with pytest.raises(ArchiveError, match=r"stopped at position \d+, before"):
            orders.publish(b"not recorded", **WAIT)


def test_a_counter_that_is_another_s_by_now_is_not_believed(archive: Archive) -> None:
    with (
        archive.add_durable_publication(IPC, 1001) as orders,
        archive.client.add_counter(100, b"", "x") as counter,
    ):
        counter.value = 2**62
        copy = orders._copies[0]
        assert copy._counter is not None
        own = copy._counter
        copy._counter = counter.counter_id, own[1]
        position = orders.publish(b"order", **WAIT)
        assert copy.position == position
        assert copy._counter == own


def test_coroutines_publish_and_one_that_is_cancelled_leaves_nothing_behind(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    async def publish() -> None:
        async with await AsyncArchive.connect(
            archiving.driver.connect(), message_timeout_s=TIMEOUT_S
        ) as archive:
            with await archive.add_durable_publication(IPC, 1001) as orders:
                for number in range(100):
                    await orders.publish_async(b"%d" % number, **WAIT)
                task = asyncio.create_task(orders.publish_async(b"cancelled", **WAIT))
                await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                position = await orders.wait_until_recorded_async(**WAIT)
                assert await archive.recording_position(orders.recording_id) == position
        archive.archive.client.close()

    asyncio.run(publish())


def test_arguments_that_cannot_be(archive: Archive) -> None:
    with archive.add_durable_publication(IPC, 1001) as orders:
        for copies in (0, 2, -1):
            with pytest.raises(headrace.ConfigError, match=f"copies={copies}: must be from 1 to 1"):
                orders.publish(b"", copies=copies)
        with pytest.raises(headrace.ConfigError, match="position=64: must be from 0 to 0"):
            orders.wait_until_recorded(64)
        with pytest.raises(headrace.ConfigError, match=r"must be a headrace\.Archive"):
            orders.add_copy("aeron:udp?endpoint=standby:8010")
        with pytest.raises(headrace.ConfigError, match="must be an archive that add_copy added"):
            orders.remove_copy(archive)
    with pytest.raises(headrace.PublicationClosedError):
        orders.wait_until_recorded()
    with pytest.raises(headrace.PublicationClosedError):
        orders.publish(b"late")
