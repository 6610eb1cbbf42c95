"""What a program asks of its node as an operator does, and where the node cannot do it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cluster import ClusterError, ClusterNode, ModuleState
from headrace.cluster.member.states import Toggle
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
            ClusterError, match=r"takes no request for a snapshot after 0\.2 s: it is in state SUSPENDED"
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
