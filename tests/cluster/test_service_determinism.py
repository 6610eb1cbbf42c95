"""A service that is checked: what does not follow from the log is found, and where."""

from __future__ import annotations

import itertools
import os
import random
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import pytest

from headrace.cluster import (
    ClientSession,
    Cluster,
    ClusteredService,
    DeterminismCheck,
    DeterminismError,
    Role,
)
from headrace.testing import World
from tests.cluster.scripted import Recorder, Rig

ids = itertools.count()


@pytest.fixture
def rig() -> Iterator[Rig]:
    with World(5) as world:
        yield Rig(world)


class KeepAlive(ClusteredService):
    """Right, but for what `wrong` does with a message."""

    def __init__(
        self, wrong: Callable[[KeepAlive, ClientSession | None, bytes], object] | None = None
    ) -> None:
        self.number = next(ids)
        self.state: list[bytes] = []
        self.cluster: Cluster | None = None
        self.seen: list[ClientSession] = []
        self.wrong = wrong

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        self.state = list(snapshot or ())

    def on_session_open(self, session: ClientSession, timestamp: int) -> None:
        assert self.cluster is not None
        assert self.cluster.session(session.id) is session
        self.seen.append(session)

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        assert session is None or session in self.seen
        self.state.append(bytes(message))
        if self.wrong is not None and message == b"wrong":
            self.wrong(self, session, message)
        elif session is not None:
            session.offer((b"re:", message))

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        assert self.cluster is not None
        assert self.cluster.schedule_timer(correlation_id + 1, timestamp)

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield from self.state


def scheduled(service: KeepAlive) -> None:
    assert service.cluster is not None
    service.cluster.schedule_timer(service.number, 1)


def stored(service: KeepAlive) -> None:
    service.state.append(str(service.number).encode())


def raised(service: KeepAlive) -> None:
    if service.number % 2:
        raise ValueError("odd")


PARTED: dict[str, tuple[Callable[..., object], str]] = {
    "offers": (
        lambda self, session, _: session.offer(b"%d" % self.number),
        "asks for ('session.offer', 5, b'",
    ),
    "offers-once": (
        lambda self, session, _: self.number % 2 and session.offer(b"x"),
        "('session.offer', 5, b'x')",
    ),
    "schedules": (lambda self, *_: scheduled(self), "asks for ('schedule_timer', "),
    "keeps": (lambda self, *_: stored(self), "after on_session_message message 2 of the state is b'"),
    "raises": (lambda self, *_: raised(self), "ValueError('odd')"),
}


@pytest.mark.parametrize("kind", PARTED)
def test_the_first_place_where_two_instances_part_is_named(rig: Rig, kind: str) -> None:
    wrong, text = PARTED[kind]
    service = DeterminismCheck(lambda: KeepAlive(wrong))
    module, _ = rig.started(service)
    module.term()
    module.open(5)
    module.message(5, b"right")
    position = module.message(5, b"wrong")
    module.message(5, b"wrong")
    rig.until(lambda: service.difference)
    assert service.difference is not None
    assert service.findings == [service.difference]
    assert f"first seen at log_position={position}: " in service.difference
    assert text in service.difference
    rig.world.run_for(0.1)
    parted = [error for error in rig.errors if "not deterministic" in error]
    assert len(parted) == 1
    assert "on_session_message of service_id=0 raised DeterminismError" in parted[0]


ASKED: dict[str, tuple[Callable[[], object], str]] = {
    "time": (time.time, "calls time.time: use the timestamp of the entry"),
    "datetime": (datetime.now, "calls datetime.datetime.now: use the timestamp"),
    "monotonic": (time.monotonic_ns, "calls time.monotonic_ns"),
    "random": (lambda: random.shuffle([1, 2, 3]), "calls random.getrandbits: use random.Random(seed)"),
    "uuid": (uuid.uuid4, "calls os.urandom"),
    "urandom": (lambda: os.urandom(3), "calls os.urandom"),
    "localtime": (time.localtime, "calls time.localtime: use the timestamp"),
    "strftime": (lambda: time.strftime("%H"), "calls time.strftime: use the timestamp"),
    "uuid1": (uuid.uuid1, "calls uuid.uuid1: use random.Random(seed)"),
    "unseeded": (lambda: random.Random(), "calls random.Random without a seed: use random.Random(seed)"),
    "mktemp": (lambda: tempfile.mktemp(), "calls tempfile.mktemp"),
    "hash": (lambda: hash("text"), "calls builtins.hash: hashes of texts"),
    "thread": (
        lambda: threading.Thread(target=lambda: None).start(),
        "let a client of the cluster do it",
    ),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_handler_that_asks_the_machine_is_told_what_to_use(rig: Rig, kind: str) -> None:
    ask, text = ASKED[kind]
    service = DeterminismCheck(lambda: KeepAlive(lambda *_: ask()))
    module, _ = rig.started(service)
    module.term()
    module.open(5)
    module.message(5, b"wrong")
    rig.until(lambda: rig.errors)
    assert text in rig.errors[0]
    assert service.difference is None
    with pytest.raises(DeterminismError, match=re.escape(text)):
        service.verify()


def test_a_service_that_is_right_is_told_nothing_and_answers_once(rig: Rig) -> None:
    chance = random.Random(3)
    service = DeterminismCheck(lambda: KeepAlive(lambda *_: chance.random()))
    answers = rig.node.connect().add_subscription("aeron:ipc?alias=egress|term-length=64k", 102)
    module, _ = rig.started(service)
    module.term()
    module.open(5)
    module.message(5, b"one")
    module.message(5, b"wrong")
    module.timer(7, 1)
    heard: list[bytes] = []
    rig.until(lambda: answers.poll(lambda data, _: heard.append(data)))
    position = module.snapshot()
    module.next(object)  # the timer, which is asked for once
    ack = module.acked()
    assert (ack.log_position, ack.relevant_id >= 0) == (position, True)
    module.close_session(5)
    rig.world.run_for(0.1)
    assert heard[0][32:] == b"re:one"
    assert len(heard) == 1
    assert rig.errors == []
    service.verify()
    assert service.difference is None


def test_a_snapshot_is_loaded_into_both(rig: Rig) -> None:
    service = DeterminismCheck(Recorder)
    module, container = rig.started(service)
    module.term()
    module.message(1, b"kept")
    ack_position = module.snapshot()
    ack = module.acked()
    module.client.close()
    rig.until(lambda: container.is_closed)
    again = DeterminismCheck(Recorder, state_every=0)
    module = rig.module(term_id=3, position=ack_position, recordings=(ack.relevant_id,))
    rig.container(again)
    assert module.acked().relevant_id > 0
    recorder = again.service
    assert isinstance(recorder, Recorder)
    assert recorder.state == [b"kept"]


def led(service: KeepAlive) -> None:
    assert service.cluster is not None
    if service.cluster.role is Role.LEADER:
        stored(service)


class Told(KeepAlive):
    """Keeps what it was told of its role."""

    def __init__(self) -> None:
        super().__init__(lambda self, *_: self.state.extend(self.roles))
        self.roles: list[bytes] = []

    def on_role_change(self, role: Role) -> None:
        self.roles.append(role.name.encode())


@pytest.mark.parametrize("role", [Role.LEADER, Role.FOLLOWER])
@pytest.mark.parametrize(
    "make",
    [
        lambda: KeepAlive(lambda self, *_: led(self)),
        lambda: KeepAlive(lambda self, session, _: self.state.append(b"%d" % session.offer(b"x"))),
        Told,
    ],
    ids=["role", "offer", "role-change"],
)
def test_what_follows_from_the_role_is_found_in_either(
    rig: Rig, make: Callable[[], KeepAlive], role: Role
) -> None:
    service = DeterminismCheck(make)
    reader = rig.node.connect().add_subscription("aeron:ipc?alias=egress|term-length=64k", 102)
    module = rig.module()
    rig.container(service)
    module.acked()
    module.recovery.close()
    module.join(role)
    module.term()
    module.open(5)
    module.message(5, b"right")
    position = module.message(5, b"wrong")
    rig.until(lambda: service.difference)
    assert service.difference is not None
    assert f"log_position={position}: after on_session_message message " in service.difference
    assert "in a second instance, in the other role, " in service.difference
    reader.close()


def test_what_no_client_took_is_told_to_both(rig: Rig) -> None:
    """A service may keep an answer for later that had no room: the other instance does so too."""

    def waits(service: KeepAlive, session: ClientSession | None, message: bytes) -> None:
        assert session is not None
        service.state.append(b"%d" % (session.offer(bytes(4000)) > 0))

    service = DeterminismCheck(lambda: KeepAlive(waits))
    module, _ = rig.started(service)
    idle = rig.node.connect().add_subscription("aeron:ipc?alias=egress|term-length=64k", 102)
    module.term()
    module.open(5)
    for _ in range(20):
        module.message(5, b"wrong")
    module.message(5, b"right")
    rig.until(lambda: b"right" in list(service.service.on_take_snapshot()))
    assert {b"0", b"1"} <= set(service.service.on_take_snapshot())
    service.verify()
    idle.close()


def test_a_large_state_is_compared_in_proportion_to_the_entries(rig: Rig) -> None:
    yields = [0]

    class Large(KeepAlive):
        def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
            super().on_start(cluster, [bytes(900)] * 100)

        def on_take_snapshot(self) -> Iterable[bytes]:
            for message in self.state:
                yields[0] += 1
                yield message

    service = DeterminismCheck(lambda: Large(lambda self, *_: stored(self)))
    module, _ = rig.started(service)
    module.term()
    for _ in range(200):
        last_alike = module.message(-1, b"right")
    rig.until(lambda: len(service.service.state) == 300)  # type: ignore[attr-defined]
    # Not 200 times what two states of 100 messages have.
    assert yields[0] < 200 * 30
    module.message(-1, b"wrong")
    for _ in range(50):
        module.message(-1, b"right")
    rig.until(lambda: service.difference)
    assert service.difference is not None
    found = re.search(r"the states were still alike at log_position=(\d+)", service.difference)
    assert found is not None
    assert 0 < int(found[1]) <= last_alike
