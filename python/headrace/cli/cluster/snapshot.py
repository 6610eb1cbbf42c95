"""`headrace cluster describe-latest-snapshot`: what the consensus module has in its latest snapshot."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import click

from headrace.cli import options
from headrace.cli.cluster.access import directory_argument, member_files
from headrace.cli.controls import shown
from headrace.cli.lifecycle import FAILED
from headrace.cli.output import print_json

_TITLES = {
    "SnapshotMarker": "Snapshot:",
    "ConsensusModule": "Consensus Module State:",
    "ClusterSession": "Cluster Session:",
    "Timer": "Timer:",
    "PendingMessageTracker": "Pending Message Tracker:",
    "PendingMessage": "Pending Message:",
}
# What the lines begin with, as Aeron's tool has it; the other fields follow.
_FIRST = {
    "SnapshotMarker": "app_version",
    "ConsensusModule": "next_session_id",
    "ClusterSession": "cluster_session_id",
    "Timer": "correlation_id",
    "PendingMessageTracker": "next_service_session_id",
    "PendingMessage": "length",
}


@click.command("describe-latest-snapshot")
@directory_argument
@options.json_option
def describe_snapshot_command(directory: Path, as_json: bool) -> None:
    """Print what the consensus module has in the latest valid snapshot of a member, one entry a line.

    The archive of the member's node must run.
    """
    from headrace.cluster.running_member import RunningMember

    with member_files(directory).recording_log() as log:
        entries = log.latest_snapshot(0)
    if not entries:
        click.echo("error: Snapshot not found", err=True)
        raise click.exceptions.Exit(FAILED)
    member, entry, length = RunningMember(directory), entries[0], 0
    for kind, values, data_length in _entries(member.snapshot_messages(entry.recording_id)):
        if as_json:
            print_json({"kind": kind} | values)
        else:
            click.echo(shown(_line(kind, values, length)))
        length += data_length
    if not as_json:
        click.echo(
            f"Consensus Module Snapshot End: memberId={member.mark.member_id} "
            f"recordingId={entry.recording_id} length={length}"
        )


def _entries(messages: Iterator[bytes]) -> Iterator[tuple[str, dict[str, Any], int]]:
    from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, template_of, unpack_header
    from headrace.cluster.protocol.messages import decode

    for data in messages:
        if template_of(data) == SESSION_MESSAGE:
            session_id = unpack_header(data)[1]
            values = {"length": len(data) - HEADER_LENGTH, "cluster_session_id": session_id}
            yield "PendingMessage", values, len(data)
            continue
        message = decode(data)
        if message is not None:
            fields = {name: _plain(value) for name, value in dataclasses.asdict(message).items()}
            yield type(message).__name__, fields, len(data)


def _plain(value: object) -> object:
    return value.name if isinstance(value, Enum) else value


def _line(kind: str, values: dict[str, Any], offset: int) -> str:
    first = _FIRST.get(kind)
    names = [name for name in (first, *(name for name in values if name != first)) if name is not None]
    fields = " ".join(f"{_camel(name)}={values[name]}" for name in names)
    if kind == "SnapshotMarker" and values["mark"] == "END":
        return f"End Snapshot, offset={offset} {fields}"
    return f"{_TITLES.get(kind, kind)} {fields}"


def _camel(name: str) -> str:
    head, *others = name.split("_")
    return head + "".join(word.capitalize() for word in others)
