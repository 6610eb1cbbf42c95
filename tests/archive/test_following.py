"""The machine between history and live, stepped by hand: a scripted archive, and images that a test moves."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from headrace import HeadraceError
from headrace.archive import ArchiveError, ArchiveTimeoutError, ErrorCode, FollowState
from headrace.archive.client.following.machine import Followed, Follower
from headrace.archive.client.following.sources import Address
from headrace.archive.protocol.codes import Response
from headrace.archive.protocol.requests import (
    ListRecordingRequest,
    MaxRecordedPositionRequest,
    ReplayRequest,
    StopReplayRequest,
)
from headrace.testing import ManualClock
from tests.archive.fakes import FakePending
from tests.archive.streams import SESSION_ID, STREAM_ID, descriptor
from tests.archive.test_exchange import exchange_of, response, sent

TIMEOUT_S = 10.0
REPLAY_ID = 9 << 32 | 77
MIB = 1 << 20


class Image:
    """A stream that a test moves."""

    def __init__(self, position: int) -> None:
        self.position = self.join_position = position
        self.end = position
        """How far its messages have come."""
        self.is_closed = self.is_end_of_stream = False

    def bounded_poll(self, _handler: object, limit_position: int, limit: int) -> int:
        assert limit > 0
        self.position = min(limit_position, self.end)
        return 1


class Subscription:
    """What was subscribed to, and whether it was left."""

    def __init__(self, channel: str, stream_id: int, on_image: Callable[[Any], object]) -> None:
        self.channel, self.stream_id, self.on_image = channel, stream_id, on_image
        self.is_closed = False
        self.resolved_channel: str | None = None

    def arrive(self, position: int) -> Image:
        image = Image(position)
        self.on_image(image)
        return image

    def close(self) -> None:
        self.is_closed = True


class Script:
    """An archive that says what the test has written down, and a client whose streams the test brings."""

    def __init__(self, **description: object) -> None:
        self.clock = ManualClock()
        self.is_ready = True
        self.failure: HeadraceError | None = None
        self.description: dict[str, object] | None = {"term_buffer_length": MIB} | description
        self.recorded = 0
        self.refusal: tuple[ErrorCode, str] | None = None
        self.late: ArchiveError | None = None
        self.asked: list[object] = []
        self.subscriptions: list[Subscription] = []
        self.is_closed = False

    # --- the link ---

    def step(self) -> None:
        """Answers come at once."""

    def ask(self, what: Any) -> Any:
        assert self.is_ready
        exchange = exchange_of(what, self.clock)
        while not exchange.is_done:
            request = sent(exchange)
            self.asked.append(request)
            exchange.take(self._answer(request, exchange.correlation_id))
        return exchange

    tell = ask

    def answer(self, exchange: Any) -> Any:
        return exchange.result()

    def forget(self, exchange: Any) -> None:
        """It is answered already."""

    def await_error(self, correlation_id: int) -> None:
        """Errors come by :attr:`late`."""

    def late_error(self, _correlation_id: int) -> ArchiveError | None:
        return self.late

    def close(self) -> None:
        self.is_closed = True

    def _answer(self, request: object, correlation_id: int) -> Any:
        if isinstance(request, ListRecordingRequest):
            if self.description is None:
                return response(correlation_id, request.recording_id, Response.RECORDING_UNKNOWN)
            return descriptor(correlation_id=correlation_id, **self.description)
        if isinstance(request, ReplayRequest) and self.refusal is not None:
            code, text = self.refusal
            return response(correlation_id, int(code), Response.ERROR, text)
        numbers = {ReplayRequest: REPLAY_ID, MaxRecordedPositionRequest: self.recorded, StopReplayRequest: 0}
        return response(correlation_id, numbers[type(request)])

    # --- the client ---

    def request_subscription(
        self, channel: str, stream_id: int, on_available_image: Callable[[Any], object]
    ) -> Any:
        self.subscriptions.append(Subscription(channel, stream_id, on_available_image))
        return FakePending(self.subscriptions[-1])

    # --- what a test asks ---

    def count(self, kind: type) -> int:
        return sum(isinstance(one, kind) for one in self.asked)

    def follow(self, begin: int | Literal["start", "live"] = "start", replay: str = "aeron:ipc") -> Follower:
        what = Followed(0, begin, None, Address(replay, 1020), TIMEOUT_S)
        client: Any = SimpleNamespace(clock=self.clock, request_subscription=self.request_subscription)
        link: Any = self
        return Follower(client, link, what)


def stepped(follower: Follower, count: int = 8) -> FollowState:
    for _ in range(count):
        follower.step()
    return follower.state


def replaying(script: Script, follower: Follower) -> Image:
    assert stepped(follower) is FollowState.OPENING
    image = script.subscriptions[-1].arrive(0)
    assert stepped(follower) is FollowState.REPLAYING
    return image


def joined(script: Script, follower: Follower, position: int) -> Image:
    """Live from a position that the replay has delivered."""
    script.recorded = position
    assert stepped(follower) is FollowState.OPENING
    script.subscriptions[-1].arrive(0)
    assert stepped(follower) is FollowState.JOINING
    follower.delivered(position)
    live = script.subscriptions[-1].arrive(position)
    assert stepped(follower) is FollowState.LIVE
    return live


def test_the_way_from_history_to_live() -> None:
    script = Script()
    script.recorded = 10 * MIB
    follower = script.follow()
    said: list[tuple[str, int]] = []
    follower.on_live = lambda position: said.append(("live", position))
    follower.on_left_live = lambda position: said.append(("left", position))
    replaying(script, follower)
    replay = script.subscriptions[0]
    assert (replay.channel, replay.stream_id) == ("aeron:ipc?session-id=77", 1020)
    follower.delivered(9 * MIB)
    assert stepped(follower) is FollowState.REPLAYING, "not before it has reached what was recorded"
    assert script.count(MaxRecordedPositionRequest) == 2
    script.recorded = 10 * MIB + MIB // 4
    follower.delivered(10 * MIB)
    assert stepped(follower) is FollowState.JOINING
    live = script.subscriptions[1]
    assert (live.channel, live.stream_id) == (f"aeron:ipc?session-id={SESSION_ID}", STREAM_ID)
    image = live.arrive(10 * MIB + 640)
    assert stepped(follower) is FollowState.JOINING, "the live stream began later than the position"
    follower.delivered(10 * MIB + 6400)
    image.end = 10 * MIB + 1280
    assert stepped(follower) is FollowState.JOINING, "messages that were delivered have not come yet"
    assert image.position == 10 * MIB + 1280
    image.end = 10 * MIB + 9600
    assert stepped(follower) is FollowState.LIVE
    assert image.position == 10 * MIB + 6400, "what was not delivered is still there"
    assert replay.is_closed
    assert script.count(StopReplayRequest) == 1
    assert said == [("live", 10 * MIB + 6400)]
    image.is_closed = True
    assert stepped(follower) is FollowState.OPENING
    assert said[1:] == [("left", 10 * MIB + 6400)]
    assert live.is_closed


def test_from_live_no_replay_is_asked_for() -> None:
    script = Script()
    script.recorded = 6400
    follower = script.follow("live")
    assert stepped(follower) is FollowState.JOINING
    script.subscriptions[0].arrive(9600)
    assert stepped(follower) is FollowState.LIVE
    assert follower.position == 9600
    assert script.count(ReplayRequest) == 0


def test_a_recording_that_has_stopped_is_looked_at_again_and_again_but_not_all_the_time() -> None:
    script = Script(stop_position=640)
    follower = script.follow(640)
    assert stepped(follower) is FollowState.WAITING or follower.state is FollowState.LOOKING
    for _ in range(1000):
        script.clock.advance(0.1)
        stepped(follower, 2)
    assert follower.state in (FollowState.WAITING, FollowState.LOOKING)
    assert 100 < script.count(ListRecordingRequest) < 350
    script.description = {"stop_position": -1, "session_id": 5}
    script.recorded = 640
    script.clock.advance(1)
    assert stepped(follower) is FollowState.OPENING


def test_a_port_of_its_own_is_known_before_the_replay_is_asked_for() -> None:
    script = Script()
    script.recorded = 640
    follower = script.follow(replay="aeron:udp?endpoint=h:0")
    assert stepped(follower) is FollowState.OPENING
    assert script.count(ReplayRequest) == 0
    script.subscriptions[0].resolved_channel = "aeron:udp?endpoint=h:4711"
    stepped(follower)
    (request,) = (one for one in script.asked if isinstance(one, ReplayRequest))
    assert request.replay_channel == "aeron:udp?endpoint=h:4711"


@pytest.mark.parametrize("state", [FollowState.OPENING, FollowState.REPLAYING, FollowState.JOINING])
def test_an_archive_that_goes_and_comes_back(state: FollowState) -> None:
    script = Script()
    script.recorded = 6400
    follower = script.follow(0)
    stepped(follower)
    if state is not FollowState.OPENING:
        replaying_image = script.subscriptions[0].arrive(0)
        assert replaying_image.position == 0
        if state is FollowState.REPLAYING:
            script.recorded = 10 * MIB
        stepped(follower)
    assert follower.state is state
    script.is_ready = False
    assert stepped(follower) is FollowState.CONNECTING
    assert all(one.is_closed for one in script.subscriptions)
    script.clock.advance(TIMEOUT_S / 2)
    script.is_ready = True
    assert stepped(follower) is FollowState.LOOKING or follower.state is FollowState.OPENING
    script.clock.advance(1)
    assert stepped(follower) is FollowState.OPENING


def test_live_needs_no_archive_until_it_is_lost_and_then_for_the_time_out() -> None:
    script = Script()
    follower = script.follow(0)
    live = joined(script, follower, 6400)
    script.is_ready, script.failure = False, ArchiveError("the archive is gone")
    script.clock.advance(1000)
    assert stepped(follower) is FollowState.LIVE
    live.is_closed = True
    assert stepped(follower) is FollowState.CONNECTING
    script.clock.advance(TIMEOUT_S - 0.01)
    assert stepped(follower) is FollowState.CONNECTING
    script.clock.advance(0.02)
    assert stepped(follower) is FollowState.FAILED
    assert isinstance(follower.error, ArchiveTimeoutError)
    assert "no archive for 10.0 s: the archive is gone" in str(follower.error)
    assert script.is_closed


def test_positions_that_the_recording_does_not_have() -> None:
    for description, recorded, begin, text in [
        ({"start_position": 640}, 6400, 320, "position=320: recording 0 begins at 640"),
        ({}, 6400, 12800, "position=12800: recording 0 goes up to 6400"),
        ({"stop_position": 6400}, 0, 12800, "position=12800: recording 0 goes up to 6400"),
    ]:
        script = Script(**description)
        script.recorded = recorded
        follower = script.follow(begin)
        assert stepped(follower) is FollowState.FAILED
        assert str(follower.error) == text
        assert isinstance(follower.error, ArchiveError)
        assert follower.error.code == ErrorCode.INVALID_POSITION
    script = Script()
    script.description = None
    follower = script.follow()
    assert stepped(follower) is FollowState.FAILED
    assert isinstance(follower.error, ArchiveError)
    assert follower.error.code == ErrorCode.UNKNOWN_RECORDING


def test_live_may_be_ahead_of_the_recording_for_a_moment() -> None:
    script = Script()
    follower = script.follow(0)
    live = joined(script, follower, 6400)
    follower.delivered(9600)
    live.is_closed = True
    stepped(follower)
    for _ in range(20):
        script.clock.advance(0.1)
        stepped(follower)
        assert follower.state is FollowState.LOOKING
    script.recorded = 9600
    script.clock.advance(1)
    assert stepped(follower) is FollowState.OPENING
    replay = script.subscriptions[-1].arrive(9600)
    stepped(follower)
    script.recorded = 6400
    replay.is_closed = True
    for _ in range(200):
        script.clock.advance(0.1)
        stepped(follower)
    assert follower.state is FollowState.FAILED
    assert "position=9600: recording 0 goes up to 6400" in str(follower.error)


def test_a_replay_that_ends_again_and_again_fails_with_what_the_archive_says() -> None:
    script = Script()
    script.recorded = 10 * MIB
    follower = script.follow(0)
    script.late = ArchiveError("recording segment not found", 0, "GENERIC", 0)
    rounds = 0
    while follower.state is not FollowState.FAILED:
        if stepped(follower, 1) is FollowState.OPENING and script.subscriptions:
            script.subscriptions[-1].arrive(0).is_closed = True
            rounds += 1
        script.clock.advance(0.05)
    assert follower.error is script.late
    assert 10 < rounds < 100


def test_a_replay_that_is_refused() -> None:
    script = Script()
    script.recorded = 6400
    script.refusal = ErrorCode.INVALID_POSITION, "does not point to a valid frame"
    follower = script.follow(32)
    assert stepped(follower) is FollowState.FAILED, "it will not be another one the next time"
    script.refusal = ErrorCode.MAX_REPLAYS, "too many"
    follower = script.follow(0)
    assert stepped(follower) is FollowState.LOOKING
    script.refusal = None
    script.clock.advance(1)
    assert stepped(follower) is FollowState.OPENING


def test_a_live_image_that_goes_before_it_took_over_leaves_the_replay() -> None:
    script = Script()
    script.recorded = 6400
    follower = script.follow(0)
    assert stepped(follower) is FollowState.OPENING
    replay = script.subscriptions[0].arrive(0)
    assert stepped(follower) is FollowState.JOINING
    script.recorded = 10 * MIB
    script.subscriptions[1].arrive(6400).is_closed = True
    follower.delivered(6400)
    assert stepped(follower) is FollowState.REPLAYING
    assert script.subscriptions[1].is_closed
    assert not replay.is_closed
    assert not script.subscriptions[0].is_closed
