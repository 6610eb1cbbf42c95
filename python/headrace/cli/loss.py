"""`headrace loss`: which streams lost data on their way."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from headrace.cli import options
from headrace.cli.lifecycle import FOUND
from headrace.cli.output import contains, watch
from headrace.clock import SYSTEM_CLOCK
from headrace.tools import LossEntry, read_loss_report
from headrace.tools.views.header import title_line
from headrace.tools.views.loss import loss_json, loss_table


@click.command()
@options.directory_option
@options.watch_options
@options.json_option
@options.exit_code_option
def command(directory: Path, interval_s: float, once: bool, as_json: bool, exit_code: bool) -> None:
    """Show which streams lost data, how much, and which source sent it.

    The source sends lost data again, unless the channel has reliable=false.

    \b
    Examples:
      headrace loss --once
      headrace loss --json --once | jq '.losses[].total_bytes_lost'
    """
    latest: list[LossEntry] = []

    def take() -> tuple[Text, list[LossEntry]]:
        latest[:] = read_loss_report(directory)
        return title_line("loss", SYSTEM_CLOCK.epoch_ms(), directory), latest

    watch(
        take,
        table=lambda taken, _, search: loss_table(
            taken[0],
            [
                entry
                for entry in taken[1]
                if contains(search, entry.stream_id, entry.session_id, entry.channel, entry.source)
            ],
        ),
        to_json=lambda taken: loss_json(taken[1]),
        as_json=as_json,
        once=once,
        interval_s=interval_s,
    )
    if exit_code and latest:
        raise click.exceptions.Exit(FOUND)
