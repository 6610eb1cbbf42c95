"""`headrace stat`: a driver's counters."""

from __future__ import annotations

import re
from pathlib import Path

import click
from rich.console import RenderableType

from headrace.cli import options
from headrace.cli.output import contains, watch
from headrace.tools import CounterFilter
from headrace.tools.counter_types import type_id_of
from headrace.tools.snapshot import DriverSnapshot, DriverWatcher
from headrace.tools.views.stat import stat_json, stat_table


class CounterTypeParam(click.ParamType[int]):
    """A counter type by number or name."""

    name = "type"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The type's number."""
        try:
            return type_id_of(value)
        except ValueError as unknown:
            self.fail(str(unknown), param, ctx)


@click.command()
@options.directory_option
@click.option(
    "--type",
    "-t",
    "type_ids",
    type=CounterTypeParam(),
    multiple=True,
    help="Counters of this type: a number, or a name such as sub-pos.",
)
@click.option("--stream", "-s", "stream_ids", type=int, multiple=True, help="Counters of this stream id.")
@click.option("--session", "session_ids", type=int, multiple=True, help="Counters of this session id.")
@click.option("--channel", "-c", type=options.RegexType(), help="Counters whose channel matches this.")
@click.option("--label", "-l", type=options.RegexType(), help="Counters whose label matches this.")
@options.watch_options
@options.json_option
def command(
    directory: Path,
    type_ids: tuple[int, ...],
    stream_ids: tuple[int, ...],
    session_ids: tuple[int, ...],
    channel: re.Pattern[str] | None,
    label: re.Pattern[str] | None,
    interval_s: float,
    once: bool,
    as_json: bool,
) -> None:
    """Show a driver's counters, live, grouped by what they belong to; those that are 0 come last.

    Reads the directory of any driver of the same file version, Headrace's or Aeron's, running or stopped. A counter is
    shown if it meets all the options; --type, --stream and --session may be repeated.

    \b
    Examples:
      headrace stat                              # all counters, live: / filters, arrows scroll, q ends
      headrace stat --stream 1001 --once         # one stream, printed once
      headrace stat --label '(?i)nak|retrans'    # NAKs and retransmits
      headrace stat --json | jq '.counters[0]'     # one object a second
    """
    condition = CounterFilter(
        type_ids=frozenset(type_ids),
        stream_ids=frozenset(stream_ids),
        session_ids=frozenset(session_ids),
        channel=channel,
        label=label,
    )

    def table(snapshot: DriverSnapshot, previous: DriverSnapshot | None, search: str) -> RenderableType:
        counters = (record for record in condition.apply(snapshot.counters) if contains(search, record.label))
        return stat_table(snapshot, counters, previous)

    with DriverWatcher(directory, timeout_s=1.0) as watcher:
        watch(
            watcher.snapshot,
            table=table,
            to_json=lambda snapshot: stat_json(snapshot, condition.apply(snapshot.counters)),
            as_json=as_json,
            once=once,
            interval_s=interval_s,
        )
