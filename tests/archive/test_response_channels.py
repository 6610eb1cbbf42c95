"""Answers and replays that come back through connections which the client opens: it has no address of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive, FollowState
from headrace.archive.aio import AsyncArchive
from headrace.archive.client.replay import ReplayRange
from headrace.archive.client.steps import replay_started
from headrace.archive.protocol.messages import encode
from headrace.archive.protocol.requests import ReplayRequest
from headrace.archive.server.errors import RequestError
from headrace.archive.server.replay_tokens import ReplayTokens
from headrace.testing import ManualClock
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

STREAM_ID = 1001
# Room for what is published while nothing is read.
LIVE = "aeron:ipc?term-length=1m"
MESSAGES = [b"%d " % number * (1 + number % 400) for number in range(300)]


class Place:
    """An archive with one recording, and the channels that lead back from it."""

    def __init__(self, archiving: headrace.ArchivingMediaDriver, settings: dict[str, str], back: str) -> None:
        self.archiving = archiving
        self.settings = settings
        self.back = back

    def connect(self) -> Archive:
        return self.archiving.connect_archive(**self.settings)  # type: ignore[arg-type]


@pytest.fixture(params=["ipc", "udp"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    control = f"aeron:udp?endpoint={free_endpoint()}"
    back = "aeron:ipc?control-mode=response"
    settings = {"control_channel": "aeron:ipc", "response_channel": back}
    if request.param == "udp":
        back = f"aeron:udp?control-mode=response|control={free_endpoint()}"
        settings = {"control_channel": control, "response_channel": back}
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "archive", control_channel=control
    ) as archiving:
        yield Place(archiving, settings, back)


def record(archive: Archive) -> None:
    """A stopped recording of all messages."""
    with archive.add_recorded_publication(LIVE, STREAM_ID) as publication:
        for message in MESSAGES:
            publication.offer_blocking(message, timeout_s=TIMEOUT_S)
        position = publication.position
    recording_id = archive.list_recordings()[-1].recording_id
    await_true(lambda: archive.stop_position(recording_id) == position)


@pytest.mark.system
def test_a_session_and_its_replays_come_back_through_response_channels(place: Place) -> None:
    with place.connect() as archive, place.connect() as other:
        assert archive.control_session_id != other.control_session_id
        record(archive)
        replays = [session.replay(0, channel=place.back) for session in (archive, other, archive)]
        # Several at once, each with the messages of its own and an id by which it is stopped.
        for replay in replays:
            assert [message.payload for message in replay] == MESSAGES
            replay.close()
        assert len({replay.replay_id for replay in replays}) == 3
        half = len(MESSAGES[0]) + 32
        start = half + -half % 32
        with archive.replay(0, channel=place.back, position=start, length=1) as replay:
            assert [message.payload for message in replay] == MESSAGES[1:2]
        with pytest.raises(headrace.ArchiveError, match="unknown recording id: 7"):
            archive.replay(7, channel=place.back)
        with archive.replay(0, channel=place.back) as replay:
            assert next(replay).payload == MESSAGES[0]
    with place.archiving.connect() as client:
        # What asked for the replays is gone with them: the requests of no session are connected any more.
        await_true(lambda: [one.value for one in client.counters if one.type_id in (102, 112)] == [0, 0])


@pytest.mark.system
def test_asyncio(place: Place) -> None:
    async def main() -> None:
        async with await AsyncArchive.connect(
            directory=place.archiving.directory,
            **place.settings,  # type: ignore[arg-type]
        ) as archive:
            await asyncio.to_thread(record, archive.archive)
            async with await archive.replay(0, channel=place.back) as replay:
                assert [message.payload async for message in replay] == MESSAGES

    asyncio.run(main())


@pytest.mark.system
def test_follow_through_response_channels_and_faults(place: Place) -> None:
    """The way of the session is that of the replays; each message comes once, in order, whatever breaks between."""
    chance = random.Random(7)
    with place.connect() as archive, archive.add_recorded_publication(LIVE, STREAM_ID) as publication:
        sent = taken = 0

        def publish(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                publication.offer_blocking(MESSAGES[sent % len(MESSAGES)], timeout_s=TIMEOUT_S)
                sent += 1

        publish(200)
        with archive.follow(0) as follow:

            def take(end: int) -> None:
                nonlocal taken
                while taken < end:
                    message = follow.receive(TIMEOUT_S)
                    assert message is not None
                    assert message.payload == MESSAGES[taken % len(MESSAGES)]
                    taken += 1

            for _ in range(5):
                publish(100)
                take(chance.randrange(taken, sent))
                # No live image of IPC can be lost alone: to reject it would end the recording too.
                archive.stop_all_replays()
                take(sent)

            def is_live() -> bool:
                assert follow.poll_message() is None
                return follow.state is FollowState.LIVE

            await_true(is_live)


def test_channels_that_lead_nowhere(place: Place) -> None:
    udp = "aeron:udp?control-mode=response"
    other = "aeron:ipc?control-mode=response" if "udp" in place.back else f"{udp}|control=127.0.0.1:9"
    cases = [(other, "as control_channel=")]
    if "udp" in place.back:
        cases.append((udp, "must have control=host:port"))
    with place.connect() as archive:
        for channel, text in cases:
            with pytest.raises(headrace.ConfigError, match=text):
                archive.replay(0, channel=channel)
            with pytest.raises(headrace.ConfigError, match=text):
                archive.follow(0, replay_channel=channel)
            with pytest.raises(headrace.ConfigError, match=text):
                place.archiving.connect_archive(
                    control_channel=place.settings["control_channel"], response_channel=channel
                )
        with pytest.raises(headrace.ConfigError, match=r"Archive\.replay makes it"):
            archive.start_replay(0, place.back, 7)


@pytest.mark.system
def test_a_replay_token_is_for_one_session_one_recording_and_a_response_channel(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A request with another one is not answered: there is no session to answer to. A valid one may be used again."""
    with place.connect() as archive:
        record(archive)
        request = ReplayRange(0).request(place.back, STREAM_ID)
        with pytest.raises(headrace.ArchiveError, match="needs a replay token"):
            archive._run(replay_started(request))
        with archive.replay(0, channel=place.back) as replay:
            assert replay._over is not None
            unknown = {"control_session_id": archive.control_session_id, "correlation_id": 1}
            replay._over.offer_blocking(encode(_with_token(request, 4711, **unknown)))
            await_true(lambda: any("unknown or expired replay token" in text for text in caplog.messages))
            assert [message.payload for message in replay] == MESSAGES
        assert archive.find_recording(0) is not None


def _with_token(request: ReplayRequest, token: int, **ids: int) -> ReplayRequest:
    return ReplayRequest(
        recording_id=request.recording_id,
        position=request.position,
        length=request.length,
        replay_stream_id=request.replay_stream_id,
        replay_channel=request.replay_channel,
        replay_token=token,
        **ids,
    )


class _Session:
    """Stands for a control session, which tokens only name."""


def test_tokens_expire_and_go_with_their_session() -> None:
    clock = ManualClock()
    tokens = ReplayTokens(clock, 1000, random.Random(3))
    one, other = _Session(), _Session()
    first = tokens.issue(one, 5)  # type: ignore[arg-type]
    clock.advance(999e-9)
    second, third = tokens.issue(one, 6), tokens.issue(other, 5)  # type: ignore[arg-type]
    assert len({first, second, third, -1}) == 4
    assert tokens.session_of(first, 5) is one
    assert tokens.session_of(first, 5) is one
    assert tokens.session_of(first, 6) is None
    assert tokens.session_of(third, 5) is other
    clock.advance(1e-9)
    assert tokens.session_of(first, 5) is None
    tokens.drop(one)  # type: ignore[arg-type]
    assert tokens.session_of(second, 6) is None
    assert tokens.session_of(third, 5) is other


def test_a_session_has_so_many_tokens_and_no_more() -> None:
    clock = ManualClock()
    tokens = ReplayTokens(clock, 1000, random.Random(3))
    one, other = _Session(), _Session()
    issued = {tokens.issue(one, 5) for _ in range(1024)}  # type: ignore[arg-type]
    assert len(issued) == 1024
    with pytest.raises(RequestError, match="1024 replay tokens"):
        tokens.issue(one, 5)  # type: ignore[arg-type]
    tokens.issue(other, 5)  # type: ignore[arg-type]
    clock.advance(1e-6)
    tokens.issue(one, 5)  # type: ignore[arg-type]
