"""`headrace archive`: run an archive, read its files, send requests to a running archive."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import click

from headrace.cli import options
from headrace.cli.archive.access import archive_directory_setting_option
from headrace.cli.controls import ShownFormatter
from headrace.cli.driver import (
    allow_unknown_option,
    check_threads,
    known_settings,
    property_option,
    quiet_option,
)
from headrace.cli.groups import LazyCommand, LazyGroup
from headrace.cli.lifecycle import until_stopped

_FILES, _SESSIONS = "headrace.cli.archive.files", "headrace.cli.archive.sessions"
_RECORDINGS = "headrace.cli.archive.recordings"
_SEGMENTS = "headrace.cli.archive.segments"
_RETENTION = "headrace.cli.archive.retention"
_REPLICATION = "headrace.cli.archive.replication"
_STREAMS = "headrace.cli.archive.streams"
_UPKEEP = "headrace.cli.archive.upkeep"
SUBCOMMANDS = {
    "list": LazyCommand(_FILES, "List the recordings in an archive's directory.", "list_command"),
    "describe": LazyCommand(
        _FILES, "Show every field of recordings and of the archive's mark file.", "describe_command"
    ),
    "dump": LazyCommand(_FILES, "Print the frames of a recording.", "dump_command"),
    "verify": LazyCommand(_FILES, "Check recordings against their frames.", "verify_command"),
    "count": LazyCommand(_UPKEEP, "Print the number of valid recordings.", "count_command"),
    "pid": LazyCommand(_UPKEEP, "Print the process id of the archive.", "pid_command"),
    "errors": LazyCommand(_UPKEEP, "Show the errors of the archive and of its driver.", "errors_command"),
    "capacity": LazyCommand(
        _UPKEEP, "Print the length of the catalog's file, or make it longer.", "capacity_command"
    ),
    "migrate": LazyCommand(
        _UPKEEP,
        "Rewrite a directory of version 0.x to 2.x in today's layout.",
        "migrate_command",
    ),
    "checksum": LazyCommand(_UPKEEP, "Write checksums into the catalog and the frames.", "checksum_command"),
    "mark-invalid": LazyCommand(
        _UPKEEP, "Hide a recording from the archive's clients.", "mark_invalid_command"
    ),
    "mark-valid": LazyCommand(_UPKEEP, "Undo mark-invalid.", "mark_valid_command"),
    "compact": LazyCommand(
        _UPKEEP, "Delete invalid and deleted recordings, with their files.", "compact_command"
    ),
    "delete-orphaned-segments": LazyCommand(
        _UPKEEP, "Delete segment files outside their recordings.", "delete_orphaned_segments_command"
    ),
    "users": LazyCommand(
        "headrace.cli.archive.users", "Add, list and remove users whom an archive accepts.", "users_group"
    ),
    "replay": LazyCommand(
        _SESSIONS, "Replay a recording through a running archive, and print it.", "replay_command"
    ),
    "record": LazyCommand(
        _SESSIONS, "Record a stream through a running archive, until Ctrl-C.", "record_command"
    ),
    "declare": LazyCommand(
        _STREAMS, "Record a stream under a name, whenever the archive runs.", "declare_command"
    ),
    "undeclare": LazyCommand(_STREAMS, "Record a named stream no longer.", "undeclare_command"),
    "groups": LazyCommand(
        _STREAMS, "List the groups that read a named stream, with their lag.", "groups_command"
    ),
    "streams": LazyCommand(_STREAMS, "List the named streams of a running archive.", "streams_command"),
    "stop": LazyCommand(_RECORDINGS, "Stop a recording of a running archive.", "stop_command"),
    "purge": LazyCommand(_RECORDINGS, "Delete a whole recording.", "purge_command"),
    "replicate": LazyCommand(
        _REPLICATION, "Copy a recording of another archive into a running archive.", "replicate_command"
    ),
    "truncate": LazyCommand(
        _SESSIONS,
        "Delete everything recorded after a position.",
        "truncate_command",
    ),
    "detach-segments": LazyCommand(
        _SEGMENTS, "Move the start of a recording to a later segment file.", "detach_command"
    ),
    "delete-detached-segments": LazyCommand(
        _SEGMENTS, "Delete the segment files before a recording's start.", "delete_detached_command"
    ),
    "purge-segments": LazyCommand(
        _SEGMENTS, "Delete the segment files of a recording before a position.", "purge_command"
    ),
    "attach-segments": LazyCommand(_SEGMENTS, "Attach segment files that were detached.", "attach_command"),
    "migrate-segments": LazyCommand(
        _SEGMENTS, "Make a recording the beginning or end of another one.", "migrate_command"
    ),
    "set-retention": LazyCommand(
        _RETENTION, "Set how long a recording keeps its segment files.", "set_command"
    ),
    "holds": LazyCommand(_RETENTION, "List the holds with which readers stop retention.", "holds_command"),
    "release-hold": LazyCommand(
        _RETENTION, "Release the hold of a reader that will not return.", "release_command"
    ),
}
_CHECK_INTERVAL_S = 0.2
# Without either of these settings the archive serves clients on its own driver only, instead of refusing to start.
_CONTROL_SETTINGS = {"aeron.archive.control.channel", "aeron.archive.control.channel.enabled"}


@click.group(cls=LazyGroup, subcommands=SUBCOMMANDS, invoke_without_command=True)
@archive_directory_setting_option
@options.directory_setting_option
@click.option(
    "--control-channel",
    "-c",
    help="Channel to which clients on other drivers send requests: aeron:udp?endpoint=host:port.",
)
@click.option("--with-driver", is_flag=True, help="Also run a media driver, in the same process.")
@property_option
@allow_unknown_option
@quiet_option
@click.pass_context
def command(
    context: click.Context,
    archive_directory: Path | None,
    directory: Path | None,
    control_channel: str | None,
    with_driver: bool,
    settings: tuple[tuple[str, str], ...],
    allow_unknown: bool,
    quiet: bool,
) -> None:
    """Run an archive until Ctrl-C or SIGTERM. Both stop it cleanly, with exit status 0.

    Without a control channel it serves only clients on its own driver. Settings come from defaults, then the
    environment (AERON_ARCHIVE_...), then -D, then the other options; a later one overrides an earlier one.

    \b
    Examples:
      headrace archive --with-driver -a /data/recordings
      headrace archive -c 'aeron:udp?endpoint=10.0.0.7:8010' -D aeron.archive.file.sync.level=1
      headrace archive list -a /data/recordings
    """
    if context.invoked_subcommand is not None:
        return
    from headrace import DriverConfig, MediaDriver
    from headrace.archive import ArchiveConfig, ArchiveServer, ArchivingMediaDriver

    known = ArchiveConfig.property_names() | (MediaDriver.property_names() if with_driver else set())
    properties = known_settings(settings, known, allow_unknown=allow_unknown)
    values: dict[str, Any] = {"archive_directory": archive_directory, "control_channel": control_channel}
    if control_channel is None and not is_control_given(properties):
        values["control_channel_enabled"] = False
    driver_properties = {
        name: text for name, text in properties.items() if not name.startswith("aeron.archive.")
    }
    archive_properties = {
        name: text for name, text in properties.items() if name.startswith("aeron.archive.")
    }
    log = logging.StreamHandler()
    log.setFormatter(ShownFormatter("archive: %(message)s"))
    logging.basicConfig(handlers=[log])
    if with_driver:
        check_threads(driver_properties)
    with until_stopped() as stop:
        with stop.while_starting():
            if with_driver:
                both = ArchivingMediaDriver(
                    DriverConfig(directory=directory),
                    driver_properties=driver_properties,
                    archive_properties=archive_properties,
                    **values,
                )
                running: ArchiveServer | ArchivingMediaDriver = both
                server = both.archive
            else:
                running = server = ArchiveServer(properties=properties, aeron_directory=directory, **values)
        with running:
            if not quiet:
                click.echo(
                    f"archive in {server.directory}, driver in {server.aeron_directory}; Ctrl-C ends it"
                )
            while server.failure is None and not stop.wait(_CHECK_INTERVAL_S):
                pass
        if server.failure is not None:
            raise server.failure
        if not quiet:
            click.echo("archive stopped")


def is_control_given(properties: dict[str, str]) -> bool:
    """Whether `-D` or the environment says where clients on other drivers send requests."""
    return any(
        name in properties or name.upper().replace(".", "_") in os.environ for name in _CONTROL_SETTINGS
    )
