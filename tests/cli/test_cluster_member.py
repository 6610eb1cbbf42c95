"""`headrace cluster ...` on a member that runs, and after its end."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import ROOT
from rich.console import Console

from headrace.cli.cluster.status import _Members, _members_table
from headrace.cluster import ClusterError, ClusterNode
from headrace.cluster.common.counters import ClusterCounter
from headrace.cluster.member.states import ModuleState, Toggle
from headrace.cluster.node.running_member import MemberStatus, RunningMember
from tests.cli.fake_cnc import FakeCnc
from tests.cli.test_cluster_node import Broken, Sum
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system


def run(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace", "cluster", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=ROOT)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ClusterNode]:
    with ClusterNode(Sum(), directory=tmp_path, cluster_id=5, session_timeout_ns=300_000_000_000) as node:
        node.wait_until_leader(TIMEOUT_S)
        yield node


@pytest.fixture
def directory(node: ClusterNode) -> Path:
    return Path(node.directory) / "cluster"


def test_a_leader_says_who_it_is(node: ClusterNode, directory: Path) -> None:
    assert run("is-leader", directory).stdout == "leader\n"
    answer = json.loads(run("list-members", directory, "--json").stdout)
    assert (answer["leader_member_id"], answer["member_id"]) == (0, 0)
    (member,) = answer["active_members"]
    assert (member["member_id"], member["ingress_endpoint"]) == (0, "localhost:0")
    text = run("list-members", directory).stdout
    assert text.startswith("currentTimeNs=")
    assert ", leaderMemberId=0, memberId=0, activeMembers=[" in text
    marks = [json.loads(line) for line in run("describe", directory, "--json").stdout.splitlines()]
    assert [mark["component"] for mark in marks] == ["CONSENSUS_MODULE", "CONTAINER"]
    assert re.match(r"Type: CONSENSUS_MODULE \S+ \S+ \(start: ", run("describe", directory).stdout)
    assert run("pid", directory).stdout == f"{os.getpid()}\n"


def test_a_snapshot_is_taken_and_described(node: ClusterNode, directory: Path) -> None:
    assert "Snapshot not found" in run("describe-latest-snapshot", directory, status=255).stderr
    with node.connect() as cluster:
        assert run("snapshot", directory, "--dry-run").stdout == "Member [0]: would apply SNAPSHOT\n"
        assert run("snapshot", directory).stdout == "Member [0]: SNAPSHOT applied successfully\n"
        lines = run("describe-latest-snapshot", directory).stdout.splitlines()
        assert lines[0] == "Snapshot: appVersion=1 timeUnit=MILLISECONDS"
        assert lines[1].startswith("Consensus Module State: nextSessionId=2 ")
        assert lines[2].startswith(f"Cluster Session: clusterSessionId={cluster.cluster_session_id} ")
        assert lines[-2].startswith("End Snapshot, offset=")
        assert lines[-1].startswith("Consensus Module Snapshot End: memberId=0 recordingId=")
    found = run("describe-latest-snapshot", directory, "--json").stdout.splitlines()
    assert [json.loads(line)["kind"] for line in found][:2] == ["SnapshotMarker", "ConsensusModule"]
    (row,) = json.loads(run("watch", directory, "--once", "--json").stdout)["members"]
    assert (row["role"], row["state"], row["snapshots"], row["errors"]) == ("leader", "active", 1, 0)


def test_a_cluster_is_suspended_and_goes_on(node: ClusterNode, directory: Path) -> None:
    text = run("resume", directory, status=255).stderr
    assert text.startswith(
        "error: Member [0]: Unable to RESUME as the state of the consensus module is ACTIVE, "
    )
    assert text.endswith("but needs to be SUSPENDED\n")
    assert run("suspend", directory).stdout == "Member [0]: SUSPEND applied successfully\n"
    await_true(lambda: node.module.state is ModuleState.SUSPENDED)
    assert "is SUSPENDED, but needs to be ACTIVE" in run("snapshot", directory, status=255).stderr
    assert run("resume", directory).stdout == "Member [0]: RESUME applied successfully\n"
    assert node.module.state is ModuleState.ACTIVE
    node.module._context.counters.toggle.value = Toggle.INACTIVE
    text = run("snapshot", directory, status=255).stderr
    assert text == "error: Member [0]: Failed to apply SNAPSHOT, current toggle value = INACTIVE\n"


@pytest.mark.parametrize("activity", [-1, 1_700_000_000_000])
def test_what_is_asked_of_a_copy_is_not_done_by_the_member_that_runs(
    node: ClusterNode, directory: Path, tmp_path: Path, activity: int
) -> None:
    """The copy names the same driver and cluster."""
    copy = tmp_path / "copy"
    copy.mkdir()
    mark = bytearray((directory / "cluster-mark.dat").read_bytes())
    mark[16:24] = activity.to_bytes(8, "little", signed=True)
    (copy / "cluster-mark.dat").write_bytes(mark)
    text = run("abort", copy, status=255).stderr
    assert text.startswith(
        f"error: Member [0]: the mark file in {copy} shows no life, while a member answers"
    )
    assert node.module.is_leader


def test_of_two_operators_one_is_refused(
    node: ClusterNode, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen a toggle that is neutral; the second one is told what the first has asked for."""
    first, second = RunningMember(directory), RunningMember(directory)
    seen = second._counter(ClusterCounter.CONTROL_TOGGLE)
    monkeypatch.setattr(second, "_counter", lambda _: seen)
    first.ask(Toggle.SUSPEND)
    with pytest.raises(
        ClusterError, match=r"^Member \[0\]: Failed to apply SNAPSHOT, current toggle value = SUSPEND$"
    ):
        second.ask(Toggle.SNAPSHOT)
    await_true(lambda: node.module.state is ModuleState.SUSPENDED)


@pytest.mark.parametrize("name", ["shutdown", "abort"])
def test_a_cluster_ends(node: ClusterNode, directory: Path, name: str) -> None:
    assert run(name, directory).stdout == f"Member [0]: {name.upper()} applied successfully\n"
    await_true(lambda: node.module.has_terminated)
    assert node.failure is None
    # The driver runs on, and no member answers.
    for asked in ("snapshot", "resume"):
        assert (
            run(asked, directory, "--timeout", "0.2", status=255).stderr
            == "error: Timed out querying cluster.\n"
        )
    node.close()
    (row,) = json.loads(run("watch", directory, "--once", "--json").stdout)["members"]
    assert (row["role"], row["state"], row["term"]) == ("", "no driver", None)
    assert run("is-leader", directory, status=1).stdout == "not leader\n"
    entries = [json.loads(line) for line in run("recording-log", directory, "--json").stdout.splitlines()]
    assert [one["type"] for one in entries].count("SNAPSHOT") == (2 if name == "shutdown" else 0)
    plan = run("recording-plan", directory, 1, "-a", Path(node.directory) / "archive", "--json")
    assert len(json.loads(plan.stdout)["snapshots"]) == (2 if name == "shutdown" else 0)


def test_a_driver_that_starts_is_none_yet(node: ClusterNode, directory: Path) -> None:
    """The next start of a node makes the file of its driver again, and the mark file names it all the time."""
    aeron = Path(node.driver.directory)
    node.close()
    aeron.mkdir()
    try:
        FakeCnc(version=0).write(aeron)
        assert "no driver" in run("watch", directory, "--once").stdout
        assert run("is-leader", directory, status=1).stdout == "not leader\n"
        assert "does not run" in run("snapshot", directory, status=255).stderr
    finally:
        shutil.rmtree(aeron)


def test_the_table_of_members_says_when_and_where_it_looked(node: ClusterNode, directory: Path) -> None:
    del node  # it runs
    first, *_ = run("watch", directory, "--once").stdout.splitlines()
    assert re.fullmatch(rf"members  \d{{4}}-\d\d-\d\d [\d:.]+\S+  {directory}", first.rstrip())
    first, _, *rows = run("watch", directory, directory, "--once").stdout.splitlines()
    assert first.rstrip().endswith("  2 directories")
    assert [row.split()[-1] for row in rows] == [str(directory)] * 2


@pytest.mark.parametrize("width", [80, 160])
def test_a_table_of_members_names_each_directory_in_one_line(width: int) -> None:
    directories = [f"/data/of/a/long/name/cluster-{number}" for number in range(3)]
    members = [MemberStatus(name, 0, number, "follower") for number, name in enumerate(directories)]
    console = Console(width=width, record=True)
    console.print(_members_table(_Members(1_699_000_000_000, members), ""))
    shown = console.export_text().splitlines()
    assert [sum(name in line for line in shown) for name in directories] == [1] * 3


def test_a_directory_without_a_member_is_told_from_one_without_a_leader(tmp_path: Path) -> None:
    """As Aeron's tool has it: to look at nothing is no failure for two commands; `watch` is our own."""
    statuses = dict.fromkeys(("is-leader", "snapshot", "list-members", "pid"), 255)
    for name, status in (statuses | {"describe": 0, "errors": 0, "watch": 1}).items():
        done = run(name, tmp_path, status=status)
        assert "cluster-mark.dat does not exist" in done.stderr
        assert done.stdout == ""
    for words in (["snapshot", tmp_path / "nowhere"], ["snapshot"], ["snapshots", tmp_path]):
        assert "Usage: " in run(*words, status=255).stderr
    assert "Usage: " in run("watch", tmp_path / "nowhere", status=2).stderr


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_node_that_does_not_run_is_named_at_once(tmp_path: Path, is_killed: bool) -> None:
    """And its snapshot is read from the archive's files."""
    program = f"""
import os
from headrace.cluster import ClusterNode
from tests.cli.fake_cnc import FakeCnc
from tests.cli.test_cluster_node import Sum
node = ClusterNode(Sum(), directory={str(tmp_path)!r})
node.wait_until_leader()
node.take_snapshot()
print(node.driver.directory, flush=True)
if {is_killed}:
    os.kill(os.getpid(), 9)
node.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == (-9 if is_killed else 0), done.stderr
    aeron = done.stdout.strip()
    directory = tmp_path / "cluster"
    try:
        for name in ("list-members", "snapshot", "suspend"):
            assert (
                run(name, directory, status=255).stderr
                == f"error: Member [0] does not run: its driver in {aeron} has ended; start its node first\n"
            )
        lines = run("describe-latest-snapshot", directory, "-a", tmp_path / "archive").stdout.splitlines()
        assert lines[0] == "Snapshot: appVersion=1 timeUnit=MILLISECONDS"
        assert lines[-1].startswith("Consensus Module Snapshot End: memberId=0 recordingId=")
        if not is_killed:
            assert run("describe-latest-snapshot", directory).stdout.splitlines() == lines
            assert f"the driver in {aeron} has ended" in run("errors", directory).stderr
    finally:
        shutil.rmtree(aeron, ignore_errors=True)


def test_commands_take_the_directory_of_a_node_as_well(node: ClusterNode, directory: Path) -> None:
    of_node = directory.parent
    assert run("is-leader", of_node).stdout == "leader\n"
    assert run("snapshot", of_node).stdout == "Member [0]: SNAPSHOT applied successfully\n"
    (row,) = json.loads(run("watch", of_node, "--once", "--json").stdout)["members"]
    assert row["directory"] == str(directory)
    node.close()
    for name in ("describe", "recording-log", "describe-latest-snapshot"):
        # But for the time at which it was asked.
        texts = [re.sub(r"(Type: \w+) \S+ \S+", r"\1", run(name, one).stdout) for one in (of_node, directory)]
        assert texts[0] == texts[1] != ""
    plan = run("recovery-plan", of_node, 1, "--json").stdout
    assert plan == run("recovery-plan", directory, 1, "-a", of_node / "archive", "--json").stdout
    assert len(json.loads(plan)["snapshots"]) == 2
    (of_node / "archive").rename(of_node / "aeron-archive")
    assert run("recovery-plan", of_node, 1, "--json").stdout == plan
    (of_node / "aeron-archive").rename(of_node / "elsewhere")
    assert run("recovery-plan", of_node, 1, status=255).stderr == (
        f"error: {of_node} has no directory archive or aeron-archive: name the archive's directory with "
        "--archive-dir\n"
    )


def test_errors_of_member_services_and_driver_are_shown(tmp_path: Path) -> None:
    with ClusterNode(Broken(), directory=tmp_path) as node:
        await_true(lambda: node.failure is not None)
        directory = tmp_path / "cluster"
        found = [
            json.loads(line)
            for line in run("errors", directory, "--json", "--exit-code", status=4).stdout.splitlines()
        ]
        assert [Path(one["source"]).name for one in found] == [
            "cluster-mark.dat",
            "cnc.dat",
            "cluster-mark-service-0.dat",
        ]
        assert "no table of prices" in found[2]["errors"][0]["text"]
        assert "no table of prices" in run("errors", directory).stdout


def test_the_table_fits_a_narrow_terminal() -> None:
    row = MemberStatus(
        "/data", 0, 2, "follower", "active", "follower_log_await", 12, 123_456_789, 100, 7, 3, 1
    )
    console = Console(width=80, record=True)
    console.print(_members_table(_Members(0, [row]), ""))
    text = console.export_text()
    assert "123,456,789" in text
    assert "0/2" in text
    assert max(map(len, text.splitlines())) <= 80
    console.print(_members_table(_Members(0, [row]), "leader"))
    assert "0/2" not in console.export_text()
