"""What programs do wrong in handlers and around them: it is told plainly, and a member does not end at each start."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headrace
from headrace.cluster import ClientSession, ClusterError, ClusterNode, DeterminismCheck
from headrace.cluster.service.log_reader import Reading
from headrace.testing import World
from tests.cluster.scripted import Recorder, Rig
from tests.helpers import await_true

SELF = -(1 << 63) + 1


@pytest.fixture
def rig() -> Iterator[Rig]:
    with World(5) as world:
        yield Rig(world)


class Row:
    """Cannot be shown, and errors that name it neither."""

    def __repr__(self) -> str:
        raise LookupError("no name")


class Panic(BaseException):
    """As native code raises it."""


RAISED = [
    SystemExit(3),
    asyncio.CancelledError(),
    ValueError("no"),
    Panic("native"),
    GeneratorExit(),
    KeyError(Row()),
]


@pytest.mark.parametrize("raised", RAISED, ids=lambda raised: type(raised).__name__)
def test_what_a_handler_raises_is_told_and_the_log_goes_on(rig: Rig, raised: BaseException) -> None:
    class Raising(Recorder):
        def on_session_message(
            self, session: ClientSession | None, timestamp: int, message: bytes, position: int
        ) -> None:
            super().on_session_message(session, timestamp, message, position)
            if message == b"bad":
                raise raised

        def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
            raise raised

    service = Raising()
    module, container = rig.started(service)
    module.term()
    for payload in (b"one", b"bad", b"two"):
        module.message(SELF, payload)
    module.timer(1, 1)
    module.message(SELF, b"three")
    rig.until(lambda: service.state == [b"one", b"bad", b"two", b"three"])
    assert container.failure is None
    assert [text.split(" raised ")[0] for text in rig.errors] == [
        "on_session_message of service_id=0",
        "on_timer_event of service_id=0",
    ]


@pytest.mark.parametrize("raised", RAISED, ids=lambda raised: type(raised).__name__)
@pytest.mark.parametrize("is_generator", [False, True])
def test_what_a_snapshot_raises_fails_the_snapshot_alone(
    rig: Rig, raised: BaseException, *, is_generator: bool
) -> None:
    class Raising(Recorder):
        def on_take_snapshot(self) -> Iterable[bytes]:
            if not is_generator:
                raise raised
            return self.parts()

        def parts(self) -> Iterator[bytes]:
            yield b"first"
            raise raised

    service = Raising()
    module, container = rig.started(service)
    module.term()
    module.snapshot()
    assert module.acked().relevant_id == -1
    module.message(SELF, b"next")
    rig.until(lambda: service.state == [b"next"])
    assert container.failure is None
    (told,) = rig.errors
    assert told.startswith("on_take_snapshot of service_id=0 raised")


async def awaited(self: Recorder, *_: object) -> None:
    """The container does not await it."""


def generated(self: Recorder, *_: object) -> Iterator[None]:
    """The container does not ask for what it gives."""
    yield


@pytest.mark.parametrize(
    ("name", "handler", "text"),
    [
        ("on_session_message", awaited, "is async: handlers are called, not awaited"),
        ("on_take_snapshot", awaited, "is async"),
        ("on_timer_event", generated, "is a generator, whose code would never run"),
        ("on_session_message", 5, "is 5: it must be a method"),
    ],
)
def test_a_handler_that_would_never_run_is_refused(rig: Rig, name: str, handler: object, text: str) -> None:
    kind = type("Service", (Recorder,), {name: handler})
    with pytest.raises(headrace.ConfigError, match=f"has {name}, which {text}"):
        rig.container(kind())
    with pytest.raises(headrace.ConfigError, match=text):
        DeterminismCheck(kind)


@dataclass
class Costly:
    """A log each of whose messages takes so long."""

    takes_ns: int
    now_ns: int = 0
    asked: list[int] = field(default_factory=list)

    def poll(self, commit_position: int, fragment_limit: int) -> int:
        self.asked.append(fragment_limit)
        self.now_ns += fragment_limit * self.takes_ns
        return fragment_limit

    def monotonic_ns(self) -> int:
        return self.now_ns


def test_a_turn_is_of_as_many_messages_as_fit_into_a_short_time() -> None:
    slow, quick = Costly(25_000_000), Costly(1_000)
    reading: Any = Reading.__new__(Reading)
    reading._may_go_on, reading._chunk = (lambda: True), 1
    for log in (slow, quick, slow):
        reading._client = SimpleNamespace(clock=log)
        for _ in range(20):
            begin_ns = log.now_ns
            count = reading._paced(log, 0, 500)
            assert 0 < count <= 500
            # Once, where quick messages were followed by slow ones, as many as are asked for at a time.
            assert log.now_ns - begin_ns <= (64 if log is slow else 500) * log.takes_ns
    assert sum(slow.asked[-10:]) <= 40
    assert max(quick.asked) == 64
    reading._may_go_on = lambda: False
    assert reading._paced(quick, 0, 500) <= 64


def test_background_work_that_says_nothing_or_raises_does_no_harm(rig: Rig) -> None:
    class Background(Recorder):
        calls_count = 0

        def do_background_work(self, now_ns: int) -> int:
            self.calls_count += 1
            if self.calls_count == 2:
                raise RuntimeError("no metrics")
            return None  # type: ignore[return-value]

    service = Background()
    module, container = rig.started(service)
    module.term()
    rig.until(lambda: service.calls_count == 2)
    rig.world.run_for(0.5)
    assert service.calls_count == 2, "it is not called again at once"
    rig.until(lambda: service.calls_count > 10)
    assert container.failure is None
    (told,) = rig.errors
    assert told.startswith("do_background_work of service_id=0 raised RuntimeError('no metrics')")


def test_what_on_error_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fails(text: str) -> None:
        raise ValueError(text)

    with World(5) as world:
        rig = Rig(world)
        rig.errors = type("Failing", (list,), {"append": staticmethod(fails)})()
        service = Recorder()
        service.raises["on_timer_event"] = RuntimeError("wrong")
        caplog.set_level(logging.ERROR, "headrace.cluster")
        module, container = rig.started(service)
        module.term()
        module.timer(1, 1)
        module.message(SELF, b"goes on")
        rig.until(lambda: service.state == [b"goes on"])
        assert container.failure is None
        assert "on_error raised" in caplog.text


def test_a_check_needs_two_instances() -> None:
    service = Recorder()
    with pytest.raises(
        TypeError, match="must make a new instance at each call; it returned the same object twice"
    ):
        DeterminismCheck(lambda: service)


def test_a_node_refuses_what_would_wait_for_itself(tmp_path: Path) -> None:
    told: list[str] = []
    has_run = threading.Event()

    class Waiting(Recorder):
        def on_session_message(
            self, session: ClientSession | None, timestamp: int, message: bytes, position: int
        ) -> None:
            for call in (node.wait, node.take_snapshot, node.connect):
                try:
                    call()
                except ClusterError as refusal:
                    told.append(str(refusal))
            has_run.set()

    with ClusterNode(Waiting(), directory=tmp_path) as node, node.connect() as cluster:
        with pytest.raises(ClusterError, match="the node has its own thread; give is_invoked=True"):
            node.do_work()
        cluster.offer_blocking(b"now")
        await_true(has_run.is_set)
        assert len(told) == 3
        assert all("would wait for itself; call it from another thread" in text for text in told)


def test_a_node_that_cannot_make_its_log_says_why_it_does_not_lead(tmp_path: Path) -> None:
    channel = "aeron:udp?endpoint=localhost:24470|term-length=64k|mtu=70000"
    with ClusterNode(Recorder(), directory=tmp_path, log_channel=channel) as node:
        await_true(lambda: node.module.election_failure)
        with pytest.raises(ClusterError, match=r"as its election fails: .*mtu"):
            node.wait_until_leader(0.1)
