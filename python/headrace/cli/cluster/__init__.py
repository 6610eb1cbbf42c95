"""`headrace cluster`: run a member of a cluster, look at its directory, tell it what to do."""

from __future__ import annotations

from typing import Any

import click

from headrace._base.exceptions import HeadraceError
from headrace.cli.groups import LazyCommand, LazyGroup
from headrace.cli.lifecycle import FAILED, TOOL_FAILED, fail

_LOG, _REQUESTS = "headrace.cli.cluster.recording_log", "headrace.cli.cluster.requests"
_STATUS, _BACKUP = "headrace.cli.cluster.status", "headrace.cli.cluster.backup"
SUBCOMMANDS = {
    "node": LazyCommand("headrace.cli.cluster.node", "Run a member of a cluster.", "node_command"),
    "demo": LazyCommand(
        "headrace.cli.cluster.demo.command",
        "Run three members on this machine, and kill the one that leads.",
        "demo_command",
    ),
    "backup": LazyCommand(_BACKUP, "Copy snapshots and the log of a running cluster.", "backup_command"),
    "backup-query": LazyCommand(
        _BACKUP, "Show or set when a backup asks for what is new.", "backup_query_command"
    ),
    "watch": LazyCommand(_STATUS, "Show members, live: role, state, term, commit position.", "watch_command"),
    "describe": LazyCommand(
        _STATUS, "Show the mark files of a member and its services, and its last vote.", "describe_command"
    ),
    "pid": LazyCommand(_STATUS, "Print the process id of the member.", "pid_command"),
    "errors": LazyCommand(
        _STATUS, "Show the errors of a member, its services and its driver.", "errors_command"
    ),
    "is-leader": LazyCommand(_REQUESTS, "Say whether the member leads.", "is_leader_command"),
    "list-members": LazyCommand(
        _REQUESTS, "Ask a member which members the cluster has.", "list_members_command"
    ),
    "snapshot": LazyCommand(_REQUESTS, "Take a snapshot of the cluster.", "snapshot_command"),
    "suspend": LazyCommand(_REQUESTS, "Suspend the cluster: it takes no messages.", "suspend_command"),
    "resume": LazyCommand(_REQUESTS, "Resume a suspended cluster.", "resume_command"),
    "shutdown": LazyCommand(_REQUESTS, "End all members after a snapshot.", "shutdown_command"),
    "abort": LazyCommand(_REQUESTS, "End all members without a snapshot.", "abort_command"),
    "transfer-leadership": LazyCommand(_REQUESTS, "Have another member lead.", "transfer_command"),
    "replace-member": LazyCommand(_REQUESTS, "Have another machine be a member.", "replace_command"),
    "describe-latest-snapshot": LazyCommand(
        "headrace.cli.cluster.snapshot",
        "Print the consensus module's part of the latest snapshot.",
        "describe_snapshot_command",
    ),
    "check-determinism": LazyCommand(
        "headrace.cli.cluster.determinism",
        "Replay a member's log into two instances of a service.",
        "check_determinism_command",
    ),
    "recording-log": LazyCommand(_LOG, "List the terms and snapshots of a member.", "recording_log_command"),
    "recovery-plan": LazyCommand(
        _LOG, "Show from which snapshot and log a member starts.", "recovery_plan_command"
    ),
    "recording-plan": LazyCommand(_LOG, "The same as recovery-plan.", "recovery_plan_command"),
    "sort": LazyCommand(_LOG, "Write the entries of the recording log in order.", "sort_command"),
    "seed": LazyCommand(
        _LOG, "Begin a new log from the latest snapshot, without the messages after it.", "seed_command"
    ),
    "invalidate-latest-snapshot": LazyCommand(
        _LOG, "Make the next start use the snapshot before the latest one.", "invalidate_command"
    ),
}


# All others are commands of Aeron's ClusterTool as well, which ends with -1 where it fails.
_OUR_OWN = {"node", "backup", "demo", "watch", "check-determinism", "replace-member"}
# With 1 it has answered: the member does not lead.
_ANSWERS_WITH_1 = "is-leader"


class _ToolGroup(LazyGroup):
    """Commands that end with the exit statuses of Aeron's tool: a script need not know which of both it runs."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except click.exceptions.Exit as ended:
            if ended.exit_code != FAILED or ctx.invoked_subcommand in (*_OUR_OWN, _ANSWERS_WITH_1):
                raise
        except click.ClickException as wrong:
            if ctx.invoked_subcommand in _OUR_OWN:
                raise
            wrong.show()
        except BrokenPipeError:
            raise
        except (HeadraceError, OSError) as failure:
            if ctx.invoked_subcommand in _OUR_OWN:
                raise
            fail(failure, TOOL_FAILED)
        raise click.exceptions.Exit(TOOL_FAILED)


@click.group(cls=_ToolGroup, subcommands=SUBCOMMANDS)
def command() -> None:
    """Run a member of a cluster; look at the directory of a member, of Headrace's or Aeron's; tell a member what to do.

    \b
    Examples:
      headrace cluster describe /data/aeron-cluster
      headrace cluster snapshot /data/aeron-cluster
    """
