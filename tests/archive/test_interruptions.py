"""What interrupts a reader of a replay: pauses, time-outs, Ctrl-C and the end of its client. None loses a message."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import aio
from headrace.archive import RecordingSignal, Replay
from headrace.archive.aio import AsyncArchive
from tests.helpers import TIMEOUT_S, await_true

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 1001
MESSAGES = [b"first", b"second", b"third"]

pytestmark = pytest.mark.system


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    """An archive, and a driver of its own."""
    with headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as archiving:
        yield archiving


def test_an_awaited_replay_of_an_active_recording_waits_through_pauses_and_time_outs(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    """It ends when the recording does; what is published after a pause, or after a time-out, still comes."""

    async def play() -> list[bytes]:
        received = []
        async with await AsyncArchive.connect(driver=archiving.driver) as archive:
            publication = await archive.add_recorded_publication(CHANNEL, STREAM_ID)
            await publication.offer_async(b"before")
            recording_id = (await archive.list_recordings())[-1].recording_id
            async with await archive.replay(recording_id) as replay:
                received.append((await anext(replay)).payload)
                # Longer than the replay waits for between two looks at its end.
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(replay), 0.2)
                await publication.offer_async(b"after a pause")
                received.append((await anext(replay)).payload)
                publication.close()
                received += [message.payload async for message in replay]
        return received

    assert asyncio.run(play()) == [b"before", b"after a pause"]


def test_awaited_requests_and_replays_start_no_thread(
    archiving: headrace.ArchivingMediaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop's own thread does all, from the connection to its end."""

    def refuse(thread: threading.Thread) -> None:
        raise AssertionError(f"{thread.name} was started")

    async def play() -> list[bytes]:
        async with await aio.connect(driver=archiving.driver) as client:
            with monkeypatch.context() as patch:
                patch.setattr(threading.Thread, "start", refuse)
                async with await AsyncArchive.connect(client) as archive:
                    publication = await archive.add_recorded_publication(CHANNEL, STREAM_ID)
                    for message in MESSAGES:
                        await publication.offer_async(message)
                    publication.close()
                    recording_id = (await archive.await_signal(RecordingSignal.STOP)).recording_id
                    assert await archive.find_recording(recording_id) is not None
                    assert await archive.stop_position(recording_id) == 3 * 64
                    async with await archive.replay(recording_id) as replay:
                        return [message.payload async for message in replay]

    assert asyncio.run(play()) == MESSAGES


Asked = Callable[[AsyncArchive], Coroutine[Any, Any, object]]


@pytest.mark.parametrize(
    "request_of",
    [
        AsyncArchive.list_recordings,
        lambda archive: archive.add_recorded_publication(CHANNEL, STREAM_ID),
        lambda archive: archive.start_recording(CHANNEL, STREAM_ID),
    ],
    ids=["list", "recorded publication", "recording"],
)
def test_an_awaited_request_that_is_cancelled_leaves_nothing_behind(
    tmp_path: Path, request_of: Asked
) -> None:
    """Its answer comes too late; the next request gets its own, and what was begun is taken back."""

    async def play() -> None:
        with (
            headrace.MediaDriver.embedded() as driver,
            headrace.ArchiveServer(
                driver=driver, archive_directory=tmp_path, control_channel_enabled=False, is_invoked=True
            ) as server,
        ):
            stop = asyncio.Event()

            async def serve() -> None:
                while not stop.is_set():
                    server.do_work()
                    await asyncio.sleep(0.001)

            async with await aio.connect(driver=driver) as client:
                serving = asyncio.create_task(serve())
                archive = await AsyncArchive.connect(client)
                stop.set()
                await serving
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(request_of(archive), 0.1)
                assert archive.archive._exchanges == []
                stop.clear()
                serving = asyncio.create_task(serve())
                async with asyncio.timeout(TIMEOUT_S):
                    assert await archive.list_recordings() == []
                    while await archive.list_recording_subscriptions():
                        pass
                    await archive.close()
                stop.set()
                await serving

    asyncio.run(play())


class SilentArchive:
    """An archive, on a driver of its own, that does its work only while it is :meth:`working`."""

    def __init__(self, directory: Path) -> None:
        self.driver = headrace.MediaDriver.embedded()
        self.server = headrace.ArchiveServer(
            driver=self.driver, archive_directory=directory, control_channel_enabled=False, is_invoked=True
        )

    def __enter__(self) -> SilentArchive:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()
        self.driver.close()

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                self.server.do_work()
                stop.wait(0.001)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield
        finally:
            stop.set()
            worker.join()


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[SilentArchive]:
    with SilentArchive(tmp_path / "archive") as silent:
        yield silent


def test_awaited_requests_to_a_silent_archive_wait_side_by_side(silent: SilentArchive) -> None:
    """Each for its time-out from when it was asked, and not for the time-outs of those before it."""

    async def ask() -> list[object]:
        with silent.working():
            archive = await AsyncArchive.connect(driver=silent.driver)
        # Not before: on a busy machine the connection may take longer. Nor may this be over before the first is sent.
        archive.archive._timeout_s = 2.0
        asked = [archive.find_recording(0) for _ in range(4)]
        failures: list[object] = list(await asyncio.gather(*asked, return_exceptions=True))
        await archive.close()
        return failures

    first, *_, last = asyncio.run(ask())
    assert isinstance(first, headrace.ArchiveTimeoutError)
    assert "was not sent" not in str(first)
    assert isinstance(last, headrace.ArchiveTimeoutError)
    assert "was not sent" in str(last)


def test_a_blocking_request_waits_for_its_turn_no_longer_than_for_its_answer(silent: SilentArchive) -> None:
    with silent.working():
        archive = headrace.Archive.connect(driver=silent.driver)
    archive._timeout_s = 0.5
    refusals = []

    def ask() -> None:
        try:
            archive.find_recording(0)
        except headrace.ArchiveTimeoutError as refusal:
            refusals.append(str(refusal))

    asking = threading.Thread(target=ask)
    with archive, archive._lock:
        asking.start()
        asking.join(TIMEOUT_S)
        assert not asking.is_alive()
    assert "was not sent" in refusals[0]


def test_ctrl_c_during_a_request_to_record_leaves_no_recording(silent: SilentArchive) -> None:
    """Also when the program ends the session next: closing waits for the answer, and stops what was begun."""
    with silent.working():
        archive = headrace.Archive.connect(driver=silent.driver)

    def interrupt() -> None:
        await_true(lambda: bool(archive._exchanges) and archive._exchanges[0].is_waiting)
        signal.raise_signal(signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        archive.start_recording(CHANNEL, STREAM_ID)
    interrupter.join()
    with silent.working():
        archive.close()
        with headrace.Archive.connect(driver=silent.driver) as another:
            await_true(lambda: another.list_recording_subscriptions() == [])


def test_requests_to_an_archive_that_is_gone_fail_without_a_wait(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    """Each would hold the turn for its time-out otherwise, and the last of many wait for all."""

    async def play() -> list[object]:
        async with await AsyncArchive.connect(driver=archiving.driver) as archive:
            archiving.archive.close()
            await asyncio.to_thread(await_true, lambda: not archive.archive._subscription.is_connected)
            return list(
                await asyncio.gather(*(archive.find_recording(0) for _ in range(3)), return_exceptions=True)
            )

    assert [str(one) for one in asyncio.run(play())] == ["the archive is gone"] * 3


def test_an_archive_whose_client_the_program_has_closed_is_not_said_to_be_gone(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    """By no request, replay or wait of the session."""
    client = archiving.connect()
    archive = headrace.Archive.connect(client)
    with archive.add_durable_publication("aeron:ipc", STREAM_ID) as durable:
        durable.publish(b"one", timeout_s=TIMEOUT_S)
        replay = archive.replay(durable.recording_id)
        assert next(replay).payload == b"one"
        position = durable.publication.position
        durable._copies[0]._counter = durable._copies[0].position = None  # as with an archive elsewhere
        client.close()
        text = "the client of the session with the archive has ended: client is closed"
        with pytest.raises(headrace.ArchiveError, match=text):
            durable.wait_until_recorded(position)
    with pytest.raises(headrace.ArchiveError, match=f"^{text}"):
        archive.list_recordings()
    with pytest.raises(headrace.HeadraceError, match="client is closed"):
        next(replay)
    with archiving.connect_archive() as another:
        assert another.list_recordings()


@pytest.mark.parametrize("is_read", [False, True])
def test_a_request_that_no_archive_takes_fails_as_one_without_an_answer(
    archiving: headrace.ArchivingMediaDriver, *, is_read: bool
) -> None:
    """It is the archive that is missed, not a subscriber: an archive was killed, or does not come to its requests."""

    async def play(client: headrace.Client, way: headrace.ExclusivePublication) -> None:
        async with await AsyncArchive.connect(client) as awaited:
            # Not before: on a busy machine the connection may take longer.
            awaited.archive._timeout_s = 0.5
            awaited.archive._publication, kept = way, awaited.archive._publication
            with pytest.raises(headrace.ArchiveTimeoutError, match=text):
                await awaited.find_recording(0)
            awaited.archive._publication = kept

    text = "does not read the earlier requests" if is_read else "no archive takes requests on aeron:ipc"
    with archiving.driver.connect() as client, contextlib.ExitStack() as stack:
        way = stack.enter_context(client.add_exclusive_publication(CHANNEL, STREAM_ID))
        if is_read:
            stack.enter_context(client.add_subscription(CHANNEL, STREAM_ID))
            await_true(lambda: way.offer(b"asked before") == headrace.OfferResult.BACK_PRESSURED)
        with headrace.Archive.connect(client) as archive:
            archive._timeout_s = 0.5
            archive._publication, kept = way, archive._publication
            with pytest.raises(headrace.ArchiveTimeoutError, match=text):
                archive.find_recording(0)
            archive._publication = kept
        asyncio.run(play(client, way))


def test_an_awaited_replay_whose_client_ends_raises(archiving: headrace.ArchivingMediaDriver) -> None:
    """Only the end of the recording ends the iteration quietly."""

    async def play() -> None:
        with archiving.driver.connect() as client:
            archive = await AsyncArchive.connect(client)
            publication = await archive.add_recorded_publication(CHANNEL, STREAM_ID)
            await publication.offer_async(b"first")
            recording_id = (await archive.list_recordings())[-1].recording_id
            replay = await archive.replay(recording_id)
            await anext(replay)
            client.close()
            await anext(replay)

    with pytest.raises(headrace.ClosedError):
        asyncio.run(play())


@pytest.mark.parametrize("is_awaited", [False, True], ids=["blocking", "awaited"])
def test_a_replay_whose_stream_is_lost_on_the_way_raises(
    archiving: headrace.ArchivingMediaDriver, *, is_awaited: bool
) -> None:
    """The archive is there and answers; all that is wrong is that messages are missing."""

    def lose(replay: Replay) -> None:
        # A handler is told of it, which may be after the first message.
        await_true(lambda: replay.image is not None)
        image = replay.image
        assert image is not None
        image.reject("a test")
        await_true(lambda: image.is_closed)

    def read() -> None:
        with archiving.connect_archive() as archive, archive.replay(0) as replay:
            assert next(replay).payload == MESSAGES[0]
            lose(replay)
            list(replay)

    async def read_awaited() -> None:
        async with (
            await AsyncArchive.connect(driver=archiving.driver) as archive,
            await archive.replay(0) as replay,
        ):
            assert (await anext(replay)).payload == MESSAGES[0]
            await asyncio.to_thread(lose, replay.replay)
            [message async for message in replay]

    with (
        archiving.connect_archive() as archive,
        archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication,
    ):
        for message in MESSAGES:
            publication.offer_blocking(message, timeout_s=TIMEOUT_S)
        # The archive may have taken the stream away by the time that the client hears of it.
        lost = "(the replay was lost before its end|the archive ended the replay early), at position=64"
        with pytest.raises(headrace.ArchiveError, match=lost):
            asyncio.run(read_awaited()) if is_awaited else read()


def test_ctrl_c_in_the_middle_of_a_batch_loses_none_of_its_messages(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    """They begin the next batch: the replay has gone past them and does not send them again."""
    archive = archiving.connect_archive()
    publication = archive.add_recorded_publication(CHANNEL, STREAM_ID)
    recording_id = archive.await_signal(RecordingSignal.START).recording_id
    for message in MESSAGES:
        publication.offer_blocking(message)
    end = publication.position
    descriptor = archive.find_recording(recording_id)
    assert descriptor is not None
    assert end is not None
    with archive.replay(recording_id, stream_id=7) as replay:
        assert replay.subscription.wait_until_connected(TIMEOUT_S)
        (image,) = replay.subscription.images
        reader = headrace.RecordingReader(
            image,
            headrace.RecordedFrames(
                recording_id,
                start_position=descriptor.start_position,
                initial_term_id=descriptor.initial_term_id,
                term_length=descriptor.term_buffer_length,
                segment_length=descriptor.segment_file_length,
                stream_id=7,
            ),
            start=0,
            stop=2 * end,
            limit=2 * end,
            is_frame_at_start=True,
        )

        def interrupt() -> None:
            await_true(lambda: reader.position == end)
            signal.raise_signal(signal.SIGINT)

        interrupter = threading.Thread(target=interrupt)
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            reader.read_batch(10, timeout_s=TIMEOUT_S)
        interrupter.join()
        assert reader.read_batch(3, timeout_s=TIMEOUT_S).to_list() == MESSAGES
