"""`headrace cluster backup` and `backup-query`: from a running member to one that starts from the copy."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from benches.processes import ROOT

from headrace.cluster import ClusterNode
from tests.cli.test_cluster_node import Sum, refused, running
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_member

pytestmark = pytest.mark.system


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "headrace", "cluster", *map(str, words)]


def said(*words: object, status: int = 0) -> str:
    done = subprocess.run(
        command(*words), capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=ROOT
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def watched(directory: Path) -> dict[str, object]:
    """What `watch` says of a backup."""
    [shown] = json.loads(said("watch", "--once", "--json", directory))["members"]
    assert isinstance(shown, dict)
    return shown


def added(node: ClusterNode, number: int) -> int:
    with node.connect() as cluster:
        cluster.offer_blocking(b"%d" % number)
        message = cluster.receive(TIMEOUT_S)
        assert message is not None
        return int(message.payload)


def test_a_member_starts_from_a_backup_in_another_process(tmp_path: Path) -> None:
    members, copy, service = free_member(), tmp_path / "copy", Sum()
    with ClusterNode(service, directory=tmp_path / "member", members=members) as node:
        node.wait_until_leader(TIMEOUT_S)
        assert added(node, 5) == 5
        with running(command("backup", copy, "--members", members, "--address", "127.0.0.1:0")) as process:
            await_true(lambda: watched(copy)["state"] == "backing_up")
            node.take_snapshot(TIMEOUT_S)
            assert "next: " in said("backup-query", copy)
            assert "next: " in said("backup-query", copy, "--delay", "0")
            await_true(lambda: watched(copy)["snapshots"] == 1)
            assert added(node, 7) == 12
            await_true(lambda: watched(copy)["commit_position"] == node.module.commit_position)
            shown = watched(copy)
            assert (shown["role"], shown["errors"]) == ("backup", 0)
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0
        directory = tmp_path / "member" / "cluster"
        assert "not a cluster backup node" in said("backup-query", directory, status=255)
    assert "BACKUP" in said("describe", copy)
    check_one_starts(copy)
    check_three_start(copy)


def check_one_starts(copy: Path) -> None:
    service = Sum()
    with ClusterNode(service, directory=copied(copy, "one"), members=free_member()) as node:
        node.wait_until_leader(TIMEOUT_S)
        await_true(lambda: service.value == 12)


def check_three_start(copy: Path) -> None:
    services, members = [Sum(), Sum(), Sum()], ",".join(free_member() for _ in range(3))
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(
                ClusterNode(service, directory=copied(copy, str(number)), members=members, member_id=number)
            )
            for number, service in enumerate(services)
        ]
        await_true(lambda: [service.value for service in services] == [12, 12, 12])
        assert added(nodes[0], 1) == 13
        await_true(lambda: [service.value for service in services] == [13, 13, 13])


def copied(copy: Path, name: str) -> Path:
    return Path(shutil.copytree(copy, copy.with_name(name)))


def test_settings_are_refused_under_the_names_that_were_given(tmp_path: Path) -> None:
    assert "aeron.cluster.consensus.endpoints" in refused(command("backup", tmp_path))
    members = ("backup", tmp_path, "--members", "alpha,beta")
    assert "aeron.cluster.consensus.channel" in refused(command(*members))
    unknown = refused(
        command(*members, "--address", "gamma:0", "-D", "aeron.cluster.ingress.channel=aeron:udp")
    )
    assert "aeron.cluster.ingress.channel=aeron:udp: is not a setting of the archive or backup" in unknown
    assert list(tmp_path.iterdir()) == []
