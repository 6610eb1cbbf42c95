"""`headrace cluster`: run a member of a cluster, look at its directory, tell it what to do."""

from __future__ import annotations

import click

from headrace.cli.groups import LazyCommand, LazyGroup

_LOG = "headrace.cli.cluster.recording_log"
SUBCOMMANDS = {
    "node": LazyCommand("headrace.cli.cluster.node", "Run a member of a cluster.", "node_command"),
    "describe": LazyCommand(_LOG, "Show the member's mark file, and its last vote.", "describe_command"),
    "pid": LazyCommand(_LOG, "Print the process id of the member.", "pid_command"),
    "recording-log": LazyCommand(_LOG, "List the terms and snapshots of a member.", "recording_log_command"),
    "recovery-plan": LazyCommand(_LOG, "Show with what a member begins.", "recovery_plan_command"),
    "sort": LazyCommand(_LOG, "Write the recording log in order.", "sort_command"),
    "seed": LazyCommand(
        _LOG, "Have the next start begin a new log from the latest snapshot.", "seed_command"
    ),
    "invalidate-latest-snapshot": LazyCommand(
        _LOG, "Have the next start not use the latest snapshot.", "invalidate_command"
    ),
}


@click.group(cls=LazyGroup, subcommands=SUBCOMMANDS)
def command() -> None:
    """Run a member of a cluster; look at the directory of one, of Aeron's too, and tell it what to do.

    \b
    Examples:
      headrace cluster describe /data/aeron-cluster
      headrace cluster snapshot /data/aeron-cluster
    """
