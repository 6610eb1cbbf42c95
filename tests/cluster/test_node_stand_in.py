"""Nodes whose handlers take long: archive and consensus module go on."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import ArchiveError, MediaDriver
from headrace.cluster import ClientSession, ClusterError, ClusterNode
from headrace.cluster.node.stand_in import StandIn
from tests.cluster.test_node import Total
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_member

HEARTBEAT_TIMEOUT_S = 1.0


class Held(Total):
    """Handles a 0 for as long as the test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.is_held = threading.Event()
        self.released = threading.Event()

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        if int(message) == 0:
            self.is_held.set()
            assert self.released.wait(TIMEOUT_S)
        super().on_session_message(session, timestamp, message, position)


@pytest.fixture
def service() -> Iterator[Held]:
    made = Held()
    yield made
    made.released.set()


def test_clients_connect_and_send_while_a_handler_runs(tmp_path: Path, service: Held) -> None:
    with ClusterNode(service, directory=tmp_path) as node, node.connect() as first:
        first.offer_blocking(b"0")
        assert service.is_held.wait(TIMEOUT_S)
        with node.connect() as second:
            before = node.module.commit_position
            second.offer_blocking(b"7")
            await_true(lambda: node.module.commit_position > before)
            service.released.set()
            assert second.receive().payload == b"7"
        assert first.receive().payload == b"0"
    with ClusterNode(again := Total(), directory=tmp_path) as node:
        node.wait_until_leader()
        await_true(lambda: again.value == 7)


def test_a_part_that_fails_while_a_handler_runs_ends_the_node_and_is_named(
    tmp_path: Path, service: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[str] = []
    has_failed = threading.Event()

    def fail() -> int:
        has_failed.set()
        raise ArchiveError("no disk")

    with ClusterNode(service, directory=tmp_path, on_error=errors.append) as node, node.connect() as cluster:
        cluster.offer_blocking(b"0")
        assert service.is_held.wait(TIMEOUT_S)
        monkeypatch.setattr(node.archive, "do_work", fail)
        assert has_failed.wait(TIMEOUT_S)
        service.released.set()
        with pytest.raises(ClusterError, match="no disk"):
            node.wait(TIMEOUT_S)
    assert not any("service_id=0" in error for error in errors), errors


def test_a_turn_of_the_stand_in_may_close_the_node_and_not_wait_for_it(
    tmp_path: Path, service: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def close() -> int:
        try:
            node.wait()
        except ClusterError as refusal:
            asked.append(str(refusal))
        node.close()
        return 0

    with ClusterNode(service, directory=tmp_path) as node, node.connect() as cluster:
        cluster.offer_blocking(b"0")
        assert service.is_held.wait(TIMEOUT_S)
        monkeypatch.setattr(node.archive, "do_work", close)
        await_true(lambda: node.is_closed)
        monkeypatch.undo()
        service.released.set()
        await_true(node._has_run.is_set)
    assert "would wait for itself" in str(asked[0])


@pytest.mark.system
@pytest.mark.slow
def test_a_leader_whose_handler_sends_nothing_for_too_long_ends_and_names_it(
    tmp_path: Path, service: Held
) -> None:
    settings: Any = {"directory": tmp_path / "driver", "client_liveness_timeout_ns": 2_000_000_000}
    with (
        MediaDriver(**settings) as driver,
        ClusterNode(service, driver=driver, directory=tmp_path / "node") as node,
        node.connect() as cluster,
    ):
        cluster.offer_blocking(b"0")
        await_true(lambda: node.module.failure)
        service.released.set()
        with pytest.raises(ClusterError, match="on_session_message of service_id=0 takes too long: log_pos"):
            node.wait(TIMEOUT_S)


# --- the stand-in alone ----------------------------------------------------------------------------------------------


def test_turns_are_taken_while_a_step_is_under_way_and_by_one_thread_at_a_time() -> None:
    taken = threading.Event()
    under_way = threading.Lock()

    def take_turns(is_over: Callable[[], bool]) -> None:
        while not is_over():
            assert under_way.acquire(blocking=False)
            taken.set()
            time.sleep(0)
            under_way.release()

    def step() -> int:
        assert taken.wait(TIMEOUT_S)
        taken.clear()
        return 5

    with StandIn(take_turns) as stand_in:
        for _ in range(20):
            assert stand_in.serve(step) == 5
            assert under_way.acquire(blocking=False)
            under_way.release()
            stand_in.check()
    assert not any(thread.name == "headrace-stand-in" for thread in threading.enumerate())


def test_what_a_turn_raises_comes_out_of_a_look_and_what_a_step_raises_out_of_that() -> None:
    failed = threading.Event()

    def take_turns(_: Callable[[], bool]) -> None:
        failed.set()
        raise ValueError("of a turn")

    def step() -> int:
        assert failed.wait(TIMEOUT_S)
        raise KeyError("of a step")

    with StandIn(take_turns) as stand_in:
        with pytest.raises(KeyError, match="of a step"):
            stand_in.serve(step)
        with pytest.raises(ValueError, match="of a turn"):
            stand_in.check()


# --- a cluster of three ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def cluster_of(*services: Total, directory: Path) -> Iterator[list[ClusterNode]]:
    members = ",".join(free_member() for _ in services)
    with contextlib.ExitStack() as held:
        yield [
            held.enter_context(
                ClusterNode(
                    service,
                    directory=directory / str(number),
                    members=members,
                    member_id=number,
                    leader_heartbeat_timeout_ns=int(HEARTBEAT_TIMEOUT_S * 1e9),
                    leader_heartbeat_interval_ns=100_000_000,
                    startup_canvass_timeout_ns=int(2 * HEARTBEAT_TIMEOUT_S * 1e9),
                )
            )
            for number, service in enumerate(services)
        ]


def leader(nodes: list[ClusterNode]) -> ClusterNode:
    await_true(lambda: any(node.module.is_leader for node in nodes))
    return next(node for node in nodes if node.module.is_leader)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize(
    "is_held", [lambda leads: leads, lambda leads: not leads], ids=["leader", "followers"]
)
def test_handlers_that_outlast_the_time_out_of_heartbeats_cost_no_election(
    tmp_path: Path, is_held: Callable[[bool], bool]
) -> None:
    services = [Held() for _ in range(3)]
    with cluster_of(*services, directory=tmp_path) as nodes:
        leads = leader(nodes)
        term_id = leads.module.leadership_term_id
        held = [one for one, node in zip(services, nodes, strict=True) if is_held(node is leads)]
        for service in services:
            if service not in held:
                service.released.set()
        with leads.connect() as first:
            first.offer_blocking(b"0")
            assert all(service.is_held.wait(TIMEOUT_S) for service in held)
            end = time.monotonic() + 2 * HEARTBEAT_TIMEOUT_S
            while time.monotonic() < end:
                # Each is opened by a majority.
                leads.connect().close()
            for service in held:
                service.released.set()
            assert first.receive().payload == b"0"
        assert leads.module.is_leader
        assert [node.module.leadership_term_id for node in nodes] == [term_id] * 3
        assert all(node.failure is None for node in nodes)
