"""The command group, and where each subcommand comes from."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

import click

from headrace.cli.lifecycle import run_to_exit

# Name, module, one line of help. Modules load when their command is used: `headrace stat` needs no numpy.
COMMANDS = {
    "driver": ("driver", "Run a media driver."),
    "publish": ("publish", "Send lines of a file or of stdin as messages."),
    "subscribe": ("subscribe", "Print the messages of a stream."),
    "ping": ("ping", "Measure round trips to a `headrace pong`."),
    "pong": ("pong", "Answer every message of `headrace ping`."),
    "throughput": ("throughput", "Measure messages a second from one process to another."),
    "stat": ("stat", "Show a driver's counters, live."),
    "errors": ("errors", "Show the errors a driver recorded."),
    "loss": ("loss", "Show which streams lost data."),
    "streams": ("streams", "Show each stream's publisher, sender, receiver and readers, live."),
    "archive": ("archive", "Run an archive; list, check, replay and cut recordings."),
    "bench": ("bench", "Measure this machine: throughput, round trips, start-up."),
}


class _LazyGroup(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"headrace.cli.{COMMANDS[name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
    sys.exit(run_to_exit(app, sys.argv[1:]))
