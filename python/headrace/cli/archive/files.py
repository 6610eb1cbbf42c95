"""Commands that read an archive's files, whether or not it runs."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from headrace._base.control_characters import shown
from headrace._base.exceptions import ConfigError, HeadraceError
from headrace.cli import options
from headrace.cli.archive.access import archive_directory_option, dry_run_option
from headrace.cli.lifecycle import FAILED
from headrace.cli.output import OutputConsole, Shown, print_json
from headrace.positions import FRAME_ALIGNMENT
from headrace.tools.views.recordings import (
    ListedRecording,
    recording_details,
    recording_json,
    recordings_table,
)

if TYPE_CHECKING:
    from headrace.archive import CatalogEntry
    from headrace.archive.files import ArchiveDirectory

_BYTES_A_LINE = 16


@click.command("list")
@archive_directory_option
@click.option("--all", "show_all", is_flag=True, help="Also list invalid and deleted recordings.")
@options.json_option
def list_command(archive_directory: Path, show_all: bool, as_json: bool) -> None:
    """List recordings: their start and stop positions, channels, streams and publishers.

    \b
    Examples:
      headrace archive list -a /data/recordings
      headrace archive list --json | jq 'select(.stream_id == 1001)'
    """
    from headrace.archive.files import ArchiveDirectory

    with ArchiveDirectory(archive_directory) as archive:
        found = _listed(archive, [entry for entry in archive.entries() if show_all or entry.is_valid])
    if as_json:
        for one in found:
            print_json(recording_json(one))
        return
    console = OutputConsole()
    console = console if console.is_terminal else OutputConsole(width=240)
    title = Text(f"recordings  {archive_directory}", style="bold")
    console.print(Shown(recordings_table(title, found, console.width)))


@click.command("describe")
@click.argument("recording_id", type=int, required=False)
@archive_directory_option
@options.json_option
def describe_command(recording_id: int | None, archive_directory: Path, as_json: bool) -> None:
    """Show all fields of one recording from the catalog; without an id those of all, and of the mark file."""
    from headrace.archive import CatalogError
    from headrace.archive.files import ArchiveDirectory

    console = OutputConsole()
    with ArchiveDirectory(archive_directory) as archive:
        entries = archive.entries()
        if recording_id is not None:
            entries = [entry for entry in entries if entry.recording_id == recording_id]
            if not entries:
                raise CatalogError(f"unknown recording_id={recording_id} in {archive_directory}")
        elif not as_json:
            mark = dataclasses.asdict(archive.mark())
            console.print(Text(f"archive  {archive_directory}", style="bold"))
            console.print(Shown(Text("\n".join(f"{name}: {value}" for name, value in mark.items()))))
        for one in _listed(archive, entries):
            if as_json:
                print_json(recording_json(one))
            else:
                console.print()
                console.print(Shown(recording_details(one)))


def _listed(archive: ArchiveDirectory, entries: list[CatalogEntry]) -> list[ListedRecording]:
    """Recordings with how far those that run are, which the archive's driver shows."""
    active = [entry.recording_id for entry in entries if entry.is_valid and entry.descriptor.is_active]
    ends = {}
    # Files that are damaged, or a driver that is of another user, are for other commands to tell of.
    with contextlib.suppress(HeadraceError, OSError):
        ends = archive.live_ends(active) if active else {}
    return [ListedRecording.of(entry, ends) for entry in entries]


@click.command("dump")
@click.argument("recording_id", type=int)
@archive_directory_option
@click.option("--from", "start", type=int, help="First position.  [default: where the recording begins]")
@click.option("--limit", "-n", type=click.IntRange(min=1), help="Print at most this many frames.")
@options.json_option
def dump_command(
    recording_id: int, archive_directory: Path, start: int | None, limit: int | None, as_json: bool
) -> None:
    """Print the frames of a recording: header, and payload in hexadecimal."""
    from headrace.archive import CatalogError
    from headrace.archive.files import ArchiveDirectory

    with ArchiveDirectory(archive_directory) as archive:
        descriptor = archive.find(recording_id)
        if descriptor is None:
            raise CatalogError(f"unknown recording_id={recording_id} in {archive_directory}")
        stop = archive.end(recording_id)
        first = descriptor.start_position if start is None else start
        if not descriptor.start_position <= first <= stop or first % FRAME_ALIGNMENT:
            raise ConfigError(
                f"--from={first}: recording {recording_id} has positions from {descriptor.start_position} to {stop}, "
                f"and frames begin at multiples of {FRAME_ALIGNMENT}"
            )
        for number, frame in enumerate(archive.frames(recording_id, first, stop)):
            if limit is not None and number >= limit:
                break
            payload = frame.payload
            values = {"position": frame.position, **dataclasses.asdict(frame.header)}
            if as_json:
                print_json(values | {"payload": payload.hex()})
                continue
            click.echo(" ".join(f"{name}={value}" for name, value in values.items()))
            for offset in range(0, len(payload), _BYTES_A_LINE):
                line = payload[offset : offset + _BYTES_A_LINE]
                text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
                click.echo(f"  {offset:06x}  {line.hex(' '):<47}  {text}")


@click.command("verify")
@click.argument("recording_id", type=int, required=False)
@archive_directory_option
@click.option(
    "--thorough", "-t", is_flag=True, help="Check all segment files, not only the last of each recording."
)
@click.option("--checksum", help="Also verify checksums of this kind: CRC-32 or CRC-32C.")
@click.option(
    "--repair",
    is_flag=True,
    help="Cut off each recording whose last segment file is damaged, at the end of the last whole frame before the "
    "damage; move the bytes after that position to a .cut file; write the stop positions found; mark recordings "
    "without damage as valid. Stop the archive first.",
)
@dry_run_option
@options.json_option
def verify_command(
    recording_id: int | None,
    archive_directory: Path,
    thorough: bool,
    checksum: str | None,
    repair: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Compare the frames of one recording, or of all, with the catalog. Exit status 1 if a recording is damaged.

    \b
    Examples:
      headrace archive verify -a /data/recordings
      headrace archive verify 7 --thorough --checksum CRC-32
    """
    from headrace.archive.files import ArchiveDirectory
    from headrace.archive.files import repair as repaired

    is_ok, count = True, 0
    with contextlib.ExitStack() as stack:
        if repair:
            findings = repaired(
                archive_directory,
                recording_id,
                is_thorough=thorough,
                checksum=checksum,
                is_dry_run=dry_run,
            )
        else:
            archive = stack.enter_context(ArchiveDirectory(archive_directory))
            findings = archive.verify(recording_id, is_thorough=thorough, checksum=checksum)
        for finding in findings:
            is_ok &= finding.is_ok
            count += 1
            if as_json:
                print_json(dataclasses.asdict(finding))
            else:
                click.echo(
                    f"recording {finding.recording_id}: {'' if finding.is_ok else 'ERROR: '}{shown(finding.text)}"
                )
    if count == 0 and not as_json:
        click.echo("no recordings")
    if not is_ok:
        raise click.exceptions.Exit(FAILED)
