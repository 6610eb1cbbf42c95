"""Commands that have a running archive end recordings, or delete them."""

from __future__ import annotations

import click

from headrace.cli.archive.access import (
    ArchiveAddress,
    confirm,
    dry_run_option,
    file_count,
    known,
    session,
    session_options,
    yes_option,
)


@click.command("stop")
@click.argument("recording_id", type=int, required=False)
@click.option(
    "--channel", "-c", help="With --stream, instead of an id: the channel that was given to `record`."
)
@click.option("--stream", "-s", "stream_id", type=int, help="The stream that was given to `record`.")
@session_options
@dry_run_option
def stop_command(
    recording_id: int | None,
    channel: str | None,
    stream_id: int | None,
    address: ArchiveAddress,
    dry_run: bool,
) -> None:
    """Stop a recording, or with --channel and --stream all recording of a stream. What was recorded stays.

    A request to record goes on when its program is gone, such as `headrace archive record` that was killed; this
    command ends it, also while no publisher is recorded.

    \b
    Examples:
      headrace archive stop 3
      headrace archive stop -c aeron:ipc -s 1001
    """
    is_stream = channel is not None and stream_id is not None
    if (recording_id is None) != is_stream or (channel is None) != (stream_id is None):
        raise click.UsageError("give the id of a recording, or else --channel and --stream")
    with session(address, "stop") as archive:
        if channel is not None and stream_id is not None:
            what, is_recorded = f"stream {stream_id} of {channel}", True
            if dry_run:
                is_recorded = bool(archive.list_recording_subscriptions(channel, stream_id))
            else:
                archive.stop_recording(channel, stream_id)
        else:
            assert recording_id is not None, "checked"
            what = f"recording {recording_id}"
            if dry_run:
                is_recorded = known(archive, recording_id).is_active
            else:
                is_recorded = archive.stop_recording_by_id(recording_id)
    if not is_recorded:
        click.echo(f"{what} is not being recorded; nothing to stop")
    else:
        click.echo(f"{what} {'would be' if dry_run else 'is'} stopped")


@click.command("purge")
@click.argument("recording_id", type=int)
@session_options
@dry_run_option
@yes_option
def purge_command(recording_id: int, address: ArchiveAddress, dry_run: bool, yes: bool) -> None:
    """Delete a whole recording, with all its files. This cannot be undone.

    The recording must be stopped, and no replay may read it. A hold does not keep it.

    \b
    Examples:
      headrace archive purge 3 --dry-run
    """
    from headrace.archive import ArchiveError

    with session(address, "purge") as archive:
        descriptor = known(archive, recording_id)
        if descriptor.is_active:
            rule = f"stop it first: `headrace archive stop {recording_id}`"
            raise ArchiveError(
                f"cannot purge active recording {recording_id}: {rule}", recording_id=recording_id
            )
        of_what = f"recording {recording_id}, stream {descriptor.stream_id} of {descriptor.original_channel}"
        begin, end = descriptor.start_position, descriptor.stop_position
        if dry_run:
            click.echo(f"would delete {of_what}, from position {begin} to {end}")
            return
        confirm(f"permanently delete {of_what}, from position {begin} to {end}?", is_confirmed=yes)
        count = archive.purge_recording(recording_id)
    click.echo(f"recording {recording_id} is deleted, with {file_count(count)}")
