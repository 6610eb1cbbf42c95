"""A recording followed from its history to its publisher's stream and back: each message once, in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive, ArchiveError, ErrorCode, Follow, FollowState, extension_channel
from headrace.archive.aio import AsyncArchive
from headrace.channel import ChannelUri
from headrace.testing import random_loss
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.system

IPC = "aeron:ipc?term-length=1m"
STREAM_ID = 1001
FAULTS = 20


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    with headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as archiving:
        yield archiving


@pytest.fixture
def archive(archiving: headrace.ArchivingMediaDriver) -> Iterator[Archive]:
    with archiving.connect_archive() as archive:
        yield archive


class Orders:
    """Numbered messages, some of them in several fragments, and what came of them."""

    def __init__(self, publication: headrace.ExclusivePublication) -> None:
        self.publication = publication
        self.ends: list[int] = []
        self.taken = 0

    @staticmethod
    def payload(number: int) -> bytes:
        return b"%d " % number * (1 + number % 40 * (number % 7 == 0) * 20)

    def publish(self, count: int) -> None:
        for _ in range(count):
            self.ends.append(
                self.publication.offer_blocking(self.payload(len(self.ends)), timeout_s=TIMEOUT_S)
            )

    def take(self, follow: Follow, count: int) -> None:
        """The next so many, which must be the next."""
        for _ in range(count):
            message = follow.receive(TIMEOUT_S)
            assert message is not None, follow
            assert message.payload == self.payload(self.taken)
            assert message.position == self.ends[self.taken] == follow.position
            self.taken += 1

    def take_all(self, follow: Follow) -> None:
        self.take(follow, len(self.ends) - self.taken)
        assert follow.poll_message() is None


def await_state(follow: Follow, state: FollowState) -> None:
    """Step it until it is there; nothing is published meanwhile, so nothing comes."""

    def is_there() -> bool:
        assert follow.poll_message() is None
        return follow.state is state

    await_true(is_there)


@pytest.fixture
def orders(archive: Archive) -> Orders:
    return Orders(archive.add_recorded_publication(IPC, STREAM_ID))


def test_history_then_live(archive: Archive, orders: Orders) -> None:
    said: list[tuple[str, int]] = []
    orders.publish(3000)
    with archive.follow(
        0,
        on_live=lambda position: said.append(("live", position)),
        on_left_live=lambda position: said.append(("left", position)),
    ) as follow:
        orders.take_all(follow)
        await_state(follow, FollowState.LIVE)
        assert said == [("live", orders.ends[-1])]
        assert follow.is_live
        for _ in range(20):
            orders.publish(100)
            orders.take_all(follow)
        orders.publication.close()
        await_state(follow, FollowState.WAITING)
        assert said[1:] == [("left", orders.ends[-1])]
        assert not follow.is_live


def test_a_publisher_that_never_rests(archive: Archive, orders: Orders) -> None:
    orders.publish(2000)
    with archive.follow(0) as follow:
        while not follow.is_live:
            orders.publish(20)
            orders.take(follow, min(100, len(orders.ends) - orders.taken))
        orders.take_all(follow)
        orders.publish(500)
        orders.take_all(follow)


def test_from_a_position_and_from_live(archive: Archive, orders: Orders) -> None:
    orders.publish(500)
    orders.taken = 200
    with archive.follow(0, from_position=orders.ends[199]) as follow:
        orders.take_all(follow)
        await_state(follow, FollowState.LIVE)
    with archive.follow(0, from_position="live") as follow:
        await_state(follow, FollowState.LIVE)
        assert follow.position == orders.ends[-1]
        orders.publish(100)
        orders.take_all(follow)


def test_a_live_stream_by_two_paths_goes_on_when_one_dies(archive: Archive) -> None:
    channel = f"aeron:udp?control-mode=manual|control={free_endpoint()}|ssc=true|term-length=256k"
    orders = Orders(archive.add_recorded_publication(channel, STREAM_ID))
    paths = [f"aeron:udp?endpoint={free_endpoint()}" for _ in range(2)]
    for path in paths:
        orders.publication.add_destination(path)
    orders.publish(500)
    with archive.follow(
        0,
        live_channel="aeron:udp?control-mode=manual",
        live_stream_id=STREAM_ID,
        live_destinations=paths,
    ) as follow:
        orders.take_all(follow)
        await_state(follow, FollowState.LIVE)
        for path in paths[1:]:
            orders.publication.remove_destination(path)
        orders.publish(500)
        orders.take_all(follow)
        assert follow.is_live


@pytest.mark.parametrize(
    ("channel", "paths"),
    [
        ("aeron:udp?control-mode=manual", None),
        ("aeron:udp?control-mode=manual", "aeron:udp?endpoint=localhost:9"),
        ("aeron:ipc", ["aeron:udp?endpoint=localhost:9"]),
        ("aeron:udp?control-mode=manual", ["nonsense"]),
    ],
)
def test_paths_that_cannot_be(archive: Archive, channel: str, paths: list[str] | None) -> None:
    with pytest.raises(headrace.ConfigError, match=r"live_destinations|nonsense"):
        archive.follow(0, live_channel=channel, live_stream_id=1, live_destinations=paths)  # type: ignore[arg-type]


def test_batches(archive: Archive, orders: Orders) -> None:
    orders.publish(3000)
    with archive.follow(0) as follow:
        found: list[bytes] = []

        def take() -> None:
            await_true(lambda: bool(found.extend(follow.poll_batch()) or len(found) == len(orders.ends)))
            assert follow.position == orders.ends[-1]

        take()
        await_state(follow, FollowState.LIVE)
        orders.publish(300)
        take()
        assert found == [orders.payload(number) for number in range(3300)]


def extend(archive: Archive, orders: Orders, channel: str = IPC) -> None:
    """Another publisher goes on where the last one ended."""
    await_true(lambda: archive.stop_position(0) == orders.ends[-1])
    descriptor = archive.find_recording(0)
    assert descriptor is not None
    session_id = archive.client.next_available_session_id(STREAM_ID)
    extension = ChannelUri(extension_channel(channel, descriptor)).with_parameters(session_id=session_id)
    archive.extend_recording(0, extension, STREAM_ID, auto_stop=True)
    orders.publication = archive.client.add_exclusive_publication(extension, STREAM_ID)


def test_a_recording_that_is_extended_is_followed_on(archive: Archive, orders: Orders) -> None:
    orders.publish(100)
    orders.publication.close()
    with archive.follow(0) as follow:
        orders.take_all(follow)
        await_state(follow, FollowState.WAITING)
        for _ in range(3):
            extend(archive, orders)
            orders.publish(200)
            orders.take_all(follow)
            await_state(follow, FollowState.LIVE)
            orders.publish(10)
            orders.publication.close()
            orders.take_all(follow)
        await_state(follow, FollowState.WAITING)


def test_asyncio(archiving: headrace.ArchivingMediaDriver, archive: Archive, orders: Orders) -> None:
    orders.publish(300)

    async def run() -> None:
        async with (
            await AsyncArchive.connect(archive.client, message_timeout_s=TIMEOUT_S) as session,
            session.follow(0) as follow,
        ):
            async for message in follow:
                assert message.payload == orders.payload(orders.taken)
                orders.taken += 1
                if orders.taken == 300:
                    orders.publish(100)
                if orders.taken == 400:
                    await asyncio.to_thread(await_state, follow, FollowState.LIVE)
                    orders.publish(100)
                if orders.taken == 500:
                    assert follow.is_live
                    break
        assert [message async for message in follow] == []

    asyncio.run(run())


def test_errors_by_name(archive: Archive, orders: Orders) -> None:
    orders.publish(10)
    end = orders.ends[-1]
    await_true(lambda: archive.recording_position(0) == end)
    cases = [
        (4711, "start", ErrorCode.UNKNOWN_RECORDING, "unknown recording id: 4711"),
        (0, end + 32, ErrorCode.INVALID_POSITION, f"position={end + 32}: recording 0 goes up to {end}"),
        (0, 32, ErrorCode.INVALID_POSITION, "does not point to a valid frame"),
    ]
    for recording_id, position, code, text in cases:
        with archive.follow(recording_id, from_position=position) as follow:  # type: ignore[arg-type]
            for _ in range(2):
                with pytest.raises(ArchiveError, match=text) as raised:
                    follow.receive(TIMEOUT_S)
                assert raised.value.code == code
                assert raised.value.recording_id == recording_id
            assert follow.state is FollowState.FAILED
    orders.publication.close()
    await_true(lambda: archive.stop_position(0) == end)
    with archive.follow(0, from_position=end + 64) as follow, pytest.raises(ArchiveError, match="goes up to"):
        follow.receive(TIMEOUT_S)


def test_arguments_that_cannot_be(archive: Archive) -> None:
    for arguments, text in [
        ({"recording_id": -1}, "recording_id=-1: must be at least 0"),
        ({"from_position": 33}, "from_position=33: must be a multiple of 32"),
        ({"from_position": "end"}, 'must be a position, "start" or "live"'),
        ({"timeout_s": 0.0}, "timeout_s=0.0: must be above 0"),
        ({"live_channel": "aeron:ipc"}, "live_channel and live_stream_id go together"),
        (
            {"replay_channel": "aeron:udp?control-mode=response|control=h:1"},
            "must be of aeron:ipc, as control_channel=aeron:ipc",
        ),
        ({"replay_chanel": "aeron:ipc"}, "replay_channel"),
    ]:
        with pytest.raises(headrace.ConfigError, match=text):
            archive.follow(**({"recording_id": 0} | arguments))  # type: ignore[arg-type]


def test_any_thread_may_close_it(archive: Archive, orders: Orders) -> None:
    orders.publish(300)
    states = FollowState.CONNECTING, FollowState.OPENING, FollowState.JOINING, FollowState.LIVE
    for number in range(40):
        follow = archive.follow(0)
        ends: list[object] = []

        def read(follow: Follow = follow, ends: list[object] = ends) -> None:
            try:
                ends.append(sum(1 for _ in follow) <= 300)
            except BaseException as failure:
                ends.append(failure)

        reader = threading.Thread(target=read)
        reader.start()
        wanted = states[number % len(states)], FollowState.LIVE
        await_true(lambda follow=follow, wanted=wanted: follow.state in wanted)
        follow.close()
        reader.join(TIMEOUT_S)
        assert ends == [True]
        assert follow.state is FollowState.CLOSED


def test_a_client_that_has_ended_ends_it_at_once(archiving: headrace.ArchivingMediaDriver) -> None:
    with archiving.driver.connect() as client, Archive.connect(client) as archive:
        begun, unbegun = archive.follow(0), archive.follow(0)
        assert begun.poll_message() is None
        client.close()
        for follow in (begun, unbegun):
            for _ in range(2):
                with pytest.raises(headrace.ClosedError, match="client is closed"):
                    follow.receive(0)
            assert follow.state is FollowState.CONNECTING
            follow.close()


def test_it_closes_when_the_archive_has_ended_its_session_and_still_replays(
    archiving: headrace.ArchivingMediaDriver, archive: Archive, orders: Orders
) -> None:
    orders.publish(100)
    follow = archive.follow(0)
    orders.take(follow, 1)
    assert follow.state is FollowState.REPLAYING
    session = follow._follower._link._session
    assert session is not None
    archiving.archive._control._sessions[session.control_session_id].abort("a test ends it")
    await_true(lambda: not session._subscription.is_connected)
    follow.close()
    assert session.is_closed
    assert follow.state is FollowState.CLOSED


def test_an_archive_that_stays_away(tmp_path: Path) -> None:
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as archiving,
        archiving.connect_archive() as archive,
    ):
        orders = Orders(archive.add_recorded_publication(IPC, STREAM_ID))
        orders.publish(100)
        follow = archive.follow(0, timeout_s=0.5)
        late = archive.follow(0, timeout_s=0.5)
        orders.take_all(follow)
        await_state(follow, FollowState.LIVE)
        archiving.archive.close()
        with pytest.raises(headrace.archive.ArchiveTimeoutError, match=r"recording 0: no archive for 0\.5 s"):
            late.receive(TIMEOUT_S)
        orders.publish(100)
        orders.take_all(follow)
        assert follow.is_live, "it needs no archive while it is live"
        orders.publication.close()
        with pytest.raises(headrace.archive.ArchiveTimeoutError, match=r"no archive for 0\.5 s"):
            follow.receive(TIMEOUT_S)
        follow.close()
        late.close()


class Faults:
    """A publisher and its archive on one driver, a consumer on another, and what goes wrong between them."""

    def __init__(
        self, directory: Path, choose: random.Random, *, comes_back: bool, properties: Mapping[str, str]
    ) -> None:
        self._directory = directory
        self._choose = choose
        self._control = f"aeron:udp?endpoint={free_endpoint()}"
        self._cast = f"aeron:udp?control={free_endpoint()}|control-mode=dynamic|term-length=1m|ssc=true"
        self._stack = contextlib.ExitStack()
        enter = self._stack.enter_context
        self.driver = enter(headrace.MediaDriver.embedded(threading_mode="SHARED"))
        self.consumer = enter(
            headrace.MediaDriver.embedded(
                threading_mode="SHARED", image_liveness_timeout_ns=10**9, properties=properties
            )
        )
        self.client = enter(self.driver.connect())
        self.start_archive()
        self.archive = Archive.connect(self.client, message_timeout_s=TIMEOUT_S)
        self.orders = Orders(self.archive.add_recorded_publication(self._cast, STREAM_ID))
        far = enter(self.consumer.connect())
        back = f"aeron:udp?control-mode=response|control={free_endpoint()}"
        self.session = enter(
            Archive.connect(
                far,
                control_channel=self._control,
                response_channel=back if comes_back else "aeron:udp?endpoint=127.0.0.1:0",
                message_timeout_s=TIMEOUT_S,
            )
        )
        live = self._cast.replace("|term-length=1m|ssc=true", "|endpoint=127.0.0.1:0")
        self.follow = enter(self.session.follow(0, live_channel=live, live_stream_id=STREAM_ID))

    def start_archive(self) -> None:
        self.server = headrace.archive.ArchiveServer(
            driver=self.driver,
            aeron_directory=self.driver.directory,
            archive_directory=self._directory,
            control_channel=self._control,
            replication_channel="aeron:udp?endpoint=127.0.0.1:0",
        )

    def lose_live(self) -> None:
        """The consumer's driver gives its image up."""
        live = self.follow._follower._live
        if live is not None and live.image is not None:
            with contextlib.suppress(headrace.ClosedError):
                live.image.reject("a fault")

    def lose_session(self) -> None:
        """The archive ends the consumer's session."""
        session = self.follow._follower._link._session
        if session is not None:
            for image in session._subscription.images:
                with contextlib.suppress(headrace.ClosedError):
                    image.reject("a fault")

    def stop_replays(self) -> None:
        """Another client stops all replays."""
        self.archive.stop_all_replays()

    def publish_ahead(self) -> None:
        """More than the stream's window holds while the consumer takes nothing."""
        self.orders.publish(self._choose.randint(1, 150))

    def change_publisher(self) -> None:
        """The publisher ends, and another one goes on."""
        self.orders.publication.close()
        extend(self.archive, self.orders, self._cast)

    def restart_archive(self) -> None:
        """The archive ends with the publisher, and both come back."""
        self.orders.publication.close()
        await_true(lambda: self.archive.stop_position(0) == self.orders.ends[-1])
        self.server.close()
        if self._choose.random() < 0.5:
            for _ in range(100):
                self.follow._follower.step()
        self.start_archive()
        self.archive.close()
        self.archive = Archive.connect(self.client, message_timeout_s=TIMEOUT_S)
        extend(self.archive, self.orders, self._cast)

    def run(self) -> str:
        """One fault at some moment, and messages before and after it."""
        faults: list[Callable[[], None]] = [
            self.lose_live,
            self.lose_session,
            self.stop_replays,
            self.publish_ahead,
            self.change_publisher,
            self.restart_archive,
        ]
        fault = self._choose.choice(faults)
        self.orders.publish(self._choose.randint(1, 50))
        behind = len(self.orders.ends) - self.orders.taken
        self.orders.take(self.follow, self._choose.randint(0, behind))
        if self._choose.random() < 0.5:
            self.orders.take_all(self.follow)
            await_state(self.follow, FollowState.LIVE)
        fault()
        self.orders.publish(self._choose.randint(1, 50))
        return fault.__name__

    def close(self) -> None:
        self.orders.take_all(self.follow)
        self._stack.callback(self.server.close)
        self._stack.callback(self.archive.close)
        self._stack.close()


@pytest.mark.parametrize("way", ["address", "response channels", "address, with loss"])
def test_each_message_once_in_order_through_random_faults(tmp_path: Path, way: str) -> None:
    seed = int(os.environ.get("HEADRACE_SEED", "20266"))
    print(f"seed={seed}; again with HEADRACE_SEED={seed}")
    is_lossy = way == "address, with loss"
    faults = Faults(
        tmp_path / "archive",
        random.Random(seed),
        comes_back=way == "response channels",
        properties=random_loss(0.05, seed=seed) if is_lossy else {},
    )
    for number in range(int(os.environ.get("HEADRACE_FAULTS", FAULTS // 4 if is_lossy else FAULTS))):
        print(number, faults.run(), faults.follow)
    faults.close()
