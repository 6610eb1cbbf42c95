"""The reference's ClusterTool on our members, and our commands on the reference's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benches.processes import JavaPeer

from headrace.cluster import ClusterNode
from headrace.cluster.files.recording_log import RECORDING_LOG_NAME
from headrace.cluster.member.states import ModuleState
from tests.cli.test_cluster_member import run
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.counter_service import Counter
from tests.interop.members import running_cluster
from tests.ports import free_endpoint

pytestmark = [pytest.mark.interop, pytest.mark.slow]

FAILED = 255
RECORD_LENGTH = 64


def tool(java: JavaPeer, directory: Path, *words: object, status: int = 0, **properties: str) -> str:
    """What ClusterTool printed."""
    command = java.command(
        "io.aeron.cluster.ClusterTool",
        directory,
        *words,
        properties={
            "aeron.cluster.tool.timeout": "30s",
            "aeron.archive.control.channel": "aeron:ipc",
            "aeron.archive.control.response.channel": "aeron:ipc",
            **{name.replace("_", "."): value for name, value in properties.items()},
        },
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_their_tool_on_our_member(java: JavaPeer, tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with ClusterNode(
        Counter(), directory=tmp_path, ingress_endpoint=free_endpoint(), session_timeout_ns=600_000_000_000
    ) as node:
        node.wait_until_leader(TIMEOUT_S)
        text = tool(java, directory, "describe")
        assert "CONSENSUS_MODULE" in text
        assert "CONTAINER" in text
        assert tool(java, directory, "pid").strip() == run("pid", directory).stdout.strip()
        tool(java, directory, "is-leader")
        text = tool(java, directory, "list-members")
        assert "leaderMemberId=0, memberId=0, activeMembers=[" in text
        with node.connect() as cluster:
            assert "SNAPSHOT applied successfully" in tool(java, directory, "snapshot")
            found = tool(java, directory, "describe-latest-cm-snapshot")
            assert f"Cluster Session: clusterSessionId={cluster.cluster_session_id}" in found
            ours = run("describe-latest-snapshot", directory).stdout
        assert described(ours) == described(found), f"{ours}\n{found}"
        assert "SUSPEND applied successfully" in tool(java, directory, "suspend")
        await_true(lambda: node.module.state is ModuleState.SUSPENDED)
        assert "needs to be ACTIVE" in tool(java, directory, "snapshot", status=FAILED)
        assert "RESUME applied successfully" in tool(java, directory, "resume")
        assert "type=SNAPSHOT" in tool(java, directory, "recording-log")
        assert "snapshots=[" in tool(java, directory, "recovery-plan", 1, aeron_dir=node.driver.directory)
        tool(java, directory, "errors")
        assert "VALIDATE_RECORDING_LOG applied successfully" in tool(
            java, directory, "validate-recording-log"
        )
        assert "SHUTDOWN applied successfully" in tool(java, directory, "shutdown")
        await_true(lambda: node.module.has_terminated)
        assert node.failure is None
    assert tool(java, directory, "recording-log").count("type=SNAPSHOT") == 4
    assert "CONSENSUS_MODULE" in tool(java, directory, "describe")
    assert "invalidate latest snapshot: true" in tool(java, directory, "invalidate-latest-snapshot")
    assert valid_snapshots(directory) == 2
    tool(java, directory, "sort-recording-log", status=FAILED)  # It is sorted.
    # From the snapshot before, and the log after it.
    with ClusterNode(Counter(), directory=tmp_path, ingress_endpoint=free_endpoint()) as node:
        node.wait_until_leader(TIMEOUT_S)
        assert "ABORT applied successfully" in tool(java, directory, "abort")
        await_true(lambda: node.module.has_terminated)
    tool(java, directory, "seed-recording-log-from-snapshot")
    assert valid_snapshots(directory) > 0
    with ClusterNode(Counter(), directory=tmp_path, ingress_endpoint=free_endpoint()) as node:
        node.wait_until_leader(TIMEOUT_S)


def valid_snapshots(directory: Path) -> int:
    lines = run("recording-log", directory, "--json").stdout.splitlines()
    return sum(entry["type"] == "SNAPSHOT" and entry["is_valid"] for entry in map(json.loads, lines))


def test_our_commands_on_their_member(java: JavaPeer, tmp_path: Path) -> None:
    directory = tmp_path / "member-0" / "cluster"
    with running_cluster(java, tmp_path, "e") as (member,):
        await_true(lambda: subprocess.call(is_leader(directory), stdout=subprocess.DEVNULL) == 0)
        marks = [json.loads(line) for line in run("describe", directory, "--json").stdout.splitlines()]
        assert [mark["component"] for mark in marks] == ["CONSENSUS_MODULE", "CONTAINER"]
        assert run("pid", directory).stdout.strip() == str(member.process_id)
        answer = json.loads(run("list-members", directory, "--json").stdout)
        assert (answer["leader_member_id"], answer["active_members"][0]["ingress_endpoint"]) == (
            0,
            member.ingress,
        )
        assert "SNAPSHOT applied successfully" in run("snapshot", directory).stdout
        ours = run("describe-latest-snapshot", directory).stdout
        theirs = tool(java, directory, "describe-latest-cm-snapshot")
        assert described(ours) == described(theirs), f"{ours}\n{theirs}"
        assert "SUSPEND applied successfully" in run("suspend", directory).stdout
        await_true(lambda: status(directory)["state"] == "suspended")
        assert "needs to be ACTIVE" in run("snapshot", directory, status=255).stderr
        assert "RESUME applied successfully" in run("resume", directory).stdout
        row = status(directory)
        assert (row["role"], row["state"], row["snapshots"], row["elections"]) == ("leader", "active", 1, 1)
        run("errors", directory)
        plan = run("recovery-plan", directory, 1, "-a", directory.with_name("archive"), "--json")
        assert len(json.loads(plan.stdout)["snapshots"]) == 2
        assert "SHUTDOWN applied successfully" in run("shutdown", directory).stdout
        member.ended()
    printed = tool(java, directory, "recording-log").splitlines()
    assert run("recording-log", directory).stdout.strip() in printed, printed
    entries = [json.loads(line) for line in run("recording-log", directory, "--json").stdout.splitlines()]
    assert [one["type"] for one in entries].count("SNAPSHOT") == 4
    told = run("invalidate-latest-snapshot", directory, "--yes").stdout
    assert told.splitlines()[0] == " invalidate latest snapshot: true"
    assert valid_snapshots(directory) == 2
    printed = tool(java, directory, "recording-log").splitlines()
    assert run("recording-log", directory).stdout.strip() in printed, printed
    assert tool(java, directory, "recording-log").count("isValid=false") == 2
    run("seed", directory, "--yes")
    assert "type=SNAPSHOT" in tool(java, directory, "recording-log")
    assert run("is-leader", directory, status=1).stdout == "not leader\n"


def test_their_tool_changes_the_recording_log_of_our_member(java: JavaPeer, tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with ClusterNode(Counter(), directory=tmp_path) as node:
        node.wait_until_leader(TIMEOUT_S)
        node.take_snapshot()
        node.take_snapshot()
        assert "ABORT applied successfully" in tool(java, directory, "abort")
        await_true(lambda: node.module.has_terminated)
        assert node.failure is None
    tool(java, directory, "sort-recording-log", status=FAILED)
    in_order = entries(directory)
    unsort(directory)
    tool(java, directory, "sort-recording-log")
    assert entries(directory) == in_order
    assert " invalidate latest snapshot: true" in tool(java, directory, "invalidate-latest-snapshot")
    assert [one["is_valid"] for one in entries(directory)] == [True] * 3 + [False] * 2
    tool(java, directory, "seed-recording-log-from-snapshot")
    check_seeded(directory, in_order)


def test_our_commands_change_the_recording_log_of_their_member(java: JavaPeer, tmp_path: Path) -> None:
    directory = tmp_path / "member-0" / "cluster"
    with running_cluster(java, tmp_path, "e") as (member,):
        await_true(lambda: subprocess.call(is_leader(directory), stdout=subprocess.DEVNULL) == 0)
        for count in (1, 2):
            run("snapshot", directory)
            await_true(lambda count=count: status(directory)["snapshots"] == count)
        assert "ABORT applied successfully" in run("abort", directory).stdout
        member.ended()
    assert "CONSENSUS_MODULE" in run("describe", directory).stdout
    assert "already in order" in run("sort", directory, status=FAILED).stderr
    in_order = entries(directory)
    unsort(directory)
    run("sort", directory)
    assert entries(directory) == in_order
    tool(java, directory, "sort-recording-log", status=FAILED)
    run("invalidate-latest-snapshot", directory, "--yes")
    assert tool(java, directory, "recording-log").count("isValid=false") == 2
    plan = run("recovery-plan", directory, 1, "-a", directory.with_name("archive"), "--json")
    planned = {one["recording_id"] for one in json.loads(plan.stdout)["snapshots"]}
    assert planned == {one["recording_id"] for one in in_order[1:3]}
    run("seed", directory, "--yes")
    check_seeded(directory, in_order)
    theirs = tool(java, directory, "recording-log")
    assert (theirs.count("Entry{"), theirs.count("termBaseLogPosition=0, logPosition=0,")) == (2, 2)


def entries(directory: Path) -> list[dict[str, Any]]:
    """Of a recording log: a term, then two snapshots, each of the service and of the module."""
    return [json.loads(line) for line in run("recording-log", directory, "--json").stdout.splitlines()]


def unsort(directory: Path) -> None:
    """Have the file begin with its last record."""
    path = directory / RECORDING_LOG_NAME
    data = path.read_bytes()
    path.write_bytes(data[-RECORD_LENGTH:] + data[:-RECORD_LENGTH])


def check_seeded(directory: Path, before: list[dict[str, Any]]) -> None:
    """The log has the first of two snapshots, at position 0, and a copy has what it had before."""
    found = [(one["type"], one["recording_id"], one["log_position"]) for one in entries(directory)]
    assert found == [("SNAPSHOT", one["recording_id"], 0) for one in before[1:3]]
    assert (directory / f"{RECORDING_LOG_NAME}.bak").stat().st_size == len(before) * RECORD_LENGTH


def is_leader(directory: Path) -> list[str]:
    return [sys.executable, "-m", "headrace", "cluster", "is-leader", str(directory)]


def status(directory: Path) -> dict[str, Any]:
    (row,) = json.loads(run("watch", directory, "--once", "--json").stdout)["members"]
    assert isinstance(row, dict)
    return row


def described(text: str) -> list[str]:
    """The lines of a described snapshot, without the bytes that their tool shows."""
    return [line for line in text.split("\n") if line and not line[0].isdigit()]
