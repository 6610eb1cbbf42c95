"""Commands that have a running archive change which segment files belong to a recording."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.archive.access import (
    ArchiveAddress,
    archive_directory_option,
    confirm,
    dry_run_option,
    file_count,
    known,
    session,
    session_options,
    yes_option,
)


@click.command("detach-segments")
@click.argument("recording_id", type=int)
@click.argument("position", type=int)
@session_options
@dry_run_option
def detach_command(recording_id: int, position: int, address: ArchiveAddress, dry_run: bool) -> None:
    """Move the start of a recording to the segment file with POSITION. The files before it stay on disk.

    You may move these files away, and attach them again later. The archive refuses while a replay reads one of them.

    \b
    Examples:
      headrace archive detach-segments 0 1073741824
    """
    from headrace.archive.files import check_new_start

    with session(address, "detach-segments") as archive:
        descriptor = known(archive, recording_id)
        start = descriptor.geometry.segment_base(position)
        if dry_run:
            check_new_start(descriptor, start, archive.max_recorded_position(recording_id))
            click.echo(f"recording {recording_id} would begin at position {start}")
            return
        archive.detach_segments(recording_id, start)
    click.echo(f"recording {recording_id} now begins at position {start}")


@click.command("purge-segments")
@click.argument("recording_id", type=int)
@click.argument("position", type=int)
@session_options
@dry_run_option
@yes_option
def purge_command(
    recording_id: int, position: int, address: ArchiveAddress, dry_run: bool, yes: bool
) -> None:
    """Delete the segment files of a recording before the file that holds POSITION. This cannot be undone.

    The file that holds POSITION stays, and so do all files after it. The recording may be active. The archive refuses
    while a replay reads one of the files to be deleted.

    \b
    Examples:
      headrace archive purge-segments 0 1073741824 --dry-run
    """
    from headrace.archive.files import check_new_start

    with session(address, "purge-segments") as archive:
        descriptor = known(archive, recording_id)
        start = descriptor.geometry.segment_base(position)
        least = max(0, start - descriptor.geometry.first_segment) // descriptor.segment_file_length
        if dry_run:
            check_new_start(descriptor, start, archive.max_recorded_position(recording_id))
            click.echo(
                f"would delete {file_count(least)}: recording {recording_id} would begin at position {start} "
                f"instead of {descriptor.start_position}"
            )
            return
        confirm(
            f"delete {file_count(least)} of recording {recording_id} before position {start}?",
            is_confirmed=yes,
        )
        count = archive.purge_segments(recording_id, start)
    click.echo(f"recording {recording_id} now begins at position {start}; {file_count(count)} deleted")


@click.command("delete-detached-segments")
@click.argument("recording_id", type=int)
@session_options
@archive_directory_option
@dry_run_option
@yes_option
def delete_detached_command(
    recording_id: int, address: ArchiveAddress, archive_directory: Path, dry_run: bool, yes: bool
) -> None:
    """Delete the segment files before the start position of a recording. This cannot be undone.

    These are the files that `detach-segments` left. The recording itself stays whole. `--dry-run` asks no archive: it
    looks at the files in --archive-dir. `headrace archive delete-orphaned-segments --dry-run` prints their names.
    """
    from headrace.archive.files import ArchiveDirectory

    if dry_run:
        with ArchiveDirectory(archive_directory) as files:
            names = files.detached_segments(recording_id)
        click.echo(f"{file_count(len(names))} would be deleted")
        return
    with session(address, "delete-detached-segments") as archive:
        start = known(archive, recording_id).start_position
        question = f"delete every segment file of recording {recording_id} before its start position {start}?"
        confirm(question, is_confirmed=yes)
        count = archive.delete_detached_segments(recording_id)
    click.echo(f"{file_count(count)} deleted")


@click.command("attach-segments")
@click.argument("recording_id", type=int)
@session_options
@archive_directory_option
@dry_run_option
def attach_command(
    recording_id: int, address: ArchiveAddress, archive_directory: Path, dry_run: bool
) -> None:
    """Attach the segment files that end where a recording begins, and those before them.

    Put them into the archive's directory first, under the names that they had. `--dry-run` asks no archive: it looks at
    the files in --archive-dir.
    """
    from headrace.archive.files import ArchiveDirectory

    if dry_run:
        with ArchiveDirectory(archive_directory) as files:
            count, start = files.would_attach(recording_id)
        click.echo(
            f"{file_count(count)} would be attached; recording {recording_id} would begin at position {start}"
        )
        return
    with session(address, "attach-segments") as archive:
        count = archive.attach_segments(recording_id)
        start = archive.start_position(recording_id)
    click.echo(f"{file_count(count)} attached; recording {recording_id} begins at position {start}")


@click.command("migrate-segments")
@click.argument("source_id", type=int)
@click.argument("destination_id", type=int)
@session_options
@archive_directory_option
@dry_run_option
@yes_option
def migrate_command(
    source_id: int,
    destination_id: int,
    address: ArchiveAddress,
    archive_directory: Path,
    dry_run: bool,
    yes: bool,
) -> None:
    """Make all of a stopped recording the beginning, or the end, of another one. The source is empty afterwards.

    The source must end where the destination begins, or begin where it ends, at the border of segment files.
    `--dry-run` asks no archive: it looks at the files in --archive-dir.
    """
    from headrace.archive.files import ArchiveDirectory

    if dry_run:
        with ArchiveDirectory(archive_directory) as files:
            count, joined = files.would_migrate(source_id, destination_id)
        end = "be active" if joined.is_active else f"end at {joined.stop_position}"
        click.echo(
            f"{file_count(count)} would be moved; recording {destination_id} would begin at position "
            f"{joined.start_position} and {end}"
        )
        return
    with session(address, "migrate-segments") as archive:
        source = known(archive, source_id)
        question = (
            f"move everything of recording {source_id}, positions {source.start_position} to "
            f"{source.stop_position}, to recording {destination_id}?"
        )
        confirm(question, is_confirmed=yes)
        count = archive.migrate_segments(source_id, destination_id)
        joined = known(archive, destination_id)
    end = "is active" if joined.is_active else f"ends at {joined.stop_position}"
    click.echo(
        f"{file_count(count)} moved; recording {destination_id} now begins at position {joined.start_position} "
        f"and {end}"
    )
