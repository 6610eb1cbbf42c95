"""Commands that send requests to a running archive."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._base.control_characters import shown
from headrace._base.exceptions import ArchiveError
from headrace.cli import options
from headrace.cli.archive.access import (
    ArchiveAddress,
    archive_directory_option,
    confirm,
    dry_run_option,
    file_count,
    session,
    session_options,
    yes_option,
)
from headrace.cli.lifecycle import FAILED, Stop, until_stopped
from headrace.cli.output import print_json
from headrace.cli.progress import RateLine
from headrace.cli.subscribe import WRITERS, write_json
from headrace.tools.units import format_bytes

if TYPE_CHECKING:
    from headrace.archive import Archive

_LOOK_INTERVAL_S = 0.25
_STOP_TIMEOUT_S = 10.0


@click.command("replay")
@click.argument("recording_id", type=int)
@session_options
@click.option("--from", "position", type=int, help="First position.  [default: where the recording begins]")
@click.option("--length", "-L", type=click.IntRange(min=0), help="Bytes of stream.  [default: all]")
@click.option(
    "--channel",
    "-c",
    default="aeron:ipc",
    show_default=True,
    help="Channel on which the archive sends the messages.",
)
@options.message_options
@options.json_option
def replay_command(
    recording_id: int,
    address: ArchiveAddress,
    position: int | None,
    length: int | None,
    channel: str,
    count: int | None,
    format_: str,
    as_json: bool,
) -> None:
    """Print the messages of a recording. If it is active, also print new messages until it stops, or until Ctrl-C.

    \b
    Examples:
      headrace archive replay 0
      headrace archive replay 3 --from 65536 --length 4096 --json
    """
    write = write_json if as_json else WRITERS[format_]
    line = RateLine("replayed", is_shown=format_ == "none" and not as_json)
    with (
        # Ctrl-C ends the wait for an archive at once.
        session(address, "replay") as archive,
        archive.replay(recording_id, position=position, length=length, channel=channel) as replay,
        until_stopped() as stop,
        line,
    ):
        for message in replay:
            write(message.payload, message)
            line.add(1, len(message.payload))
            line.refresh()
            if stop.is_set or line.count == count:
                break
    if format_ == "none" and not as_json:
        click.echo(line.summary())


@click.command("record")
@session_options
@options.channel_option()
@options.stream_option()
@click.option("--remote", is_flag=True, help="The publishers are on another driver than the archive.")
@options.json_option
def record_command(
    address: ArchiveAddress,
    channel: str,
    stream_id: int,
    remote: bool,
    as_json: bool,
) -> None:
    """Record every publisher of a stream until Ctrl-C.

    \b
    Examples:
      headrace archive record -c aeron:ipc -s 1001
      headrace archive record -c 'aeron:udp?endpoint=localhost:20121' --remote
    """
    from headrace.archive import ErrorCode, SourceLocation

    location = SourceLocation.REMOTE if remote else SourceLocation.LOCAL
    failures: list[ArchiveError] = []

    def fail(error: ArchiveError) -> None:
        failures.append(error)
        click.echo(f"error: {shown(str(error))}", err=True)

    with (
        session(address, "record", fail) as archive,
        until_stopped() as stop,
    ):
        try:
            subscription_id = archive.start_recording(channel, stream_id, location=location)
        except ArchiveError as refusal:
            if refusal.code != ErrorCode.ACTIVE_SUBSCRIPTION:
                raise
            advice = f"`headrace archive stop -c '{channel}' -s {stream_id}` stops it"
            raise ArchiveError(f"{refusal}; {advice}", refusal.code, refusal.code_name) from refusal
        if not as_json:
            click.echo(f"recording {channel} stream {stream_id}; Ctrl-C ends it", err=True)
        _follow(archive, subscription_id, stop, as_json)
    if failures:
        raise click.exceptions.Exit(FAILED)


def _follow(archive: Archive, subscription_id: int, stop: Stop, as_json: bool) -> None:
    """Show what becomes of the recordings, until the person or another client stops them and each has ended."""
    from headrace.archive import ErrorCode, RecordingSignal

    active: set[int] = set()
    deadline: float | None = None
    while True:
        for one in archive.take_signals():
            if one.signal == RecordingSignal.START:
                active.add(one.recording_id)
            elif one.signal == RecordingSignal.STOP:
                active.discard(one.recording_id)
            _show(one.signal.name, one.recording_id, one.position, as_json)
        if not archive.is_connected:
            raise ArchiveError(f"{archive._why_lost()}; its files keep what it had recorded")
        if deadline is not None:
            if not active or time.monotonic() >= deadline:
                return
            continue
        is_stopped = stop.wait(_LOOK_INTERVAL_S)
        if is_stopped:
            try:
                archive.stop_recording_subscription(subscription_id)
            except ArchiveError as refusal:
                if refusal.code != ErrorCode.UNKNOWN_SUBSCRIPTION:
                    raise
        elif not _is_requested(archive, subscription_id):
            click.echo("another client has stopped the recording", err=True)
            is_stopped = True
        if is_stopped:
            deadline = time.monotonic() + _STOP_TIMEOUT_S


def _is_requested(archive: Archive, subscription_id: int) -> bool:
    """Whether the archive still has the request to record; an archive that does not say so counts as one that has."""
    try:
        return any(one == subscription_id for one, _, _ in archive.list_recording_subscriptions())
    except ArchiveError:
        return True


def _show(signal: str, recording_id: int, position: int, as_json: bool) -> None:
    if as_json:
        print_json({"signal": signal, "recording_id": recording_id, "position": position})
    else:
        click.echo(
            f"{signal.lower()} recording {recording_id} at position {position}, {format_bytes(position)}"
        )


@click.command("truncate")
@click.argument("recording_id", type=int)
@click.argument("position", type=int)
@session_options
@archive_directory_option
@dry_run_option
@yes_option
def truncate_command(
    recording_id: int,
    position: int,
    address: ArchiveAddress,
    archive_directory: Path,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete everything recorded after POSITION from a stopped recording. This cannot be undone.

    POSITION becomes the stop position. It must be where a frame begins or ends; `headrace archive dump` prints where
    frames begin. `--dry-run` asks no archive: it looks at the files in --archive-dir.
    """
    from headrace.archive.files import ArchiveDirectory

    if dry_run:
        with ArchiveDirectory(archive_directory) as files:
            count = len(files.would_truncate(recording_id, position))
        click.echo(
            f"recording {recording_id} would end at position {position}; {file_count(count)} would be deleted"
        )
        return
    with session(address, "truncate") as archive:
        stop = archive.stop_position(recording_id)
        question = (
            f"delete everything after position {position} from recording {recording_id}, "
            f"which ends at position {stop}?"
        )
        confirm(question, is_confirmed=yes)
        count = archive.truncate_recording(recording_id, position)
    click.echo(f"recording {recording_id} now ends at position {position}; {file_count(count)} deleted")
