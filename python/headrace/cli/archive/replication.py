"""`headrace archive replicate`: have a running archive copy a recording of another one."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._base.control_characters import shown
from headrace._base.exceptions import ArchiveError
from headrace.cli import options
from headrace.cli.archive.access import (
    ArchiveAddress,
    credentials_of,
    dry_run_option,
    known,
    session,
    session_options,
)
from headrace.cli.lifecycle import INTERRUPTED, Stop, until_stopped
from headrace.cli.output import print_json
from headrace.tools.units import format_bytes

if TYPE_CHECKING:
    from headrace.archive import Archive, Replication

_LOOK_INTERVAL_S = 0.25
_PROGRESS_INTERVAL_S = 1.0


@click.command("replicate")
@click.argument("recording_id", type=int)
@click.argument("source_channel")
@session_options
@click.option(
    "--into",
    "destination_id",
    type=int,
    help="Go on with this recording of the archive.  [default: a new recording]",
)
@click.option("--to", "stop_position", type=click.IntRange(min=0), help="End at this position.")
@click.option(
    "--live",
    "live_destination",
    help="Join the publisher's own stream on this channel when the copy has caught up, and go on with it.",
)
@click.option(
    "--replication-channel",
    help="Address of the archive at which the copy arrives.  [default: the archive's setting]",
)
@click.option(
    "--source-credentials-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File whose first line is name:secret, the credentials for the source archive; this archive sends them there.",
)
@dry_run_option
@options.json_option
def replicate_command(
    recording_id: int,
    source_channel: str,
    address: ArchiveAddress,
    destination_id: int | None,
    stop_position: int | None,
    live_destination: str | None,
    replication_channel: str | None,
    source_credentials_file: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Copy RECORDING_ID of the archive at SOURCE_CHANNEL into the archive; follow it if it is active.

    Ends where the source ends, at --to, or with --live when the live stream has taken over. Ctrl-C stops the copy; what
    was copied stays, and --into goes on with it.

    \b
    Examples:
      headrace archive replicate 0 aeron:udp?endpoint=primary:8010
      headrace archive replicate 0 aeron:udp?endpoint=primary:8010 --into 3
    """
    if dry_run:
        there = dataclasses.replace(
            address,
            control_channel=source_channel,
            response_channel=None,
            credentials_file=source_credentials_file,
        )
        _say(address, there, recording_id, destination_id)
        return
    with session(address, "replicate") as archive, until_stopped() as stop:
        replication = archive.replicate(
            recording_id,
            source_channel,
            destination_id=destination_id,
            stop_position=stop_position,
            live_destination=live_destination,
            replication_channel=replication_channel,
            credentials=credentials_of(source_credentials_file),
        )
        _follow(archive, replication, stop, as_json)
        try:
            position = replication.wait(0)
        except ArchiveError as failure:
            if replication.recording_id is None:
                raise
            rest = f"recording {replication.recording_id} has the data copied so far; --into continues it"
            raise ArchiveError(f"{failure}; {rest}") from failure
        if not as_json:
            where = "" if position is None else f" at position {position}"
            click.echo(f"recording {replication.recording_id} is a copy of {recording_id}, and ends{where}")
    if stop.is_set:
        raise click.exceptions.Exit(INTERRUPTED)


def _say(
    address: ArchiveAddress, there: ArchiveAddress, recording_id: int, destination_id: int | None
) -> None:
    """What a copy would bring, by what the two archives have."""
    with session(there, "replicate") as source:
        original = known(source, recording_id)
        end = source.max_recorded_position(recording_id)
    begin, into = original.start_position, "a new recording"
    if destination_id is not None:
        with session(address, "replicate") as archive:
            copy = known(archive, destination_id)
        into = f"recording {destination_id}"
        if copy.is_active:
            raise ArchiveError(f"{into} is active, so a copy cannot extend it")
        begin = copy.stop_position if copy.stop_position > copy.start_position else begin
    further = ", and everything recorded later" if original.is_active else ""
    click.echo(
        f"would copy positions {begin} to {end}, {format_bytes(max(0, end - begin))}{further}, of recording "
        f"{recording_id} at {there.control_channel} into {into}"
    )


def _follow(archive: Archive, replication: Replication, stop: Stop, as_json: bool) -> None:
    """Show what becomes of it until it has ended; a person may stop it."""
    shown_count, next_progress_s = 0, time.monotonic() + _PROGRESS_INTERVAL_S
    while True:
        has_ended = replication.has_ended
        signals = replication.signals
        for one in signals[shown_count:]:
            _show(one.signal.name, one.recording_id, one.position, as_json)
        shown_count = len(signals)
        if has_ended:
            return
        if not archive.is_connected:
            raise ArchiveError(f"{archive._why_lost()}; its files keep what it had copied")
        if time.monotonic() >= next_progress_s:
            next_progress_s += _PROGRESS_INTERVAL_S
            _show_progress(archive, replication)
        if not stop.is_set and stop.wait(_LOOK_INTERVAL_S):
            try:
                archive.stop_replication(replication.replication_id)
            except ArchiveError as refusal:
                # It has ended by itself meanwhile.
                click.echo(f"note: {shown(str(refusal))}", err=True)


def _show(signal: str, recording_id: int, position: int, as_json: bool) -> None:
    if as_json:
        print_json({"signal": signal, "recording_id": recording_id, "position": position})
    elif position >= 0:
        click.echo(
            f"{signal.lower()} recording {recording_id} at position {position}, {format_bytes(position)}"
        )


def _show_progress(archive: Archive, replication: Replication) -> None:
    """How far it is, where a person looks on."""
    recording_id = replication.recording_id
    if recording_id is not None and sys.stderr.isatty():
        position = archive.max_recorded_position(recording_id)
        click.echo(f"recording {recording_id} is at position {position}, {format_bytes(position)}", err=True)
