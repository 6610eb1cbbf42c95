"""A log that is left within a message of several fragments: the service handles what a restart has it handle."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pytest

from headrace.archive.client import calls
from headrace.cluster import ClientSession, Cluster, ClusteredService, ServiceContainer
from headrace.cluster.member.log_reader import LogReader
from headrace.cluster.member.log_recording import LogRecording
from headrace.cluster.member.states import ModuleState, Toggle
from headrace.cluster.protocol.header import pack_header
from headrace.cluster.service.batch_runs import BatchedLog
from headrace.cluster.service.state import ServiceState
from headrace.testing import World
from tests.cluster.members import Member, Script

# Of a log with the default MTU.
FRAGMENT = 1376
LONG = 30_000


class Handled(ClusteredService):
    """Notes what it is given."""

    def __init__(self, answer: bytes = b"") -> None:
        self.handled: list[tuple[Any, ...]] = []
        self.answer = answer
        self.cluster: Cluster | None = None

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self.handled.append((session is None, message[:1], len(message), position))
        if session is not None and self.answer:
            assert self.cluster is not None
            self.cluster.offer(self.answer)

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        self.handled.append(("timer", correlation_id))


class Lab:
    """A member with one service, and a client."""

    def __init__(self, world: World, answer: bytes = b"", term_length: str = "128k", **driver: Any) -> None:
        self.world = world
        self.answer = answer
        channel = f"aeron:udp?term-length={term_length}"
        self.member = Member(world, world.add_node("leader", **driver), service_count=1, log_channel=channel)
        self.service = self.serve()
        self.member.await_leader()
        self.script = Script(self.member, world.add_node("client"))
        self.script.connect()
        self.settle()

    def serve(self) -> Handled:
        service, node = Handled(self.answer), self.member.node
        node.host(
            lambda: ServiceContainer(service, driver=node, is_invoked=True, storage=node.disk("cluster"))
        )
        return service

    def settle(self) -> None:
        """Until all that was sent is handled: nothing more is appended, and the service has all of it."""
        before = -1
        while before != (now := self.member.context.commit_position):
            before = now
            self.world.run_for(0.2)

    def start_again(self) -> Handled:
        """A crash of the processes, and what the service handles in the start after it."""
        self.begin_again()
        self.member.await_leader()
        self.settle()
        return self.service

    def begin_again(self) -> None:
        self.member.node.crash(keeps_writes=True)
        self.member.node.start()
        self.member.start()
        self.service = self.serve()


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261128) as made:
        yield made


@pytest.mark.parametrize(
    ("term_length", "sizes"),
    [
        ("1m", (LONG,)),
        ("16m", (LONG,)),
        ("16m", (10, LONG, LONG, FRAGMENT, LONG, LONG)),
        ("128k", (15_000, 70)),
        ("64k", (8000,)),
    ],
)
def test_a_replay_that_is_lost_within_a_message_goes_on_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch, term_length: str, sizes: tuple[int, ...]
) -> None:
    monkeypatch.setattr("tests.cluster.members.SEGMENT_LENGTH", 16 << 20)
    lab = Lab(world, term_length=term_length)
    for number in range(160):
        lab.script.message(b"%c" % (97 + number % 26) * sizes[number % len(sizes)])
    lab.settle()
    live = lab.service.handled
    assert len(live) == 160
    poll, lost_at = LogReader.poll, []

    def stopped_on_the_way(reader: LogReader, limit_position: int) -> int:
        count = poll(reader, limit_position)
        if not lost_at and reader.position > 1000:
            lost_at.append(reader.position)
            lab.member.context.archive.ask(calls.stop_all_replays())
        return count

    monkeypatch.setattr(LogReader, "poll", stopped_on_the_way)
    lab.begin_again()
    lab.member.await_leader()
    lab.settle()
    assert lost_at
    assert lab.member.context.counters.election_count.value == 1
    assert lab.member.module.error_count == 1, "the replay was not lost"
    assert lab.service.handled == live
    assert lab.start_again().handled == live


def test_a_message_longer_than_the_window_of_a_driver_is_replayed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Services wait for the end of a message that the module reads: the stream must have room for all of it."""
    monkeypatch.setattr("tests.cluster.members.SEGMENT_LENGTH", 16 << 20)
    lab = Lab(world, term_length="16m", ipc_publication_term_window_length=65_536)
    big = Script(
        lab.member, world.add_node("other"), ingress="aeron:udp?endpoint=leader:9002|term-length=16m"
    )
    big.connect()
    for number in range(5):
        big.message(b"%c" % (97 + number) * (1_500_000 + number))
        lab.settle()
    live = lab.service.handled
    assert [length for _, _, length, _ in live] == [1_500_000 + number for number in range(5)]
    assert lab.start_again().handled == live
    poll, lost_at = LogReader.poll, []

    def stopped_within(reader: LogReader, limit_position: int) -> int:
        count = poll(reader, limit_position)
        if not lost_at and 96 < reader.position % 1_500_000 < 1_000_000:
            lost_at.append(reader.position)
            lab.member.context.archive.ask(calls.stop_all_replays())
        return count

    with monkeypatch.context() as patch:
        patch.setattr(LogReader, "poll", stopped_within)
        lab.begin_again()
        lab.member.await_leader()
        lab.settle()
    assert lost_at
    assert lab.service.handled == live
    assert lab.start_again().handled == live


@pytest.mark.parametrize("answer", [b"", b"z" * 5000], ids=["a client's", "the service's own"])
def test_an_election_within_a_message_neither_loses_nor_doubles_it(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    """The archive stops recording when the module last saw it within the message."""
    lab = Lab(world, answer)
    member = lab.member
    before = member.module.commit_position
    seen, within = LogRecording.position, before + (96 if answer else 0) + FRAGMENT + 32
    with monkeypatch.context() as patch:
        patch.setattr(
            LogRecording,
            "position",
            property(lambda leads: min(within, seen.fget(leads))),  # type: ignore[attr-defined]
        )
        lab.script.message(b"go" if answer else b"q" * 5000)
        recorded = before + (96 if answer else 0) + 5000
        member.until(lambda: seen.fget(member.module._term_log.recording) >= recorded, "all of it recorded")  # type: ignore[attr-defined]
        recording_id = member.context.recording_log.last_term.recording_id
        member.context.archive.ask(calls.stop_recording_by_id(recording_id))
        member.until(lambda: member.context.counters.election_count.value == 2, "an election")
    member.until(lambda: member.module.is_leader and member.module.leadership_term_id == 1, "a new term")
    lab.settle()
    live = lab.service.handled
    assert [(is_own, length) for is_own, _, length, _ in live] == (
        [(False, 2), (True, 5000)] if answer else [(False, 5000)]
    )
    assert lab.start_again().handled == live


class Block:
    """An image that has one block of frames."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self.position = 0

    def block_poll(self, handler: Callable[..., object], _: int) -> int:
        self.position = len(self.block)
        handler(self.block, 0, 0, 0)
        return self.position


def frame(flags: int, payload: bytes) -> bytes:
    length = 32 + len(payload)
    header = struct.pack("<ibBHiiiiq", length, 0, flags, 1, 0, 0, 0, 0, 0)
    return header + payload + bytes(-length % 32)


def test_fragments_without_a_beginning_are_no_entry_of_a_batch() -> None:
    """A log that is joined within a message begins with some, and what is in them a client has chosen."""
    forged = struct.pack("<HHHHqqq", 24, 20, 111, 17, 0, 666, 12345)
    entry = pack_header(0, 5, 0) + b"whole"
    block = Block(
        b"".join(
            (
                frame(0, forged),
                frame(0x40, b"the end"),
                frame(0x80, entry[:40]),
                frame(0, entry[40:45]),
                frame(0x40, entry[45:]),
            )
        )
    )
    taken: list[bytes] = []
    log = BatchedLog(
        cast("Any", None),
        cast("Any", block),
        1 << 20,
        lambda data, _: taken.append(data),
        ServiceState(),
        lambda _: None,
    )
    log.poll(1 << 20, 10)
    assert taken == [entry]


def test_a_snapshot_that_an_election_undoes_is_awaited_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive stops recording before the snapshot's place in the log is agreed upon."""
    lab = Lab(world)
    member = lab.member
    position = member.module.commit_position
    with monkeypatch.context() as patch:
        patch.setattr(LogRecording, "position", position)
        member.module.request(Toggle.SNAPSHOT)
        member.until(lambda: member.module.state is ModuleState.SNAPSHOT, "a snapshot under way")
        recording_id = member.context.recording_log.last_term.recording_id
        member.context.archive.ask(calls.stop_recording_by_id(recording_id))
        member.until(lambda: member.context.counters.election_count.value == 2, "an election")
    member.until(lambda: member.module.is_leader and member.module.leadership_term_id == 1, "a new term")
    lab.script.term_id = 1
    lab.script.message(b"after")
    lab.settle()
    assert [length for _, _, length, _ in lab.service.handled] == [5]
    member.module.request(Toggle.SNAPSHOT)
    before = member.module.snapshot_count
    member.until(lambda: member.module.snapshot_count > before, "a snapshot")
    assert member.module.failure is None
