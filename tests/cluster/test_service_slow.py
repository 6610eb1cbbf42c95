"""Handlers that hold a member up are named, with where and what to do."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace import HeadraceError, MediaDriver
from headrace.cluster import ClientSession, ClusteredService, ClusterError, ClusterNode
from headrace.cluster.member.consensus_module import ConsensusModule
from headrace.cluster.node.turns import NodeTurns
from headrace.cluster.service import container
from headrace.cluster.service.batch_runs import MessageBatch
from headrace.cluster.service.cluster import Cluster
from headrace.cluster.service.container import ServiceContainer
from headrace.cluster.service.keep_alive import KeepAlive, Watched
from headrace.testing import World
from tests.cluster.scripted import Recorder, Rig
from tests.helpers import TIMEOUT_S

TAKES_S = 0.25
SELF = -(1 << 63) + 1


class Slow(Recorder):
    """Takes its time over what is asked for so, in virtual time."""

    def __init__(self, wait: Callable[[float], object]) -> None:
        super().__init__()
        self.wait = wait

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        super().on_session_message(session, timestamp, message, position)
        if message == b"slow":
            self.wait(TAKES_S)

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        super().on_timer_event(correlation_id, timestamp)
        if correlation_id == 9:
            self.wait(2 * TAKES_S)


class SlowBatches(Slow):
    def on_session_messages(self, batch: MessageBatch) -> None:
        self.state += list(batch)
        self.wait(TAKES_S)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "takes too long" in record.getMessage()]


def test_a_handler_that_takes_long_is_named_with_its_place_and_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "headrace.cluster")
    with World(3) as world:
        rig = Rig(world)
        service = Slow(world.run_for)
        module, container = rig.started(service)
        module.term()
        module.message(SELF, b"quick")
        module.timer(1, 1)
        rig.until(lambda: "on_timer_event" in service.names())
        assert (warnings(caplog), container.slowest_handler) == ([], "")
        position = module.message(SELF, b"slow")
        rig.until(lambda: warnings(caplog))
        (told,) = warnings(caplog)
        assert told.startswith(
            "WARN - on_session_message of service_id=0 takes too long, "
            f"first at log_position={position}: the service handles nothing else until it returns"
        )
        assert f"log_position={position}, after 0.25" in told
        position = module.timer(9, 1)
        rig.until(lambda: len(warnings(caplog)) == 2)
        assert warnings(caplog)[1].startswith("WARN - on_timer_event of service_id=0 takes too long, ")
        assert container.slowest_handler.startswith(
            f"on_timer_event of service_id=0 takes too long: log_position={position}, after 0.5"
        )
        assert rig.errors == []


def test_a_handler_of_batches_that_takes_long_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "headrace.cluster")
    with World(3) as world:
        rig = Rig(world)
        module, _ = rig.started(SlowBatches(world.run_for))
        module.term()
        module.message(SELF, b"one")
        rig.until(lambda: warnings(caplog))
        assert warnings(caplog)[0].startswith("WARN - on_session_messages of service_id=0 takes too long, ")


class SlowBeside(Slow):
    """Takes its time where no message is handled."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        super().on_start(cluster, snapshot)
        self.wait(TAKES_S)

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield b"first"
        self.wait(TAKES_S)
        yield b"second"

    def do_background_work(self, now_ns: int) -> int:
        if self.state and "background" not in self.answers:
            self.answers.append("background")
            self.wait(TAKES_S)
        return 0


def test_handlers_beside_the_messages_are_named_as_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "headrace.cluster")
    with World(3) as world:
        rig = Rig(world)
        module, _ = rig.started(SlowBeside(world.run_for))
        module.term()
        module.message(SELF, b"quick")
        rig.until(lambda: len(warnings(caplog)) == 2)
        module.snapshot()
        rig.until(lambda: len(warnings(caplog)) == 3)
        assert [text.split(" of service_id=0 ")[0] for text in warnings(caplog)] == [
            f"WARN - {name}" for name in ("on_start", "do_background_work", "on_take_snapshot")
        ]
        assert rig.errors == []


def test_the_end_of_a_container_that_was_held_up_names_the_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    with World(3) as world:
        rig = Rig(world)
        service = Slow(world.run_for)
        module, made = rig.started(service)
        module.term()
        position = module.message(SELF, b"slow")
        rig.until(lambda: made.slowest_handler)
        monkeypatch.setattr(container, "hear", lambda _: held_up())
        rig.until(lambda: made.failure is not None)
        assert isinstance(made.failure, ClusterError)
        assert re.search(
            "service interval exceeded: interval_ns=2: on_session_message of service_id=0 takes too long: "
            rf"log_position={position}, after 0\.25\d s; the service handles nothing else until",
            str(made.failure),
        )
        assert "on_session_message of service_id=0" in rig.errors[-1]


def held_up() -> int:
    raise HeadraceError("service interval exceeded: interval_ns=2")


@pytest.mark.parametrize(
    ("slowest", "said"),
    [
        (
            "on_timer_event of service_id=0 takes too long: log_position=96",
            "interval_ns=2: on_timer_event of",
        ),
        ("", "interval_ns=2"),
    ],
)
def test_the_end_of_a_node_that_was_held_up_names_the_handler(slowest: str, said: str) -> None:
    module: Any = SimpleNamespace(
        sequence=held_up,
        do_work=held_up,
        has_terminated=False,
        awaited=(),
        config=SimpleNamespace(idle_strategy="yield"),
        _clock=None,
    )
    service: Any = SimpleNamespace(slowest_handler=slowest)
    turns = NodeTurns(cast("ConsensusModule", module), None, [cast("ServiceContainer", service)])
    for take in (lambda: turns.run(lambda: False), turns.do_work):
        with pytest.raises(HeadraceError, match=said) as told:
            take()
        assert isinstance(told.value, ClusterError) == bool(slowest)


def test_only_time_counts_in_which_nothing_comes_out_of_a_handler() -> None:
    callbacks, state = (
        SimpleNamespace(running_since_ns=None),
        SimpleNamespace(is_leader=False, output_count=0),
    )
    service = Watched(cast("Any", callbacks), cast("Any", state))
    assert not service.look()
    callbacks.running_since_ns = 5
    # In a replay a handler may take its time.
    assert [service.look() for _ in range(3)] == [True] * 3
    state.is_leader = True
    assert not service.look()
    state.output_count += 1
    assert [service.look() for _ in range(2)] == [True, False]
    callbacks.running_since_ns = 6
    assert [service.look() for _ in range(2)] == [True, False]
    callbacks.running_since_ns = None
    assert not service.look()


def test_what_a_service_asks_for_comes_out_of_its_handler() -> None:
    counts: list[int] = []

    class Asking(Recorder):
        def on_session_message(
            self, session: ClientSession | None, timestamp: int, message: bytes, position: int
        ) -> None:
            assert self.cluster is not None
            assert session is not None
            state = made._state
            counts.append(state.output_count)
            for ask in (lambda: session.offer(b"x"), lambda: self.cluster.schedule_timer(1, 1)):  # type: ignore[union-attr]
                ask()
                counts.append(state.output_count)

    with World(3) as world:
        rig = Rig(world)
        module, made = rig.started(Asking())
        module.term()
        module.open(5)
        module.message(5, b"go")
        rig.until(lambda: len(counts) == 3)
        assert counts == [counts[0], counts[0] + 1, counts[0] + 2]


def test_the_keeper_keeps_each_client_alive_while_a_handler_runs() -> None:
    kept = [threading.Event(), threading.Event()]

    def gone() -> None:
        kept[0].set()
        raise HeadraceError("closed")

    clients: Any = [SimpleNamespace(_keep_alive=gone), SimpleNamespace(_keep_alive=kept[1].set)]
    services: Any = [SimpleNamespace(look=lambda: True), SimpleNamespace(look=lambda: False)]
    with KeepAlive(clients, services):
        assert all(one.wait(TIMEOUT_S) for one in kept)
    assert not any(thread.name == "headrace-keeper" for thread in threading.enumerate())


class SlowByNature(ClusteredService):
    """Takes longer over a message than its driver waits for a client."""

    takes_s = 0.0

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        threading.Event().wait(self.takes_s)
        if session is not None:
            session.offer(message)


@pytest.mark.system
@pytest.mark.slow
def test_a_start_waits_for_a_handler_that_takes_longer_than_the_time_out_of_clients(tmp_path: Path) -> None:
    settings: Any = {"directory": tmp_path / "driver", "client_liveness_timeout_ns": 2_000_000_000}
    with (
        MediaDriver(**settings) as driver,
        ClusterNode(SlowByNature(), driver=driver, directory=tmp_path / "node") as node,
        node.connect() as client,
    ):
        client.offer_blocking(b"slow")
        assert client.receive(TIMEOUT_S)
    service = SlowByNature()
    service.takes_s = 5.0
    with (
        MediaDriver(**settings) as driver,
        ClusterNode(service, driver=driver, directory=tmp_path / "node") as node,
    ):
        node.wait_until_leader(TIMEOUT_S)
        service.takes_s = 0.0
        with node.connect() as client:
            client.offer_blocking(b"quick")
            message = client.receive(TIMEOUT_S)
            assert message is not None
            assert message.payload == b"quick"
