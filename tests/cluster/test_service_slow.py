"""Handlers that hold a member up are named, with where and what to do."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace import HeadraceError
from headrace.cluster import ClientSession, ClusterError
from headrace.cluster.member.consensus_module import ConsensusModule
from headrace.cluster.service import container
from headrace.cluster.service.batches import MessageBatch
from headrace.cluster.service.cluster import Cluster
from headrace.cluster.service.container import ServiceContainer
from headrace.cluster.turns import NodeTurns
from headrace.testing import World
from tests.cluster.scripted import Recorder, Rig

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
            f"first at log_position={position}: the member takes no messages until a handler returns"
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
            rf"log_position={position}, after 0\.25\d s; the member takes no messages until",
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
