"""`headrace events`: what changed its state, when, and why."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console

from headrace._settings.config import default_directory
from headrace.cli import options
from headrace.cli.lifecycle import until_stopped
from headrace.cli.output import OutputConsole, Shown, print_json
from headrace.event_log import EVENT_KINDS, Event, EventFilter, EventReader
from headrace.tools.views.events import event_json, event_lines

_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LOOK_INTERVAL_S = 0.1


class SinceType(click.ParamType[int]):
    """A time as epoch nanoseconds: so long ago, or a moment in local time."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The time."""
        ago = re.fullmatch(r"(\d+)([smhd])", value)
        if ago is not None:
            return time.time_ns() - int(ago[1]) * _UNIT_S[ago[2]] * 1_000_000_000
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} must be a number with s, m, h or d for how long ago, such as 30s or 2h, or a local time, "
                "such as 2026-01-31T13:45",
                param,
                ctx,
            )
        try:
            return int(moment.timestamp() * 1e9)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is a time that this machine cannot count; take one after 1970", param, ctx)


@click.command()
@click.option(
    "--dir",
    "-d",
    "directories",
    type=options.DirectoryType(),
    multiple=True,
    help="Directory of a driver, an archive or a cluster's member; may be repeated.  [default: $AERON_DIR, else "
    "/dev/shm/aeron-USER]",
)
@click.option("--follow", "-f", is_flag=True, help="Print further events as they happen, until stopped.")
@click.option(
    "--kind",
    "-k",
    "kinds",
    type=click.Choice(EVENT_KINDS),
    metavar="KIND",
    multiple=True,
    help="Events of this kind of thing, such as image; may be repeated.",
)
@click.option(
    "--id",
    "ids",
    type=int,
    multiple=True,
    help="Events of this thing, and of what belongs to it; may be repeated.",
)
@click.option(
    "--stream", "-s", "stream_ids", type=int, multiple=True, help="Events of this stream id; may be repeated."
)
@click.option(
    "--session", "session_ids", type=int, multiple=True, help="Events of this session id; may be repeated."
)
@click.option(
    "--since",
    "since_ns",
    type=SinceType(),
    help="Events not before this: 30s, 5m, 2h, 1d ago, or 2026-01-31T13:45.",
)
@click.option("--faults", is_flag=True, help="Only what went wrong, such as images that timed out.")
@options.json_option
def command(
    directories: tuple[Path, ...],
    follow: bool,
    kinds: tuple[str, ...],
    ids: tuple[int, ...],
    stream_ids: tuple[int, ...],
    session_ids: tuple[int, ...],
    since_ns: int | None,
    faults: bool,
    as_json: bool,
) -> None:
    """Show changes of state: what changed, when and why, in a driver, an archive or a cluster's member.

    Reads the newest events of a driver that runs, or what one that has stopped or died left. Only Headrace's programs
    keep events. docs/reference/states.md lists the kinds and their states.

    \b
    Examples:
      headrace events                            # what happened, oldest first
      headrace events --kind image --follow      # images that come and go, live
      headrace events --since 5m --stream 1001
      headrace events --dir /dev/shm/aeron-me --dir /data/archive    # both, by time
      headrace events --dir total/cluster        # elections of a cluster's member
      headrace events --json | jq 'select(.new == "Draining")'
    """
    condition = EventFilter(
        kinds=kinds,
        ids=ids,
        stream_ids=stream_ids,
        session_ids=session_ids,
        since_ns=since_ns or 0,
        faults_only=faults,
    )
    console = OutputConsole()
    with ExitStack() as stack:
        # Before anything is printed: a reader of the output may stop this at the first line.
        stop = stack.enter_context(until_stopped()) if follow else None
        readers = [
            stack.enter_context(EventReader(path)) for path in directories or (Path(default_directory()),)
        ]
        # An event that was being written at the first look is whole at the second, or never will be.
        _print(_take(readers, condition) + _take(readers, condition), console, as_json=as_json)
        while stop is not None and not stop.wait(_LOOK_INTERVAL_S):
            _print(_take(readers, condition), console, as_json=as_json)
        _tell_lost(readers)


def _take(readers: list[EventReader], condition: EventFilter) -> list[tuple[str, Event]]:
    found = [(str(reader.path.parent), event) for reader in readers for event in reader.poll(condition)]
    return sorted(found, key=lambda each: each[1].time_ns) if len(readers) > 1 else found


def _print(events: list[tuple[str, Event]], console: Console, *, as_json: bool) -> None:
    for directory, event in events:
        if as_json:
            print_json(event_json(event, directory))
        else:
            console.print(Shown(event_lines(event)), soft_wrap=not console.is_terminal)


def _tell_lost(readers: list[EventReader]) -> None:
    for reader in readers:
        missed = reader.lost_count + reader.dropped_count
        if missed:
            click.echo(
                f"{reader.path}: {missed} events are missing: overwritten, or never finished", err=True
            )
