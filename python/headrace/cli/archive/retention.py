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

_HOURS = {"h": 1, "d": 24, "w": 7 * 24}


@click.command("set-retention")
@click.argument("recording_id", type=int)
@click.option("--keep-for", metavar="TIME", help="Keep files written to within this time: 12h, 7d or 4w.")
@click.option("--keep-bytes", metavar="SIZE", help="Keep the newest bytes, so many: 500m, 100g.")
@click.option("--keep-everything", is_flag=True, help="End the retention that the recording has.")
@session_options
@dry_run_option
@yes_option
def set_command(
    recording_id: int,
    keep_for: str | None,
    keep_bytes: str | None,
    keep_everything: bool,
    address: ArchiveAddress,
    dry_run: bool,
    yes: bool,
) -> None:
    """Set how much of a recording the archive keeps. From then on the archive permanently deletes older segment files.

    With --keep-for and --keep-bytes together, the archive deletes a file only if neither option keeps it. It never
    deletes the file with the newest data.

    \b
    Examples:
      headrace archive set-retention 0 --keep-for 7d
      headrace archive set-retention 0 --keep-for 12h --keep-bytes 100g
      headrace archive set-retention 0 --keep-everything
    """
    if keep_everything == (keep_for is not None or keep_bytes is not None):
        raise click.UsageError("give --keep-for, --keep-bytes or both, or else --keep-everything")
    retention = None if keep_everything else _retention(keep_for, keep_bytes)
    kept = "everything" if retention is None else _words(keep_for, keep_bytes)
    with session(address, "set-retention") as archive:
        if dry_run:
            before = known(archive, recording_id).retention
            instead = "everything" if before is None else str(before)
            click.echo(f"recording {recording_id} would keep {kept} instead of {instead}")
            return
        if retention is not None:
            question = f"from now on, permanently delete every segment file of recording {recording_id} except {kept}?"
            confirm(question, is_confirmed=yes)
        archive.set_retention(recording_id, retention)
    click.echo(f"recording {recording_id} keeps {kept}")


def _retention(keep_for: str | None, keep_bytes: str | None) -> Retention:
    from headrace.archive import Retention
    from headrace.channel import parse_size

    return Retention(
        hours=None if keep_for is None else _hours(keep_for),
        bytes=None if keep_bytes is None else parse_size(keep_bytes, "--keep-bytes"),
    )


def _hours(text: str) -> int:
    digits, unit = text[:-1], text[-1:].lower()
    if unit not in _HOURS or not digits.isdecimal():
        raise click.BadParameter(
            f"{text!r} is not a whole number with h, d or w, such as 7d", param_hint="--keep-for"
        )
    return int(digits) * _HOURS[unit]


def _words(keep_for: str | None, keep_bytes: str | None) -> str:
    parts = [
        f"what was written within {keep_for}" if keep_for else "",
        f"the newest {keep_bytes} bytes" if keep_bytes else "",
    ]
    return " and ".join(filter(None, parts))


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
    confirm(f"no longer keep what {name} has not read of recording {which}?", is_confirmed=yes)
    count = release(archive_directory, name, recording_id)
    click.echo(f"{_holds(count)} released")


def _holds(count: int) -> str:
    return "1 hold" if count == 1 else f"{count} holds"
