"""Commands on the files of a cluster's member."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from rich.table import Table

from headrace._base.control_characters import shown
from headrace.cli import options
from headrace.cli.archive.access import confirm
from headrace.cli.cluster.access import (
    archive_beside,
    archive_of,
    beside_archive_option,
    directory_argument,
    member_files,
    print_fields,
)
from headrace.cli.lifecycle import FAILED
from headrace.cli.output import Shown, print_json, print_whole

if TYPE_CHECKING:
    from headrace.cluster.files.directory import ClusterDirectory
    from headrace.cluster.files.recording_log import RecordingLog
    from headrace.cluster.files.recording_log_entries import Entry

_yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
_dry_run_option = click.option(
    "--dry-run", "-n", is_flag=True, help="Print what would change, and change nothing."
)


@click.command("recording-log")
@directory_argument
@options.json_option
def recording_log_command(directory: Path, as_json: bool) -> None:
    """List the terms and snapshots of a member, in the order in which a start looks at them.

    A table on a terminal; elsewhere the line that Aeron's ClusterTool prints.

    \b
    Examples:
      headrace cluster recording-log /data/aeron-cluster
    """
    with member_files(directory).recording_log() as log:
        entries = list(log)
    if as_json:
        for entry in entries:
            print_json(dataclasses.asdict(entry) | {"type": entry.type.name})
        return
    if not is_for_a_person():
        click.echo(shown(_as_tool_prints(entries)))
        return
    table = Table(box=None, header_style="bold")
    for name in ("entry", "what", "term", "begins", "position", "timestamp", "service", "recording", ""):
        table.add_column(name, justify="left" if name in ("what", "") else "right")
    for entry in entries:
        table.add_row(*_row(entry))
    print_whole(Shown(table))


def _row(entry: Entry) -> tuple[str, ...]:
    is_open = entry.is_term and entry.log_position < 0
    return (
        str(entry.index),
        entry.type.name.lower().replace("_", " "),
        str(entry.leadership_term_id),
        str(entry.term_base_log_position),
        "open" if is_open else str(entry.log_position),
        str(entry.timestamp),
        "-" if entry.service_id < 0 else str(entry.service_id),
        str(entry.recording_id),
        " ".join(filter(None, (entry.archive_endpoint, "" if entry.is_valid else "invalid"))),
    )


def is_for_a_person() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def _as_tool_prints(entries: list[Entry]) -> str:
    """The text of the cluster specification, 8.4."""
    terms = {one.leadership_term_id: at for at, one in enumerate(entries) if one.is_term and one.is_valid}
    index = ", ".join(f"{term_id}={at}" for term_id, at in terms.items())
    return f"RecordingLog{{entries=[{', '.join(map(_entry_text, entries))}], cacheIndex={{{index}}}}}"


def _entry_text(entry: Entry) -> str:
    endpoint = "" if entry.archive_endpoint is None else f", archiveEndpoint={entry.archive_endpoint}"
    return (
        f"Entry{{recordingId={entry.recording_id}, leadershipTermId={entry.leadership_term_id}, "
        f"termBaseLogPosition={entry.term_base_log_position}, logPosition={entry.log_position}, "
        f"timestamp={entry.timestamp}, serviceId={entry.service_id}, type={entry.type.name}, "
        f"isValid={str(entry.is_valid).lower()}, entryIndex={entry.index}{endpoint}}}"
    )


@click.command("recovery-plan")
@directory_argument
@click.argument("service_count", type=click.IntRange(min=0))
@beside_archive_option
@options.json_option
def recovery_plan_command(
    directory: Path, service_count: int, archive_directory: Path | None, as_json: bool
) -> None:
    """Show from which snapshot and which part of the log a member with SERVICE_COUNT services starts.

    \b
    Examples:
      headrace cluster recovery-plan /data/aeron-cluster 1 -a /data/aeron-archive
    """
    from headrace.archive.files import ArchiveDirectory
    from headrace.cluster.files.recovery_plan import recovery_plan

    with (
        member_files(directory).recording_log() as log,
        ArchiveDirectory(archive_of(directory, archive_directory)) as archive,
    ):
        plan = recovery_plan(log, service_count, archive.find)
    if as_json:
        print_json(dataclasses.asdict(plan))
        return
    values = dataclasses.asdict(dataclasses.replace(plan, snapshots=(), log=None))
    values["snapshots"] = ", ".join(f"recording {one.recording_id}" for one in plan.snapshots) or "none"
    values["log"] = "none"
    if plan.log is not None:
        values |= {f"log.{name}": value for name, value in dataclasses.asdict(plan.log).items()}
        del values["log"]
    print_fields(values)


@click.command("sort")
@directory_argument
def sort_command(directory: Path) -> None:
    """Write the entries of the recording log in the order in which a start looks at them. Stop the member first.

    All entries stay.
    """
    cluster = member_files(directory)
    with cluster.recording_log() as log:
        if log.is_sorted:
            _fail("the recording log is already in order")
    with cluster.changed_recording_log() as log:
        log.sort()
    click.echo("the recording log is now in order")


@click.command("seed")
@directory_argument
@_dry_run_option
@_yes_option
def seed_command(directory: Path, dry_run: bool, yes: bool) -> None:
    """Make the next start begin a new log at position 0, from the latest snapshot. Stop the member first.

    The services lose all messages that the log has after the snapshot, also those that they have answered. The command
    deletes the entries of all terms and of all other snapshots from recording.log. It first copies that file to
    recording.log.bak, over an older copy; the recordings stay in the archive. To undo it, copy recording.log.bak back
    to recording.log before the next start.

    Without a snapshot the command deletes recording.log, and the next start refuses to run while the archive has the
    old log.
    """
    cluster = member_files(directory)
    with cluster.recording_log() as log:
        snapshot = log.latest_snapshot(0)
        if log.is_seed:
            _fail("the recording log already has only a snapshot at position 0")
    if snapshot:
        what = (
            f"begin a new log from the snapshot at position {snapshot[0].log_position} of term "
            f"{snapshot[0].leadership_term_id}, without the messages after it"
        )
        question, preview = f"have the next start {what}?", f"the next start would {what}"
    else:
        what = "delete recording.log, which has no snapshot"
        question, preview = f"{what}?", f"would {what}"
    if dry_run:
        click.echo(preview)
        return
    cluster.check_no_member_runs()
    confirm(question, is_confirmed=yes)
    with _confirmed_log(cluster, snapshot) as log:
        count = log.seed_from_latest_snapshot()
    done = f"the recording log has {count} entries" if count else "recording.log is deleted"
    click.echo(f"{done}; the old file is recording.log.bak")


@click.command("invalidate-latest-snapshot")
@directory_argument
@beside_archive_option
@_dry_run_option
@_yes_option
def invalidate_command(directory: Path, archive_directory: Path | None, dry_run: bool, yes: bool) -> None:
    """Make the next start use the snapshot before the latest one, and replay the log from there. Stop the member first.

    The command marks the snapshot's entries in recording.log as invalid. No message is lost, and the snapshot's
    recordings stay in the archive. Without an earlier snapshot the next start replays the whole log. If the archive
    does not have the log from there on, the command refuses. No command makes the snapshot valid again: to be able to
    undo it, copy recording.log first.
    """
    cluster = member_files(directory)
    with cluster.recording_log() as log:
        snapshot = log.latest_snapshot(0)
        if not snapshot:
            _fail("the recording log has no snapshot")
        needed = _position_of_snapshot_before(log, snapshot[0])
        _check_log_from(log, needed, archive_beside(directory, archive_directory))
    where = f"the snapshot at position {snapshot[0].log_position} of term {snapshot[0].leadership_term_id}"
    then = f"the next start replays the log from position {needed}"
    if dry_run:
        click.echo(f"would invalidate {where}; {then}")
        return
    cluster.check_no_member_runs()
    confirm(f"invalidate {where}? {then[0].upper()}{then[1:]}.", is_confirmed=yes)
    with _confirmed_log(cluster, snapshot) as log:
        log.invalidate_latest_snapshot()
    click.echo(f" invalidate latest snapshot: true\n{where} is invalid now; {then}")


def _position_of_snapshot_before(log: RecordingLog, latest: Entry) -> int:
    """Where a start without the latest snapshot begins; 0 without an earlier one."""
    places = {(one.leadership_term_id, one.log_position) for one in log if one.is_snapshot and one.is_valid}
    return max(
        (position for _, position in places - {(latest.leadership_term_id, latest.log_position)}), default=0
    )


def _check_log_from(log: RecordingLog, position: int, archive_directory: Path | None) -> None:
    """Refuse what would leave the member without a way to start; only the archive's files can tell."""
    from headrace.archive.files import ArchiveDirectory

    term = log.last_term
    if archive_directory is None or term is None:
        return
    with ArchiveDirectory(archive_directory) as archive:
        recording = archive.find(term.recording_id)
    if recording is not None and recording.start_position > position:
        _fail(
            f"a start without the latest snapshot needs the log from position {position} on, and the archive in "
            f"{archive_directory} has it from position {recording.start_position} on only"
        )


@contextmanager
def _confirmed_log(cluster: ClusterDirectory, snapshot: list[Entry]) -> Iterator[RecordingLog]:
    """The log to be changed, unless a member has changed it since a person was asked about its latest snapshot."""
    with cluster.changed_recording_log() as log:
        if log.latest_snapshot(0) != snapshot:
            _fail("the recording log has another latest snapshot now")
        yield log


def _fail(why: str) -> NoReturn:
    click.echo(f"error: {why}; nothing was changed", err=True)
    raise click.exceptions.Exit(FAILED)
