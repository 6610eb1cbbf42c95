"""Commands that have a running archive change which segment files belong to a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headrace._exceptions import ArchiveError
from headrace.cli.archive.access import ArchiveAddress, confirm, session, session_options

if TYPE_CHECKING:
    from headrace.archive import Archive, RecordingDescriptor


_dry_run_option = click.option("--dry-run", "-n", is_flag=True, help="Only say what would be deleted.")
_yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


@click.command("detach-segments")
@click.argument("recording_id", type=int)
@click.argument("position", type=int)
@session_options
def detach_command(recording_id: int, position: int, address: ArchiveAddress) -> None:
    """Have a recording begin at the start of the segment file with POSITION. The files before it stay on disk.

    They may be moved away, and attached again later. No replay may read them.

    \b
    Examples:
      headrace archive detach-segments 0 1073741824
    """
    with session(address, "detach-segments") as archive:
        start = _segment_start(_known(archive, recording_id), position)
        archive.detach_segments(recording_id, start)
    click.echo(f"recording {recording_id} now begins at position {start}")


@click.command("purge-segments")
@click.argument("recording_id", type=int)
@click.argument("position", type=int)
@session_options
@_dry_run_option
@_yes_option
def purge_command(
    recording_id: int, position: int, address: ArchiveAddress, dry_run: bool, yes: bool
) -> None:
    """Delete the segment files of a recording before the one with POSITION. This cannot be undone.

    The recording may be active. No replay may read the files.

    \b
    Examples:
      headrace archive purge-segments 0 1073741824 --dry-run
    """
    with session(address, "purge-segments") as archive:
        descriptor = _known(archive, recording_id)
        start = _segment_start(descriptor, position)
        least = max(0, start - descriptor.geometry.first_segment) // descriptor.segment_file_length
        if dry_run:
            click.echo(
                f"would delete {_files(least)}: recording {recording_id} would begin at position {start} "
                f"instead of {descriptor.start_position}"
            )
            return
        confirm(
            f"delete {_files(least)} of recording {recording_id} before position {start}?", is_confirmed=yes
        )
        count = archive.purge_segments(recording_id, start)
    click.echo(f"recording {recording_id} now begins at position {start}; {_files(count)} deleted")


@click.command("delete-detached-segments")
@click.argument("recording_id", type=int)
@session_options
@_yes_option
def delete_detached_command(recording_id: int, address: ArchiveAddress, yes: bool) -> None:
    """Delete the segment files before the start of a recording. This cannot be undone.

    `headrace archive delete-orphaned-segments --dry-run` prints their names.
    """
    with session(address, "delete-detached-segments") as archive:
        start = _known(archive, recording_id).start_position
        question = f"delete every segment file of recording {recording_id} before its start position {start}?"
        confirm(question, is_confirmed=yes)
        count = archive.delete_detached_segments(recording_id)
    click.echo(f"{_files(count)} deleted")


@click.command("attach-segments")
@click.argument("recording_id", type=int)
@session_options
def attach_command(recording_id: int, address: ArchiveAddress) -> None:
    """Take back the segment files that end where a recording begins, and those before them.

    Put them into the archive's directory first, under the names that they had.
    """
    with session(address, "attach-segments") as archive:
        count = archive.attach_segments(recording_id)
        start = archive.start_position(recording_id)
    click.echo(f"{_files(count)} attached; recording {recording_id} begins at position {start}")


@click.command("migrate-segments")
@click.argument("source_id", type=int)
@click.argument("destination_id", type=int)
@session_options
@_yes_option
def migrate_command(source_id: int, destination_id: int, address: ArchiveAddress, yes: bool) -> None:
    """Make all of a stopped recording the beginning, or the end, of another one. The source is empty afterwards.

    The source must end where the destination begins, or begin where it ends, at the border of segment files.
    """
    with session(address, "migrate-segments") as archive:
        source = _known(archive, source_id)
        question = (
            f"move everything of recording {source_id}, positions {source.start_position} to "
            f"{source.stop_position}, to recording {destination_id}?"
        )
        confirm(question, is_confirmed=yes)
        count = archive.migrate_segments(source_id, destination_id)
        joined = _known(archive, destination_id)
    end = "is active" if joined.is_active else f"ends at {joined.stop_position}"
    click.echo(
        f"{_files(count)} moved; recording {destination_id} now begins at position {joined.start_position} and {end}"
    )


def _known(archive: Archive, recording_id: int) -> RecordingDescriptor:
    descriptor = archive.find_recording(recording_id)
    if descriptor is None:
        raise ArchiveError(
            f"unknown recording id: {recording_id}; `headrace archive list` prints those of a directory"
        )
    return descriptor


def _segment_start(descriptor: RecordingDescriptor, position: int) -> int:
    return descriptor.geometry.segment_base(position)


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
