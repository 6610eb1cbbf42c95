"""`headrace cluster describe-latest-snapshot`: what the consensus module has in its latest snapshot."""

from __future__ import annotations

import dataclasses
from enum import Enum
from pathlib import Path
from typing import Any

import click

from headrace._base.control_characters import shown
from headrace.cli import options
from headrace.cli.cluster.access import archive_of, beside_archive_option, directory_argument, member_files
from headrace.cli.lifecycle import FAILED
from headrace.cli.output import print_json
from headrace.positions import FRAME_ALIGNMENT, HEADER_LENGTH, align

_TITLES = {
    "ConsensusModule": "Consensus Module State:",
    "ClusterSession": "Cluster Session:",
    "Timer": "Timer:",
    "PendingMessageTracker": "Pending Message Tracker:",
    "PendingMessage": "Pending Message:",
}
_UNITS = {"MILLIS": "MILLISECONDS", "MICROS": "MICROSECONDS", "NANOS": "NANOSECONDS"}
# What the lines begin with, as Aeron's tool has it; the other fields follow.
_FIRST = {
    "ConsensusModule": "next_session_id",
    "ClusterSession": "cluster_session_id",
    "Timer": "correlation_id",
    "PendingMessageTracker": "next_service_session_id",
    "PendingMessage": "length",
}


@click.command("describe-latest-snapshot")
@directory_argument
@beside_archive_option
@options.json_option
def describe_snapshot_command(directory: Path, archive_directory: Path | None, as_json: bool) -> None:
    """Print the consensus module's part of the latest valid snapshot of a member, one entry a line.

    The command asks the archive of the member's node. With --archive-dir, or where the node does not run, it reads the
    archive's files instead.
    """
    from headrace.cluster.node.running_member import RunningMember, stored_messages

    with member_files(directory).recording_log() as log:
        entries = log.latest_snapshot(0)
    if not entries:
        click.echo("error: Snapshot not found", err=True)
        raise click.exceptions.Exit(FAILED)
    member, entry, end = RunningMember(directory), entries[0], 0
    if archive_directory is None and member.has_driver:
        messages = member.snapshot_messages(entry.recording_id)
    else:
        messages = stored_messages(archive_of(directory, archive_directory), entry.recording_id)
    for position, data in messages:
        end = position
        kind, values = _entry(data)
        if as_json:
            print_json({"kind": kind} | values)
        else:
            begin = position - align(HEADER_LENGTH + len(data), FRAME_ALIGNMENT) + HEADER_LENGTH
            click.echo(shown(_line(kind, values, begin, len(data))))
    if not as_json:
        click.echo(
            f"Consensus Module Snapshot End: memberId={member.mark.member_id} "
            f"recordingId={entry.recording_id} length={end}"
        )


def _entry(data: bytes) -> tuple[str, dict[str, Any]]:
    from headrace.cluster.protocol import header
    from headrace.cluster.protocol.messages import decode

    if header.template_of(data) == header.SESSION_MESSAGE:
        session_id = header.unpack_header(data)[1]
        return "PendingMessage", {
            "length": len(data) - header.HEADER_LENGTH,
            "cluster_session_id": session_id,
        }
    message = decode(data)
    if message is None:
        return "Unknown", {"length": len(data)}
    return type(message).__name__, {
        name: _plain(value) for name, value in dataclasses.asdict(message).items()
    }


def _plain(value: object) -> object:
    return value.name if isinstance(value, Enum) else value


def _line(kind: str, values: dict[str, Any], offset: int, length: int) -> str:
    """An entry as Aeron's tool prints it; `--json` has all fields of the markers."""
    if kind == "SnapshotMarker":
        if values["mark"] == "END":
            return f"End Snapshot, offset={offset}, length={length}"
        return f"Snapshot: appVersion={values['app_version']} timeUnit={_UNITS[values['time_unit']]}"
    first = _FIRST.get(kind)
    names = [name for name in (first, *(name for name in values if name != first)) if name is not None]
    fields = " ".join(
        f"{_camel(name)}={'NULL_VAL' if values[name] is None else values[name]}" for name in names
    )
    return f"{_TITLES.get(kind, kind)} {fields}"


def _camel(name: str) -> str:
    head, *others = name.split("_")
    return head + "".join(word.capitalize() for word in others)
