"""`headrace streams`: who is where on each stream."""

from __future__ import annotations

import re
from pathlib import Path

import click
from rich.console import RenderableType

from headrace.cli import options
from headrace.cli.output import contains, watch
from headrace.tools import CounterFilter, StreamState, group_streams
from headrace.tools.snapshot import DriverSnapshot, DriverWatcher
from headrace.tools.views.streams import streams_json, streams_table


@click.command()
@options.directory_option
@click.option(
    "--stream", "-s", "stream_ids", type=int, multiple=True, help="Show this stream id; may be repeated."
)
@click.option(
    "--session", "session_ids", type=int, multiple=True, help="Show this session id; may be repeated."
)
@click.option(
    "--channel",
    "-c",
    type=options.RegexType(),
    help="Show streams where the channel of any party matches this.",
)
@options.watch_options
@options.json_option
def command(
    directory: Path,
    stream_ids: tuple[int, ...],
    session_ids: tuple[int, ...],
    channel: re.Pattern[str] | None,
    interval_s: float,
    once: bool,
    as_json: bool,
) -> None:
    """Show each stream's publisher, sender, receiver and readers, live, and how many bytes each has left to move.

    \b
    Examples:
      headrace streams                     # which publisher is held back, by which program
      headrace streams --stream 1001 --once
      headrace streams --json --once
    """
    condition = CounterFilter(
        stream_ids=frozenset(stream_ids), session_ids=frozenset(session_ids), channel=channel
    )

    def streams(snapshot: DriverSnapshot) -> list[StreamState]:
        # Publisher and readers may name the channel differently: one that is asked for brings the others.
        return [
            stream
            for stream in group_streams(snapshot.counters)
            if any(map(condition.matches, stream.counters))
        ]

    def table(snapshot: DriverSnapshot, previous: DriverSnapshot | None, search: str) -> RenderableType:
        found = [
            stream
            for stream in streams(snapshot)
            if contains(search, stream.stream_id, stream.session_id, stream.channel)
        ]
        return streams_table(snapshot, found)

    with DriverWatcher(directory, timeout_s=1.0) as watcher:
        watch(
            watcher.snapshot,
            table=table,
            to_json=lambda snapshot: streams_json(snapshot, streams(snapshot)),
            as_json=as_json,
            once=once,
            interval_s=interval_s,
        )
