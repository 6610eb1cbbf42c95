"""Commands that send requests to a running member."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._base.control_characters import shown
from headrace.cli import options
from headrace.cli.archive.access import dry_run_option
from headrace.cli.cluster.access import directory_argument
from headrace.cli.lifecycle import FAILED
from headrace.cli.output import print_json

if TYPE_CHECKING:
    from headrace.cluster.node.running_member import RunningMember, Toggle
    from headrace.cluster.protocol.control import ClusterMembersExtendedResponse

# A command that takes long ends by itself before.
_COMMAND_S = 660.0
_timeout_option = options.timeout_option(5.0, "How long to wait for the member's answer.", least=0.1)


def _member(directory: Path) -> RunningMember:
    from headrace.cluster.node.running_member import RunningMember

    return RunningMember(directory)


@click.command("is-leader")
@directory_argument
def is_leader_command(directory: Path) -> None:
    """Say whether the member of the DIRECTORY leads: exit status 0 says yes, 1 says no.

    255 says that no member has run on the directory. A member whose driver has ended does not lead.
    """
    from headrace.cluster.node.running_member import NO_DRIVER

    try:
        is_leader = _member(directory).is_leader
    except NO_DRIVER:
        is_leader = False
    click.echo("leader" if is_leader else "not leader")
    if not is_leader:
        raise click.exceptions.Exit(FAILED)


@click.command("list-members")
@directory_argument
@_timeout_option
@options.json_option
def list_members_command(directory: Path, timeout_s: float, as_json: bool) -> None:
    """Ask the running member of the DIRECTORY which members the cluster has.

    The answer is the view of that member: a follower may have old values of the others.
    """
    answer = _member(directory).members(timeout_s)
    if as_json:
        print_json(dataclasses.asdict(answer))
        return
    click.echo(shown(_members_text(answer)))


def _members_text(answer: ClusterMembersExtendedResponse) -> str:
    members = ", ".join(
        f"ClusterMember{{id={one.member_id}, leadershipTermId={one.leadership_term_id}, "
        f"logPosition={one.log_position}, timeOfLastAppendPositionNs={one.time_of_last_append_ns}, "
        f"ingressEndpoint='{one.ingress_endpoint}', consensusEndpoint='{one.consensus_endpoint}', "
        f"logEndpoint='{one.log_endpoint}', catchupEndpoint='{one.catchup_endpoint}', "
        f"archiveEndpoint='{one.archive_endpoint}'}}"
        for one in answer.active_members
    )
    return (
        f"currentTimeNs={answer.current_time_ns}, leaderMemberId={answer.leader_member_id}, "
        f"memberId={answer.member_id}, activeMembers=[{members}]"
    )


def _ask(toggle: Toggle, directory: Path, timeout_s: float, dry_run: bool) -> None:
    """Ask the leader for what a control toggle stands for."""
    member = _member(directory)
    member.check_can(toggle, timeout_s)
    if dry_run:
        click.echo(f"{member.name}: would apply {toggle.name}")
        return
    member.ask(toggle)
    click.echo(f"{member.name}: {toggle.name} applied successfully")


def _asking(name: str, text: str) -> click.Command:
    """The command that asks the leader for what the control toggle of that name stands for."""

    def ask(directory: Path, timeout_s: float, dry_run: bool) -> None:
        from headrace.cluster.node.running_member import Toggle

        _ask(Toggle[name.upper()], directory, timeout_s, dry_run)

    callback: Callable[..., None] = ask
    for decorate in (dry_run_option, _timeout_option, directory_argument):
        callback = decorate(callback)
    return click.command(name, help=text)(callback)


@click.command("transfer-leadership")
@directory_argument
@click.option(
    "--to", "successor_id", type=click.IntRange(min=0), help="The member that is to lead.  [default: any]"
)
@dry_run_option
@_timeout_option
def transfer_command(directory: Path, successor_id: int | None, dry_run: bool, timeout_s: float) -> None:
    """Have another member lead, which has the whole log, and wait for it. DIRECTORY is the leader's.

    Nothing that was committed is lost, and clients go on with the new leader.
    """
    from headrace.cluster.node.running_member import Toggle

    member, toggle = _member(directory), Toggle.TRANSFER_LEADERSHIP
    member.check_can(toggle, timeout_s)
    if dry_run:
        click.echo(f"{member.name}: would apply {toggle.name}")
        return
    member.ask(toggle, successor_id)
    click.echo(f"{member.name}: {toggle.name} applied successfully")


@click.command("replace-member")
@directory_argument
@click.argument("member_id", type=click.IntRange(min=0))
@click.argument("address")
@dry_run_option
@_timeout_option
def replace_command(directory: Path, member_id: int, address: str, dry_run: bool, timeout_s: float) -> None:
    """Have a machine at the ADDRESS be the member with the MEMBER_ID, whose machine is lost. DIRECTORY is the leader's.

    The ADDRESS is a host, such as delta or delta:9200, or the five endpoints of the member with commas between them:
    ingress, consensus, log, catchup, archive. Waits until a majority of the others has the new list. Then start the
    new machine with an empty directory and --replacement.
    """
    from headrace.cluster.node.running_member import Command

    member = _member(directory)
    if dry_run:
        click.echo(f"{member.name}: would have member {member_id} at {address}")
        return
    timeout_s = max(timeout_s, _COMMAND_S)
    click.echo(f"{member.name}: {member.command(Command.REPLACE_MEMBER, member_id, address, timeout_s)}")


@click.command("snapshot")
@directory_argument
@click.option(
    "--on-follower",
    is_flag=True,
    help="One follower takes it, and the other members copy it: the cluster goes on meanwhile. Waits for the leader's "
    "copy, up to 10 minutes.",
)
@dry_run_option
@_timeout_option
def snapshot_command(directory: Path, on_follower: bool, dry_run: bool, timeout_s: float) -> None:
    """Take a snapshot of the cluster, and wait for it, up to 30 seconds. DIRECTORY is the leader's."""
    from headrace.cluster.node.running_member import Command, Toggle

    if not on_follower:
        _ask(Toggle.SNAPSHOT, directory, timeout_s, dry_run)
        return
    member = _member(directory)
    member.check_can(Toggle.SNAPSHOT, timeout_s)
    if dry_run:
        click.echo(f"{member.name}: would apply {Command.SNAPSHOT_ON_FOLLOWER.name}")
        return
    click.echo(f"{member.name}: {member.command(Command.SNAPSHOT_ON_FOLLOWER, -1, '', _COMMAND_S)}")


suspend_command = _asking(
    "suspend",
    "Suspend the cluster: it takes no messages, fires no timers and connects no clients until `headrace cluster "
    "resume`. DIRECTORY is the leader's.",
)
resume_command = _asking(
    "resume",
    "Resume a suspended cluster: it takes messages, fires timers and connects clients again. DIRECTORY is the "
    "leader's.",
)
shutdown_command = _asking(
    "shutdown",
    "End all members after a snapshot. DIRECTORY is the leader's. The command does not wait for the end.",
)
abort_command = _asking(
    "abort",
    "End all members without a snapshot. Nothing is deleted: the next start replays the log from the previous "
    "snapshot. DIRECTORY is the leader's. The command does not wait for the end.",
)
