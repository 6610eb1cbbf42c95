"""Our node and consensus module with the reference's clients, containers, archives and whole nodes."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from benches.processes import ROOT, JavaPeer, PeerUnavailable, output

from headrace.cluster import ClusterNode
from headrace.cluster.ground.counters import ClusterCounter
from headrace.security import Accepted, Challenge, Rejected, Verdict
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.counter_service import Counter
from tests.ports import free_endpoint

pytestmark = [pytest.mark.interop, pytest.mark.slow]

UDP = "aeron:udp?endpoint=127.0.0.1:0"
IPC = "aeron:ipc"


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaPeer:
    """The reference's newest published artifacts; skips where Maven cannot bring them."""
    sources = [
        ROOT / "tests" / "interop" / "java" / f"{name}.java" for name in ("CounterService", "ClusterCaller")
    ]
    try:
        return JavaPeer(tmp_path_factory.mktemp("java-cluster-node"), *sources)
    except PeerUnavailable as reason:
        pytest.skip(f"interoperability: {reason}")


@contextmanager
def our_node(directory: Path, *services: Counter, **settings: Any) -> Iterator[tuple[ClusterNode, str]]:
    """A node of ours that leads, and what Java's client calls its ingress."""
    endpoint = free_endpoint()
    with ClusterNode(*services, directory=directory, ingress_endpoint=endpoint, **settings) as node:
        node.wait_until_leader(TIMEOUT_S)
        yield node, f"0={endpoint}"
        assert node.failure is None


def call(
    java: JavaPeer, aeron: object, ingress: str, egress: str, *commands: str, **properties: str
) -> list[str]:
    """What a Java client printed."""
    return output(java.command("ClusterCaller", aeron, ingress, egress, *commands, properties=properties))


# --- their client --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("is_ipc", "egress"), [(False, UDP), (False, IPC), (True, IPC)])
def test_messages_come_back(java: JavaPeer, tmp_path: Path, is_ipc: bool, egress: str) -> None:
    service = Counter()
    with our_node(tmp_path, service) as (node, ingress):
        ingress = IPC if is_ipc else ingress
        lines = call(java, node.driver.directory, ingress, egress, "echo:1000:100", "echo:20:100000", "state")
        state = lines[-2].removeprefix("STATE ")
        assert lines == ["CONNECTED", "ECHOED 1000", "ECHOED 20", f"STATE {state}", "DONE"]
        assert state.startswith("1020 ")
        await_true(lambda: service.state.endswith(" 20 20"))
        assert service.refused == []
        assert node.module.error_count == 0


def test_sessions_end_by_time_by_the_service_and_by_their_number(java: JavaPeer, tmp_path: Path) -> None:
    service = Counter()
    with our_node(
        tmp_path, service, session_timeout_ns=3_000_000_000, max_sessions=3, authorisation="DENY_ALL"
    ) as (node, ingress):
        aeron = node.driver.directory
        lines = call(java, aeron, ingress, UDP, "alive:7000", "more:3", "snapshot", "echo:1:10", "silent")
        assert lines == [
            "CONNECTED",
            "ALIVE []",
            "ECHOED 10",
            "ECHOED 10",
            "REFUSED ClusterException ERROR - concurrent session limit",
            "ADMIN SNAPSHOT UNAUTHORISED_ACCESS Execution of the SNAPSHOT request was not authorised",
            "ECHOED 1",
            "CLOSED [CLOSED TIMEOUT]",
            "DONE",
        ]
        lines = call(java, aeron, ingress, UDP, "echo:1:10", "close")
        assert lines == ["CONNECTED", "ECHOED 1", "CLOSED [CLOSED SERVICE_ACTION]", "DONE"]
        await_true(lambda: service.cluster is not None and not service.cluster.sessions)
        assert service.count == 22


class Asking:
    """Lets in who gives credentials, or the answer to a question."""

    def on_connect(self, credentials: bytes) -> Verdict:
        if not credentials:
            return Challenge(b"who is there?", self._answered)
        return Accepted(b"alice") if hmac.compare_digest(credentials, b"alice:secret") else Rejected()

    @staticmethod
    def _answered(answer: bytes) -> Verdict:
        return Accepted(b"asked") if hmac.compare_digest(answer, b"it is me") else Rejected()


def test_credentials_challenges_and_snapshots_that_are_allowed(java: JavaPeer, tmp_path: Path) -> None:
    with our_node(tmp_path, Counter(), authenticator=Asking(), authorisation="ALLOW_ALL") as (node, ingress):
        aeron = node.driver.directory
        lines = call(java, aeron, ingress, UDP, "echo:1:10", "snapshot", credentials="alice:secret")
        assert lines == ["CONNECTED", "ECHOED 1", "ADMIN SNAPSHOT OK ", "DONE"]
        lines = call(java, aeron, ingress, UDP, "echo:1:10", answer="it is me")
        assert lines == ["CHALLENGED who is there?", "CONNECTED", "ECHOED 1", "DONE"]
        for properties in ({"credentials": "alice:wrong"}, {"answer": "it is not"}):
            lines = call(java, aeron, ingress, UDP, **properties)
            assert lines[-1] == "REFUSED AuthenticationException ERROR - session failed authentication"
        await_true(lambda: counter(node, ClusterCounter.SNAPSHOT_COUNT) == 1)


def counter(node: ClusterNode, type_id: int) -> int:
    """A counter of the node's driver."""
    with node.connect_driver() as client:
        return next(each.value for each in client.counters if each.type_id == type_id)
