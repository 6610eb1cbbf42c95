"""Commands that look after an archive's directory: what is in it, what went wrong, changes while no archive runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from headrace._base.control_characters import shown
from headrace.cli import options
from headrace.cli.archive.access import archive_directory_option, confirm, dry_run_option, yes_option
from headrace.cli.lifecycle import FAILED, FOUND
from headrace.cli.output import OutputConsole, Shown, print_json
from headrace.tools.units import format_bytes, format_count

if TYPE_CHECKING:
    from headrace.archive.files import ArchiveDirectory, Deletion, Upgrade

_FILES_SHOWN = 10


@click.command("count")
@archive_directory_option
def count_command(archive_directory: Path) -> None:
    """Print the number of valid recordings."""
    from headrace.archive.files import ArchiveDirectory

    with ArchiveDirectory(archive_directory) as archive:
        click.echo(len(archive.recordings()))


@click.command("pid")
@archive_directory_option
def pid_command(archive_directory: Path) -> None:
    """Print the id of the process that runs the archive, or ran it last."""
    from headrace.archive.files import ArchiveDirectory

    with ArchiveDirectory(archive_directory) as archive:
        click.echo(archive.mark().pid)


@click.command("capacity")
@click.argument("capacity", type=click.IntRange(min=0), required=False)
@archive_directory_option
@dry_run_option
def capacity_command(capacity: int | None, archive_directory: Path, dry_run: bool) -> None:
    """Print how many bytes the catalog's file has; with CAPACITY make it at least that long. Stop the archive first.

    A running archive makes the catalog longer by itself when it is full.
    """
    from headrace.archive.files import ArchiveDirectory, grow_catalog

    if capacity is not None:
        length = grow_catalog(archive_directory, capacity, is_dry_run=dry_run)
        click.echo(f"would be {length}" if dry_run else length)
        return
    with ArchiveDirectory(archive_directory) as archive:
        click.echo(archive.catalog_capacity)


@click.command("migrate")
@archive_directory_option
@dry_run_option
@yes_option
@options.json_option
def migrate_command(archive_directory: Path, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Bring a directory of version 0.x to 2.x to the layout of today's archives, 3.1. Stop the archive first.

    Only Aeron's archives have written such directories. Segment files get other names, and the catalog and the mark
    file another layout; what is recorded stays. An archive of the old version cannot use the directory afterwards, so
    copy it before. If the command is killed, run it again.
    """
    from headrace.archive.files import migrate
    from headrace.positions import version_text

    def versions(change: Upgrade) -> str:
        return f"from version {version_text(change.from_version)} to {version_text(change.to_version)}"

    change = migrate(archive_directory, is_dry_run=True)
    if change is not None and not dry_run:
        recordings = format_count(len(change.recording_ids))
        confirm(f"migrate {recordings} recordings {versions(change)}?", is_confirmed=yes)
        migrate(archive_directory)
    if as_json:
        print_json({"is_dry_run": dry_run, "upgrade": None if change is None else dataclasses.asdict(change)})
    elif change is None:
        click.echo(f"version {version_text(_catalog_version(archive_directory))}: nothing to migrate")
    else:
        _show_upgrade(change, dry_run)
        click.echo(f"{'would migrate' if dry_run else 'migrated'} {versions(change)}")


def _catalog_version(archive_directory: Path) -> int:
    from headrace.archive.files import ArchiveDirectory

    with ArchiveDirectory(archive_directory) as archive:
        return archive.catalog_version


def _show_upgrade(change: Upgrade, dry_run: bool) -> None:
    recordings, files = len(change.recording_ids), len(change.renamed)
    click.echo(
        f"{format_count(recordings)} recordings; {format_count(files)} segment files with another name"
    )
    for old, new in change.renamed[:_FILES_SHOWN] if dry_run else ():
        click.echo(f"  {shown(old)} -> {shown(new)}")
    if dry_run and files > _FILES_SHOWN:
        click.echo(f"  and {format_count(files - _FILES_SHOWN)} more; --json lists them all")


@click.command("errors")
@archive_directory_option
@options.json_option
@options.exit_code_option
def errors_command(archive_directory: Path, as_json: bool, exit_code: bool) -> None:
    """Show the errors that the archive recorded, then those of the driver that it used.

    They stay readable when archive and driver have stopped or died, until the next ones start.
    """
    from headrace.archive.files import ArchiveDirectory
    from headrace.cnc.error_log import read_error_log
    from headrace.tools.views.errors import errors_json, errors_table

    with ArchiveDirectory(archive_directory) as archive:
        logs = {f"archive  {archive_directory}": tuple(read_error_log(archive.mark_errors()))}
        logs |= _driver_errors(archive)
    console = OutputConsole()
    for source, entries in logs.items():
        if as_json:
            print_json({"source": source.partition("  ")[0]} | errors_json(entries))
        else:
            console.print(Shown(errors_table(Text(source, style="bold"), entries)))
    if exit_code and any(logs.values()):
        raise click.exceptions.Exit(FOUND)


def _driver_errors(archive: ArchiveDirectory) -> dict[str, tuple[Any, ...]]:
    """The error log of the archive's driver, unless its directory is gone."""
    from headrace._base.exceptions import HeadraceError
    from headrace.cnc.cnc_file import CncFile
    from headrace.cnc.error_log import read_error_log

    directory = archive.mark().aeron_directory
    try:
        with CncFile.open(Path(directory)) as cnc:
            return {f"driver  {directory}": tuple(read_error_log(cnc.error_log))}
    except (HeadraceError, OSError) as reason:
        click.echo(f"the driver's errors cannot be read: {shown(str(reason))}", err=True)
        return {}


@click.command("checksum")
@click.argument("checksum", metavar="CHECKSUM")
@click.argument("recording_id", type=int, required=False)
@archive_directory_option
@click.option(
    "--thorough", "-t", is_flag=True, help="All segment files, not only the last of each recording."
)
@dry_run_option
@options.json_option
def checksum_command(
    checksum: str,
    recording_id: int | None,
    archive_directory: Path,
    thorough: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write checksums, CRC-32 or CRC-32C, into the catalog and into the frames of recordings. Stop the archive first.

    Each checksum overwrites the session id in its frame. This cannot be undone: afterwards the catalog alone has a
    session id, that of the recording's last publisher. `verify --checksum` compares frames with these checksums.
    """
    from headrace.archive.files import write_checksums

    is_ok = True
    for finding in write_checksums(
        archive_directory, checksum, recording_id, is_thorough=thorough, is_dry_run=dry_run
    ):
        is_ok &= finding.is_ok
        if as_json:
            print_json(dataclasses.asdict(finding))
        else:
            click.echo(
                f"recording {finding.recording_id}: {'' if finding.is_ok else 'ERROR: '}{shown(finding.text)}"
            )
    if not is_ok:
        raise click.exceptions.Exit(FAILED)


@click.command("compact")
@archive_directory_option
@dry_run_option
@yes_option
@options.json_option
def compact_command(archive_directory: Path, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete all recordings that are marked as invalid or deleted, and their files. This cannot be undone.

    Valid recordings stay. Stop the archive first.

    \b
    Examples:
      headrace archive compact --dry-run -a /data/recordings
      headrace archive compact --yes -a /data/recordings
    """
    from headrace.archive.files import compact

    def run(is_dry_run: bool) -> Deletion:
        return compact(archive_directory, is_dry_run=is_dry_run)

    _delete(run, dry_run, yes, as_json)


@click.command("delete-orphaned-segments")
@click.argument("recording_id", type=int, required=False)
@archive_directory_option
@dry_run_option
@yes_option
@options.json_option
def delete_orphaned_segments_command(
    recording_id: int | None, archive_directory: Path, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Delete the segment files that are outside their recording. This cannot be undone.

    Such a file has a position before the recording's start position (it was detached) or after its stop position, or
    its name has no position. Stop the archive first.
    """
    from headrace.archive.files import delete_orphaned_segments

    def run(is_dry_run: bool) -> Deletion:
        return delete_orphaned_segments(archive_directory, recording_id, is_dry_run=is_dry_run)

    _delete(run, dry_run, yes, as_json)


def _delete(run: Callable[[bool], Deletion], dry_run: bool, yes: bool, as_json: bool) -> None:
    """Say what goes, ask, delete it, and say what has gone."""
    found = run(True)
    if not dry_run:
        if found.files or found.recording_ids:
            if not as_json:
                _show_files(found)
            confirm(f"delete {_amount(found)}?", is_confirmed=yes)
        # Also if there is nothing to delete: beside a running archive the command does not say that it has.
        found = run(False)
    if as_json:
        print_json(dataclasses.asdict(found) | {"is_dry_run": dry_run})
        return
    if dry_run:
        _show_files(found)
    click.echo(f"{'would delete' if dry_run else 'deleted'} {_amount(found)}")


def _amount(found: Deletion) -> str:
    recordings, files = len(found.recording_ids), len(found.files)
    parts = [f"{format_count(recordings)} recording{'s' * (recordings != 1)}"] * bool(recordings)
    parts.append(f"{format_count(files)} file{'s' * (files != 1)} with {format_bytes(found.byte_count)}")
    return " and ".join(parts)


def _show_files(found: Deletion) -> None:
    for name in found.files[:_FILES_SHOWN]:
        click.echo(f"  {shown(name)}")
    if len(found.files) > _FILES_SHOWN:
        click.echo(f"  and {format_count(len(found.files) - _FILES_SHOWN)} more; --json lists them all")


@click.command("mark-valid")
@click.argument("recording_id", type=int)
@archive_directory_option
@dry_run_option
def mark_valid_command(recording_id: int, archive_directory: Path, dry_run: bool) -> None:
    """Mark an invalid recording as valid, so that the archive lists it again. Stop the archive first."""
    from headrace.archive.files import mark_valid

    mark_valid(archive_directory, recording_id, is_dry_run=dry_run)
    click.echo(f"recording {recording_id} {'would be' if dry_run else 'is'} VALID")


@click.command("mark-invalid")
@click.argument("recording_id", type=int)
@archive_directory_option
@dry_run_option
def mark_invalid_command(recording_id: int, archive_directory: Path, dry_run: bool) -> None:
    """Mark a recording as invalid: the archive no longer lists it, and `compact` deletes it. Stop the archive first.

    Its files stay until then, and `mark-valid` undoes it.
    """
    from headrace.archive.files import mark_invalid

    mark_invalid(archive_directory, recording_id, is_dry_run=dry_run)
    click.echo(f"recording {recording_id} {'would be' if dry_run else 'is'} INVALID")
