"""What a program asks of its node as an operator does, and where the node cannot do it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cluster import ClusterError, ClusterNode, ModuleState
from headrace.cluster.member.states import Toggle
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.session import SessionConnectRequest
from tests.cluster.test_node import Total, sums
from tests.helpers import TIMEOUT_S, await_true


def test_a_suspended_node_takes_no_snapshot_and_can_be_resumed(tmp_path: Path) -> None:
    """Also after a restart, which leaves nothing of the request to suspend but the state."""
    with ClusterNode(Total(), directory=tmp_path) as node:
        assert sums(node, 1) == [1]
        node.module.request(Toggle.SUSPEND)
        await_true(lambda: node.module.state is ModuleState.SUSPENDED and node.module.has_committed_all)
    with ClusterNode(Total(), directory=tmp_path) as node:
        node.wait_until_leader(TIMEOUT_S)
        with pytest.raises(
            ClusterError,
            match=r"does not accept a request for a snapshot after 0\.2 s: it is in state SUSPENDED",
        ):
            node.take_snapshot(timeout_s=0.2)
        node.module.request(Toggle.RESUME)
        await_true(lambda: node.module.takes_requests)
        node.take_snapshot(TIMEOUT_S)
        assert sums(node, 1) == [2]


def test_a_snapshot_that_is_not_taken_in_time_is_told_with_the_whole_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ClusterNode(Total(), directory=tmp_path) as node:
        node.wait_until_leader(TIMEOUT_S)
        counter = node.module._context.counters.toggle
        monkeypatch.setattr(node.module, "request", lambda _: setattr(counter, "value", Toggle.INACTIVE))
        with pytest.raises(
            ClusterError, match=r"has not taken the snapshot after 0\.3 s: it is in state ACTIVE"
        ):
            node.take_snapshot(timeout_s=0.3)


@pytest.mark.parametrize(("hears", "named"), [("localhost", "localhost."), ("0.0.0.0", "127.0.0.1")])
def test_a_member_that_would_answer_itself_opens_no_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, hears: str, named: str
) -> None:
    """However its own address is spelled: an answer that it took for a message would go round for ever."""
    with (
        ClusterNode(Total(), directory=tmp_path, ingress_endpoint=f"{hears}:0") as node,
        node.driver.connect() as client,
    ):
        node.wait_until_leader(TIMEOUT_S)
        ingress = node.module._clients.ingress
        assert ingress is not None
        endpoint = ingress.subscriptions[0].resolved_endpoint
        assert endpoint is not None
        port = endpoint.rpartition(":")[2]
        own = f"aeron:udp?endpoint={named}:{port}"
        with client.add_exclusive_publication(f"aeron:udp?endpoint=127.0.0.1:{port}", 101) as stranger:
            request = SessionConnectRequest(
                correlation_id=7, response_stream_id=101, version=3 << 8, response_channel=own
            )
            stranger.offer_blocking(encode(request), timeout_s=TIMEOUT_S)
            await_true(lambda: any("the member itself listens there" in text for text in caplog.messages))
            assert len(node.module._context.applied.sessions) == 0
