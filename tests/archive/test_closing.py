"""What closing leaves and ends: nothing that is mapped, no stream, and what was being read."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from benches.processes import fresh_directory

import headrace
from headrace.archive import Follow, RecordingSignal, Replay, Signal
from headrace.archive.aio import AsyncArchive, AsyncReplay
from headrace.testing import ManualClock
from tests.archive.fakes import FakePublication
from tests.archive.streams import frames
from tests.archive.test_sessions import replay, stored
from tests.helpers import TIMEOUT_S, await_true


def mapped(directory: Path) -> list[str]:
    """Files of the directory, but for the event log, which the tests themselves keep open for their reports."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if str(directory) in line and "events.dat" not in line]


def test_a_closed_archive_keeps_no_file_of_its_driver_mapped(tmp_path: Path) -> None:
    directory = fresh_directory("closing")
    with (
        headrace.MediaDriver.embedded(directory=directory) as driver,
        headrace.ArchiveServer(
            archive_directory=tmp_path, driver=driver, control_channel_enabled=False
        ) as server,
    ):
        assert not server.is_closed
        assert mapped(directory)
    del driver, server
    gc.collect()
    assert mapped(directory) == []


def test_a_handler_that_holds_its_client_keeps_nothing_of_it_once_it_is_closed() -> None:
    directory = fresh_directory("closing")
    held: list[object] = []
    with headrace.MediaDriver.embedded(directory=directory) as driver:
        with driver.connect(on_error=held.append, on_available_image=held.append) as client:
            held.append(client)
        del client
    del driver, held
    gc.collect()
    assert mapped(directory) == []


def test_a_subscription_whose_handler_holds_the_client_keeps_nothing_of_it_once_the_client_is_closed() -> (
    None
):
    directory = fresh_directory("closing")
    held: list[object] = []
    with (
        headrace.MediaDriver.embedded(directory=directory) as driver,
        driver.connect() as client,
        client.add_subscription("aeron:ipc", 10, on_available_image=held.append) as subscription,
        client.add_publication("aeron:ipc?term-length=64k", 10),
    ):
        held.extend([client, subscription])
    del driver, client, subscription, held
    gc.collect()
    assert mapped(directory) == []


def test_a_crashed_node_keeps_nothing_of_its_clients() -> None:
    held: list[object] = []
    with headrace.testing.World(seed=1) as world:
        node = world.add_node("alpha")
        client = node.connect(on_error=held.append)
        held.append(client)
        directory = node.directory
        node.crash()
        del client, held
        gc.collect()
        assert mapped(Path(directory)) == []


def test_an_archive_that_nothing_holds_is_gone_with_its_client() -> None:
    with headrace.testing.World(seed=1) as world:
        node = world.add_node("alpha")
        server = headrace.ArchiveServer(
            driver=node, is_invoked=True, storage=node.disk(), control_channel_enabled=False
        )
        held = [server]
        node.run(lambda: held[0].do_work() if held else 0)
        client = node.connect()
        archive = headrace.Archive.connect(client, control_channel="aeron:ipc", response_channel="aeron:ipc")
        publication = client.add_publication("aeron:ipc?term-length=64k", 7)
        archive.start_recording("aeron:ipc?term-length=64k", 7)
        publication.offer_blocking(b"one", timeout_s=TIMEOUT_S)
        world.run_until(lambda: list(archive.list_recordings()), within_s=TIMEOUT_S, what="a recording")
        seen = weakref.ref(server._recordings)
        del server
        held.clear()
        gc.collect()
        assert seen() is None


def test_another_thread_may_close_a_replay(tmp_path: Path) -> None:
    """Its reader comes to an end, wherever it is."""
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path) as archiving,
        archiving.connect_archive() as archive,
        archive.add_recorded_publication("aeron:ipc?term-length=64k", 7) as publication,
    ):
        for number in range(100):
            publication.offer_blocking(b"%d" % number, timeout_s=TIMEOUT_S)
        for wanted in [0, 1, 50, 100] * 10:
            replay, read, ends = archive.replay(0), list[bytes](), list[object]()

            def run(replay: Replay = replay, read: list[bytes] = read, ends: list[object] = ends) -> None:
                try:
                    for message in replay:
                        read.append(message.payload)
                    ends.append("over")
                except BaseException as failure:
                    ends.append(failure)

            reader = threading.Thread(target=run)
            reader.start()
            await_true(lambda read=read, wanted=wanted: len(read) >= wanted)
            replay.close()
            reader.join(TIMEOUT_S)
            assert ends == ["over"]


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    with headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as archiving:
        yield archiving


def recorded(archive: headrace.Archive, count: int) -> int:
    """A recording of so many messages, which has stopped."""
    with archive.add_recorded_publication("aeron:ipc?term-length=64k", 7) as publication:
        for number in range(count):
            publication.offer_blocking(b"%d" % number, timeout_s=TIMEOUT_S)
    return archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S).recording_id


def test_a_replay_goes_on_to_its_end_without_its_session(archiving: headrace.ArchivingMediaDriver) -> None:
    with archiving.connect() as client:
        with archiving.connect_archive(client) as archive:
            replay = archive.replay(recorded(archive, 100))
        assert [message.payload for message in replay] == [b"%d" % number for number in range(100)]
        replay.close()


def test_a_closed_session_gives_what_it_has_heard_and_no_more(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    with archiving.connect() as client:
        with archiving.connect_archive(client) as archive:
            recorded(archive, 1)
        assert RecordingSignal.START in [one.signal for one in archive.take_signals()]
        assert archive.poll() == 0
        with pytest.raises(headrace.ArchiveError, match="session with the archive is closed"):
            archive.await_signal(RecordingSignal.DELETE)


def test_a_handler_of_a_signal_may_close_the_session(archiving: headrace.ArchivingMediaDriver) -> None:
    told: list[Signal] = []

    def close(signal: Signal) -> None:
        told.append(signal)
        archive.close()

    with archiving.connect() as client:
        archive = archiving.connect_archive(client, on_signal=close)
        archive.start_recording("aeron:ipc?term-length=64k", 7)
        with client.add_publication("aeron:ipc?term-length=64k", 7):
            await_true(lambda: archive.poll() >= 0 and archive.is_closed)
    assert [one.signal for one in told] == [RecordingSignal.START]


def test_a_time_out_that_a_handler_raises_is_not_taken_for_that_of_the_signal(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    async def play() -> None:
        def refuse(signal: Signal) -> None:
            raise TimeoutError("the handler's own")

        async with await AsyncArchive.connect(driver=archiving.driver, on_signal=refuse) as archive:
            await archive.start_recording("aeron:ipc?term-length=64k", 7)
            with archive.archive.client.add_publication("aeron:ipc?term-length=64k", 7):
                await archive.await_signal(RecordingSignal.START, timeout_s=TIMEOUT_S)

    with pytest.raises(TimeoutError, match="the handler's own"):
        asyncio.run(play())


def test_a_signal_is_awaited_as_long_as_was_said(archiving: headrace.ArchivingMediaDriver) -> None:
    async def play() -> None:
        async with await AsyncArchive.connect(driver=archiving.driver) as archive:
            with pytest.raises(headrace.archive.ArchiveTimeoutError, match="no signal DELETE within 0 s"):
                await archive.await_signal(RecordingSignal.DELETE, timeout_s=0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(archive.await_signal(RecordingSignal.DELETE, timeout_s=math.inf), 0.05)

    asyncio.run(play())


def test_another_coroutine_may_close_a_replay(archiving: headrace.ArchivingMediaDriver) -> None:
    async def play() -> list[bytes]:
        async with await AsyncArchive.connect(driver=archiving.driver) as archive:
            publication = await archive.add_recorded_publication("aeron:ipc?term-length=64k", 7)
            await publication.offer_async(b"first")
            replay, read = await archive.replay(0), list[bytes]()
            is_reading = asyncio.Event()

            async def run() -> None:
                async for message in replay:
                    read.append(message.payload)
                    is_reading.set()

            async with asyncio.timeout(TIMEOUT_S):
                reader = asyncio.create_task(run())
                await is_reading.wait()
                await replay.close()
                await reader
                assert [message async for message in replay] == []
            return read

    assert asyncio.run(play()) == [b"first"]


@pytest.mark.parametrize("is_followed", [False, True], ids=["replay", "follow"])
def test_other_coroutines_run_while_what_has_come_is_read(
    archiving: headrace.ArchivingMediaDriver, is_followed: bool
) -> None:
    count, turns = 500, 0
    with archiving.connect_archive() as archive:
        recording_id = recorded(archive, count)

    def is_all_there(messages: AsyncReplay | Follow) -> bool:
        """Whether the reader would find each message without a wait."""
        if isinstance(messages, AsyncReplay):
            image = messages.replay.image
        else:
            source = messages._follower.source
            image = None if source is None else source.image
        return image is not None and image.end_of_stream_position is not None

    async def run() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def play() -> None:
        nonlocal turns
        async with await AsyncArchive.connect(driver=archiving.driver) as archive:
            if is_followed:
                messages: AsyncReplay | Follow = archive.follow(recording_id)
            else:
                messages = await archive.replay(recording_id)
            async with asyncio.timeout(TIMEOUT_S), messages:
                await anext(aiter(messages))
                other = asyncio.create_task(run())
                while not is_all_there(messages):  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0)
                turns = 0
                for _ in range(count - 1):
                    await anext(aiter(messages))
                assert turns > 0
                other.cancel()

    asyncio.run(play())


def test_a_replay_whose_file_cannot_be_closed_is_taken_away_from_its_subscriber(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, publication = ManualClock(), FakePublication()
    data = frames(0, 10, 96)
    session = replay(stored(data), clock, publication, FakePublication(), 0, len(data), len(data))
    session.do_work()
    assert session._file is not None
    monkeypatch.setattr(type(session._file), "close", Mock(side_effect=OSError("the disk refuses")))
    with pytest.raises(OSError, match="the disk refuses"):
        session.close()
    assert publication.events == ["revoke", "close"]
