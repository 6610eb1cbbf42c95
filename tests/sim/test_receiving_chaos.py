"""Programs that receive in every way, from several publishers at once, while the seed pauses, cancels and times out.

The rule: each message of each publisher comes once and in order, and no iterator ends while there is more to come.
`make simulate SECONDS=60` runs new seeds; `HEADRACE_SEED` repeats one.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

import headrace
from headrace import aio
from headrace.archive import RecordingDescriptor, SourceLocation
from headrace.archive.aio import AsyncArchive, AsyncReplay
from headrace.client import Message
from headrace.testing import Link, World
from tests.receiving import WAYS, images, iterate
from tests.sim.seeded import SECONDS, replayable, run_new_seeds

pytestmark = pytest.mark.sim

SEEDS = range(16)
# Virtual seconds for a whole run: a lost message is waited for no longer.
LONGEST_S = 120
BAD = Link(loss=0.02, duplicate=0.02, reorder=0.1, jitter_s=300e-6)

# Images put messages together by themselves: what a poll of the subscription has left half read, they cannot complete.
SUBSCRIPTION_WAYS = [way for way in WAYS if way is not images]

Received = list[bytes]
Way = Callable[[], Received] | Callable[[], Coroutine[Any, Any, Received]]


class Publisher:
    """A program that publishes numbered messages in bursts, with silences between them, and then closes."""

    def __init__(
        self,
        number: int,
        publication: headrace.ExclusivePublication,
        clock: headrace.Clock,
        chance: random.Random,
    ) -> None:
        self.publication = publication
        self.clock = clock
        self.chance = chance
        self.messages = [
            b"%d %d " % (number, index) + bytes(chance.choice((0, 40, 700, 3000)))
            for index in range(chance.randint(5, 40))
        ]
        self._offered = 0
        self._silent_until_ns = 0

    @property
    def is_done(self) -> bool:
        return self._offered == len(self.messages)

    def step(self) -> int:
        now_ns = self.clock.monotonic_ns()
        if self.is_done or now_ns < self._silent_until_ns:
            return 0
        if self.publication.offer(self.messages[self._offered]) < 0:
            return 0
        self._offered += 1
        if self.is_done:
            self.publication.close()
        elif self.chance.random() < 0.3:
            # Some are longer than the intervals at which waits look again.
            self._silent_until_ns = now_ns + round(self.chance.choice((1e5, 1e6, 2e7, 1.2e8)))
        return 1


class Readings:
    """What has come, and how one more reading of an asynchronous iterator is made."""

    def __init__(self, world: World, done: list[str]) -> None:
        self.world = world
        self.done = done
        self.chance = random.Random(f"{world.seed} receiving")
        self.received: Received = []

    def watch(self, node: headrace.testing.Node) -> None:
        """What waits without end is to end when a message is lost."""

        def look() -> int:
            assert self.world.now_s < LONGEST_S, f"{len(self.received)} messages came, and then no more"
            return 0

        node.run(look)

    async def read_with(self, way: Way) -> None:
        self.done.append(way.__name__)
        taken = way()
        self.received += taken if isinstance(taken, list) else await taken

    def patience_s(self) -> float:
        return self.chance.choice((0, 1e-6, 1e-4, 2e-3, 0.03, 0.2))

    async def timed(self, iterator: AsyncIterator[Message]) -> Received:
        """One message, under a time-out."""
        try:
            async with asyncio.timeout(self.patience_s()):
                return [bytes(await anext(iterator))]
        except TimeoutError:
            return []

    async def cancelled(self, iterator: AsyncIterator[Message]) -> Received:
        """One message, unless the task is cancelled before it comes."""

        async def read_one() -> bytes:
            return bytes(await anext(iterator))

        task = asyncio.create_task(read_one())
        await asyncio.sleep(self.patience_s())
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            return [await task]
        return []


class SeveralPublishers(Readings):
    """One or two subscriptions with several publishers each, and a reader that takes turns between ways."""

    def __init__(self, world: World, done: list[str]) -> None:
        super().__init__(world, done)
        far, near = world.add_node("far"), world.add_node("near")
        if self.chance.random() < 0.5:
            world.set_links(BAD)
        self.near, self.far = near, far
        client = near.connect()
        self.subscriptions: list[headrace.Subscription] = []
        self.publishers: list[Publisher] = []
        self.publishers_of: list[list[Publisher]] = []
        for stream_id in range(1, self.chance.randint(1, 2) + 1):
            is_local = self.chance.random() < 0.4
            channel = (
                "aeron:ipc?term-length=64k" if is_local else "aeron:udp?endpoint=near:40300|term-length=64k"
            )
            self.subscriptions.append(client.add_subscription(channel, stream_id))
            self.publishers_of.append([])
            node = near if is_local else far
            for _ in range(self.chance.randint(2, 4)):
                publication = node.connect().add_exclusive_publication(channel, stream_id)
                publisher = Publisher(len(self.publishers), publication, node.clock, self.chance)
                self.publishers.append(publisher)
                self.publishers_of[-1].append(publisher)
                node.run(publisher.step)
        self.is_by_image = self.chance.random() < 0.1
        self.poller = headrace.Poller(*self.subscriptions)
        # Kept for the whole run: an iterator has no state that a time-out could end.
        self.iterators = [aiter(subscription) for subscription in self.subscriptions]
        self.polled = aiter(self.poller)
        self.watch(near)

    def expects_more(self, index: int) -> bool:
        """Whether a subscription has not had all messages of its publishers."""
        missing = {message for publisher in self.publishers_of[index] for message in publisher.messages}
        return not missing.issubset(self.received)

    def ways(self) -> list[Way]:
        index = self.chance.randrange(len(self.subscriptions))
        subscription, iterator = self.subscriptions[index], self.iterators[index]

        def with_thread() -> Received:
            way = self.chance.choice(SUBSCRIPTION_WAYS)
            self.done.append(way.__name__)
            if way is iterate and not self.expects_more(index):
                # It waits without end.
                return []
            return way(subscription)

        async def receive_async() -> Received:
            try:
                async with asyncio.timeout(self.patience_s()):
                    return [bytes(await aio.receive(subscription))]
            except TimeoutError:
                return []

        async def loop_async() -> Received:
            taken: Received = []
            wanted = self.chance.randint(1, 100)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.patience_s()):
                    async for message in iterator:
                        taken.append(bytes(message))
                        if len(taken) == wanted:
                            return taken
                    pytest.fail("the iteration ended though its subscription is open")
            return taken

        async def timed() -> Received:
            return await self.timed(iterator)

        async def cancelled() -> Received:
            return await self.cancelled(iterator)

        def poll_several() -> Received:
            taken: Received = []
            self.poller.poll(lambda _, payload, header: taken.append(bytes(payload)), 3)
            return taken

        def receive_of_several() -> Received:
            found = self.poller.receive(timeout_s=self.patience_s())
            return [] if found is None else [bytes(found[1])]

        async def iterate_several() -> Received:
            try:
                async with asyncio.timeout(self.patience_s()):
                    return [bytes((await anext(self.polled))[1])]
            except TimeoutError:
                return []

        def by_image() -> Received:
            return images(subscription)

        if self.is_by_image:
            return [by_image]
        return [
            *(with_thread,) * 3,
            receive_async,
            loop_async,
            timed,
            cancelled,
            poll_several,
            receive_of_several,
            iterate_several,
        ]

    async def pause(self) -> None:
        """The other machine stands still, for less than images live."""
        self.done.append("pause")
        if not self.far.is_paused:
            self.far.pause()
            await asyncio.sleep(self.chance.choice((0.01, 0.06, 0.3)))
            self.far.resume()

    async def run(self) -> None:
        count = sum(len(publisher.messages) for publisher in self.publishers)
        while len(self.received) < count:
            try:
                if self.chance.random() < 0.02:
                    await self.pause()
                else:
                    await self.read_with(self.chance.choice(self.ways()))
                if self.is_by_image:
                    await asyncio.sleep(0)
            except StopAsyncIteration:
                pytest.fail("an iterator ended though its subscription is open")
        for number, publisher in enumerate(self.publishers):
            own = [message for message in self.received if message.split()[0] == b"%d" % number]
            assert own == publisher.messages, f"of publisher {number}"
        for subscription in self.subscriptions:
            assert subscription.poll_message() is None
            subscription.close()
        for iterator in (*self.iterators, self.polled):
            with pytest.raises(StopAsyncIteration):
                await anext(iterator)


class LiveReplay(Readings):
    """A reader of a recording that goes on, with silences of its publisher."""

    def __init__(self, world: World, done: list[str]) -> None:
        super().__init__(world, done)
        self.node = world.add_node("store")
        self.node.run_archive(segment_file_length=128 * 1024, low_storage_space_threshold=0)
        self.watch(self.node)

    async def run(self) -> None:
        channel, stream_id = "aeron:ipc?term-length=64k", 1001
        async with await AsyncArchive.connect(self.node.connect()) as archive:
            await archive.start_recording(channel, stream_id, location=SourceLocation.LOCAL, auto_stop=True)
            publication = archive.archive.client.add_exclusive_publication(channel, stream_id)
            found = await self._first_recording(archive)
            publisher = Publisher(0, publication, self.node.clock, self.chance)
            self.node.run(publisher.step)
            async with await archive.replay(found.recording_id) as replay:
                await self._read(replay, publisher)
        assert self.received == publisher.messages

    async def _first_recording(self, archive: AsyncArchive) -> RecordingDescriptor:
        for _ in range(1000):
            if found := await archive.list_recordings():
                return found[0]
            await asyncio.sleep(0.01)
        pytest.fail("no recording began")

    async def _read(self, replay: AsyncReplay, publisher: Publisher) -> None:
        def next_of_replay() -> Received:
            return [bytes(next(replay.replay))]

        async def timed() -> Received:
            return await self.timed(replay)

        async def cancelled() -> Received:
            return await self.cancelled(replay)

        while len(self.received) < len(publisher.messages):
            try:
                await self.read_with(self.chance.choice((timed, cancelled, timed, cancelled, next_of_replay)))
            except (StopIteration, StopAsyncIteration):
                pytest.fail(
                    f"the replay ended after {len(self.received)} of {len(publisher.messages)} messages"
                )
        with pytest.raises(StopAsyncIteration):
            await anext(replay)


def run(seed: int) -> tuple[tuple[int, int], int]:
    """One run under a seed; gives what tells runs apart."""
    with World(seed) as world:
        scenario = LiveReplay if seed % 4 == 3 else SeveralPublishers
        done: list[str] = []
        with replayable(world, __file__, done):
            world.run_async(scenario(world, done).run())
        return world.digest, world.now_ns


@pytest.mark.parametrize("seed", SEEDS)
def test_no_way_of_receiving_loses_repeats_or_ends(seed: int) -> None:
    run(seed)


def test_the_same_seed_gives_the_same_run_of_readings() -> None:
    assert run(20) == run(20)


@pytest.mark.skipif(not SECONDS, reason="for `make simulate`: SIMULATE_SECONDS says for how long")
@pytest.mark.timeout(0)
def test_new_seeds() -> None:
    run_new_seeds(run, "receiving programs")
