"""Commands about how long recordings keep their segment files: retention, and the holds of readers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from headrace.cli import options
from headrace.cli.archive.access import (
    ArchiveAddress,
    archive_directory_option,
    confirm,
    dry_run_option,
    known,
    session,
    session_options,
    yes_option,
)
from headrace.cli.lifecycle import FAILED
from headrace.cli.output import OutputConsole, Shown, print_json

if TYPE_CHECKING:
    from headrace.archive import Retention

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
_SECONDS_PER_HOUR = 3600
_EVERYTHING = "everything"


@click.command("set-retention")
@click.argument("recording_id", type=int)
@click.option(
    "--keep-for", metavar="TIME", help="Keep files written to within this time: 10m, 12h, 7d or 4w."
)
@click.option("--keep-bytes", metavar="SIZE", help="Keep at least this many of the newest bytes: 500m, 100g.")
@click.option(
    "--keep-ended-for", metavar="TIME", help="Delete the whole recording this long after it has ended: 30d."
)
@click.option("--keep-everything", is_flag=True, help="End the retention that the recording has.")
@session_options
@dry_run_option
@yes_option
def set_command(
    recording_id: int,
    keep_for: str | None,
    keep_bytes: str | None,
    keep_ended_for: str | None,
    keep_everything: bool,
    address: ArchiveAddress,
    dry_run: bool,
    yes: bool,
) -> None:
    """Set how much of a recording the archive keeps. From then on the archive permanently deletes older segment files.

    With --keep-for and --keep-bytes together, the archive deletes a file only if neither option keeps it. It deletes
    the file with the newest data only with the whole recording, which --keep-ended-for allows.

    \b
    Examples:
      headrace archive set-retention 0 --keep-for 7d
      headrace archive set-retention 0 --keep-for 12h --keep-bytes 100g --keep-ended-for 30d
      headrace archive set-retention 0 --keep-everything
    """
    given = (keep_for, keep_bytes, keep_ended_for)
    if keep_everything == any(one is not None for one in given):
        rule = "give --keep-for, --keep-bytes, --keep-ended-for or several of them, or else --keep-everything"
        raise click.UsageError(rule)
    retention = None if keep_everything else retention_of(keep_for, keep_bytes, keep_ended_for)
    kept = _words(keep_for, keep_bytes)
    with session(address, "set-retention") as archive:
        if dry_run:
            before = known(archive, recording_id).retention
            instead = _EVERYTHING if before is None else str(before)
            click.echo(
                f"recording {recording_id} would keep {kept}{_until(keep_ended_for)} instead of {instead}"
            )
            return
        if retention is not None:
            files = (
                "" if kept == _EVERYTHING else f"every segment file of recording {recording_id} except {kept}"
            )
            whole = (
                f"all of recording {recording_id} {keep_ended_for} after it has ended"
                if keep_ended_for
                else ""
            )
            question = f"from now on, permanently delete {', and '.join(filter(None, (files, whole)))}?"
            confirm(question, is_confirmed=yes)
        archive.set_retention(recording_id, retention)
    click.echo(f"recording {recording_id} keeps {kept}{_until(keep_ended_for)}")


def retention_of(keep_for: str | None, keep_bytes: str | None, keep_ended_for: str | None) -> Retention:
    """The retention that options say, of which one is given.

    Raises:
        BadParameter: A time is wrong.
        ConfigError: A size is wrong.
    """
    from headrace.archive import Retention
    from headrace.channel import parse_size

    return Retention(
        hours=None if keep_for is None else _hours(keep_for, "--keep-for"),
        bytes=None if keep_bytes is None else parse_size(keep_bytes, "--keep-bytes"),
        ended_hours=None if keep_ended_for is None else _hours(keep_ended_for, "--keep-ended-for"),
    )


def _hours(text: str, option: str) -> float:
    digits, unit = text[:-1], text[-1:].lower()
    if unit not in _SECONDS or not digits.isdecimal():
        rule = f"{text!r} is not a whole number with s, m, h, d or w, such as 10m or 7d"
        raise click.BadParameter(rule, param_hint=option)
    return int(digits) * _SECONDS[unit] / _SECONDS_PER_HOUR


def _words(keep_for: str | None, keep_bytes: str | None) -> str:
    parts = [
        f"what was written within {keep_for}" if keep_for else "",
        f"the newest {keep_bytes} bytes" if keep_bytes else "",
    ]
    return " and ".join(filter(None, parts)) or _EVERYTHING


def _until(keep_ended_for: str | None) -> str:
    return "" if keep_ended_for is None else f", until {keep_ended_for} after its end"


@click.command("holds")
@archive_directory_option
@options.json_option
def holds_command(archive_directory: Path, as_json: bool) -> None:
    """List the holds: the positions from which readers, such as Spark queries, make the archive keep segment files."""
    from headrace.archive.files import holds

    found = holds(archive_directory)
    if as_json:
        for one in found:
            print_json(dataclasses.asdict(one))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("hold", "recording", "from position"):
        table.add_column(name, justify="left" if name == "hold" else "right")
    for one in found:
        table.add_row(one.name, str(one.recording_id), str(one.position))
    if found:
        OutputConsole().print(Shown(table))
    else:
        click.echo("no holds")


@click.command("release-hold")
@click.argument("name")
@click.argument("recording_id", type=int, required=False)
@archive_directory_option
@dry_run_option
@yes_option
def release_command(
    name: str, recording_id: int | None, archive_directory: Path, dry_run: bool, yes: bool
) -> None:
    """End a hold on one recording, or on all recordings that have it.

    The archive then deletes the segment files that only the hold kept from the recording's retention. This cannot be
    undone. A reader that still runs makes its hold again.
    """
    from headrace.archive.files import holds, release

    found = [
        one
        for one in holds(archive_directory)
        if one.name == name and recording_id in (None, one.recording_id)
    ]
    if not found:
        click.echo(f"error: no hold {name!r}; `headrace archive holds` lists them", err=True)
        raise click.exceptions.Exit(FAILED)
    if dry_run:
        click.echo(f"{_holds(len(found))} would be released")
        return
    which = ", ".join(str(one.recording_id) for one in found)
    confirm(f"release the hold {name}, which keeps unread data of recording {which}?", is_confirmed=yes)
    count = release(archive_directory, name, recording_id)
    click.echo(f"{_holds(count)} released")


def _holds(count: int) -> str:
    return "1 hold" if count == 1 else f"{count} holds"
