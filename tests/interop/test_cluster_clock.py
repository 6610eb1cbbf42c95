"""A cluster's time in microseconds and nanoseconds: the same unit in both languages, and the refusal of another."""

from __future__ import annotations

from pathlib import Path

import pytest
from benches.processes import JavaPeer

from headrace.cluster import ClusterNode, ClusterTimeUnit
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.counter_service import Counter
from tests.interop.echo_service import Echo
from tests.interop.test_cluster_node import (
    JAVA_CLOCKS,
    UDP,
    call,
    java_container,
    java_turn,
    node_for_container,
    our_node,
    our_turn,
    settled_state,
    state_of,
    tool,
)
from tests.interop.test_cluster_service import container, echoes, nodes, until
from tests.ports import free_endpoint

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize(("clock", "unit"), [("us", "MICROSECONDS"), ("ns", "NANOSECONDS")])
def test_a_container_and_a_client_in_java_have_the_unit_of_our_module(
    java: JavaPeer, tmp_path: Path, clock: str, unit: str
) -> None:
    settings = {"cluster_clock": clock}
    with node_for_container(tmp_path, **settings) as (node, ingress), java_container(java, node) as first:
        node.wait_until_leader(TIMEOUT_S)
        aeron = node.driver.directory
        assert first.printed("UNIT") == unit
        lines = call(java, aeron, ingress, UDP, "echo:200:100", "unit", "later")
        assert lines[1:] == ["ECHOED 200", f"UNIT {unit}", "LATER", "DONE"]
        at_snapshot = settled_state(java, aeron, ingress, 200)
        assert "SNAPSHOT applied successfully" in tool(java, node.module.directory, "snapshot")
        assert first.printed("SNAPSHOT") == at_snapshot
        assert call(java, aeron, ingress, UDP, "echo:100:100")[-1] == "DONE"
        # The timer that was far ahead is of the snapshot, or has fired since.
        await_true(lambda: state_of(java, aeron, ingress).split(" ")[2:] == ["7", "6"])
        before = state_of(java, aeron, ingress)
        node.close()
        assert first.ended() == 0
    with node_for_container(tmp_path, **settings) as (node, ingress), java_container(java, node) as again:
        node.wait_until_leader(TIMEOUT_S)
        assert again.printed("STARTED") == at_snapshot
        assert state_of(java, node.driver.directory, ingress) == before


@pytest.mark.parametrize(("clock", "unit"), [("us", ClusterTimeUnit.MICROS), ("ns", ClusterTimeUnit.NANOS)])
def test_our_container_has_the_unit_of_a_module_in_java(
    java: JavaPeer, tmp_path: Path, clock: str, unit: ClusterTimeUnit
) -> None:
    (node,), ingress = nodes(java, tmp_path, 1, {"aeron.cluster.clock": JAVA_CLOCKS[clock]})
    errors: list[str] = []
    service = Echo()
    with node.running() as process, container(node, service, errors) as first:
        echoes(java, node, ingress, 0, 300)
        until(lambda: service.timers == 3, "timers")
        assert service.cluster is not None
        assert service.cluster.time_unit is unit
        assert "SNAPSHOT" in tool(java, node.cluster, "snapshot")
        echoes(java, node, ingress, 300, 400)
        assert "SHUTDOWN" in tool(java, node.cluster, "shutdown")
        assert first.join(TIMEOUT_S)
        assert first.failure is None
        process.wait(TIMEOUT_S)
    again = Echo()
    with node.running(), container(node, again, errors):
        echoes(java, node, ingress, 400, 500)
        assert (again.restored, again.count) == (400, 500)
        assert again.cluster is not None
        assert again.cluster.time_unit is unit
    assert errors == []


@pytest.mark.parametrize("clock", ["us", "ns"])
def test_our_node_refuses_a_log_and_a_snapshot_of_another_unit(
    java: JavaPeer, tmp_path: Path, clock: str
) -> None:
    unit = {"us": "MICROS", "ns": "NANOS"}[clock]
    for takes_snapshot, refusal in (
        (False, f"incompatible timestamp units: MILLIS log={unit}"),
        (True, f"incompatible time unit: MILLIS snapshot={unit}"),
    ):
        with java_turn(java, tmp_path, clock) as turn:
            assert call(java, turn.aeron, turn.ingress, UDP, "echo:10:100")[-1] == "DONE"
            if takes_snapshot:
                # Waits until it is taken.
                assert "SNAPSHOT applied successfully" in tool(java, turn.cluster, "snapshot")
            turn.program.terminate()
        with ClusterNode(Counter(), directory=tmp_path, ingress_endpoint=free_endpoint()) as node:
            await_true(lambda node=node: node.failure)
            assert refusal in str(node.failure)
    # Nothing was changed: with the right one it goes on.
    with our_node(tmp_path, service := Counter(), cluster_clock=clock):
        assert service.state.startswith("20 ")


def test_a_node_in_java_refuses_a_log_and_a_snapshot_of_ours_of_another_unit(
    java: JavaPeer, tmp_path: Path
) -> None:
    for takes_snapshot, refusal in (
        (False, "incompatible timestamp units: MILLISECONDS log=NANOSECONDS"),
        (True, "incompatible time unit: MILLISECONDS snapshot=NANOSECONDS"),
    ):
        with our_turn(java, tmp_path, "ns") as turn:
            assert call(java, turn.aeron, turn.ingress, UDP, "echo:10:100")[-1] == "DONE"
            if takes_snapshot:
                # Waits until it is taken.
                assert "SNAPSHOT applied successfully" in tool(java, turn.cluster, "snapshot")
            turn.program.terminate()
        with java_turn(java, tmp_path) as turn:
            # That its process ends then is for the reference: on a busy machine it has not, once.
            await_true(lambda turn=turn, refusal=refusal: refusal in tool(java, turn.cluster, "errors"))
            turn.program.terminate()
    with our_node(tmp_path, service := Counter(), cluster_clock="ns"):
        assert service.state.startswith("20 ")
