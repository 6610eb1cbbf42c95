"""The command group, and where each subcommand comes from."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click
from click.shell_completion import shell_complete

from headrace.cli.groups import LazyCommand, LazyGroup
from headrace.cli.lifecycle import run_to_exit

SUBCOMMANDS = {
    "driver": LazyCommand("headrace.cli.driver", "Run a media driver."),
    "publish": LazyCommand("headrace.cli.publish", "Send lines of a file or of stdin as messages."),
    "subscribe": LazyCommand("headrace.cli.subscribe", "Print the messages of a stream."),
    "ping": LazyCommand("headrace.cli.ping", "Measure round trips to a `headrace pong`."),
    "pong": LazyCommand("headrace.cli.pong", "Answer every message of `headrace ping`."),
    "throughput": LazyCommand(
        "headrace.cli.throughput", "Measure messages a second from one process to another."
    ),
    "stat": LazyCommand("headrace.cli.stat", "Show a driver's counters, live."),
    "errors": LazyCommand("headrace.cli.errors", "Show the errors a driver recorded."),
    "events": LazyCommand(
        "headrace.cli.events", "Show what changed its state in a driver or an archive, and why."
    ),
    "loss": LazyCommand("headrace.cli.loss", "Show which streams lost data."),
    "streams": LazyCommand(
        "headrace.cli.streams", "Show each stream's publisher, sender, receiver and readers, live."
    ),
    "archive": LazyCommand(
        "headrace.cli.archive", "Run an archive; list, check, replay and truncate recordings.", is_group=True
    ),
    "cluster": LazyCommand(
        "headrace.cli.cluster",
        "Run a member of a cluster; look at one and tell it what to do.",
        is_group=True,
    ),
    "bench": LazyCommand("headrace.cli.bench", "Measure this machine: throughput, round trips, start-up."),
    "docs": LazyCommand("headrace.cli.docs", "Show the API reference, in the terminal."),
    "completion": LazyCommand(
        "headrace.cli.completion", "Print the script that makes a shell complete this command."
    ),
}
# Set by a shell that asks for completions, as `headrace completion` told it to.
_COMPLETE_VARIABLE = "_HEADRACE_COMPLETE"


@click.group(cls=LazyGroup, subcommands=SUBCOMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headrace")
def app() -> None:
    """Messages between processes and machines at memory speed.

    Every command works on the driver's directory given with --dir, else on AERON_DIR, else on the default one, so a
    single driver needs no options at all.

    \b
    Examples:
      headrace driver                      # leave it running, then in two other terminals:
      headrace subscribe
      seq 1 10 | headrace publish -
      headrace stat
    """


def main() -> NoReturn:
    """Entry point of the `headrace` command."""
    instruction = os.environ.get(_COMPLETE_VARIABLE)
    if instruction is not None:
        sys.exit(shell_complete(app, {}, "headrace", _COMPLETE_VARIABLE, instruction))
    sys.exit(run_to_exit(app, sys.argv[1:]))
