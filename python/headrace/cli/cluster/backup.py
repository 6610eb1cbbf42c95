"""`headrace cluster backup`: a backup of a cluster in a process of its own, and asking one for its next query."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from headrace.channel import ChannelUri
from headrace.cli import options
from headrace.cli.archive import is_control_given
from headrace.cli.archive.access import credentials_file_option
from headrace.cli.cluster.access import directory_argument
from headrace.cli.controls import ShownFormatter
from headrace.cli.driver import allow_unknown_option, property_option, quiet_option
from headrace.cli.lifecycle import until_stopped
from headrace.cli.properties import named_by_property, shared_settings
from headrace.clock import SYSTEM_CLOCK
from headrace.tools.units import format_time_ms

if TYPE_CHECKING:
    from headrace._settings.keywords import ArchiveSettings
    from headrace.archive import ArchivingMediaDriver

_BACKUP, _ARCHIVE = "backup", "archive"
_MEMBERS, _CHANNEL = "aeron.cluster.members", "aeron.cluster.consensus.channel"
_CHECK_INTERVAL_S = 0.5
# What a backup must be told.
_EXAMPLES = {
    "aeron.cluster.consensus.endpoints": "alpha:9003,beta:9103,gamma:9203",
    _CHANNEL: "aeron:udp?endpoint=delta:9003",
}


@click.command("backup")
@click.argument(
    "backup_directory",
    metavar="[DIRECTORY]",
    required=False,
    type=click.Path(file_okay=False, path_type=Path),
)
@click.option(
    "--members",
    help="The hosts of the cluster's members, such as alpha,beta,gamma, or a .toml file that lists them.",
)
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="An address of this machine at which members reach the backup; port 0 stands for any free port.",
)
@credentials_file_option("for a cluster, and archives of its members, that authenticate their clients.")
@options.directory_setting_option
@property_option
@allow_unknown_option
@quiet_option
def backup_command(
    backup_directory: Path | None,
    members: str | None,
    address: str | None,
    credentials_file: Path | None,
    directory: Path | None,
    settings: tuple[tuple[str, str], ...],
    allow_unknown: bool,
    quiet: bool,
) -> None:
    """Copy the snapshots and the log of a running cluster until Ctrl-C or SIGTERM. Both stop it with exit status 0.

    With a DIRECTORY the process also runs a driver and an archive, and keeps all files there: `headrace cluster node
    DIRECTORY` starts a member from the copy, once the backup has stopped. Without one it uses the driver of --dir, and
    the archive that runs on it.

    Settings come from defaults, then the environment (AERON_CLUSTER_...), then -D, then the other options; a later one
    overrides an earlier one. When the backup cannot go on, the process ends with exit status 1, and its mark file says
    why.

    \b
    Examples:
      headrace cluster backup /data/prices-backup --members alpha,beta,gamma --address delta:9003
      headrace cluster backup --members cluster.toml --address delta:9003 -D aeron.cluster.dir=/data/prices-backup
    """
    from headrace.archive import ArchiveConfig
    from headrace.cluster import ClusterBackup, ClusterBackupConfig
    from headrace.security import FileCredentials

    log = logging.StreamHandler()
    log.setFormatter(ShownFormatter("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[log])
    properties = dict(settings)
    if members is not None:
        properties[_MEMBERS] = members
    if address is not None:
        channel = ChannelUri(properties.get(_CHANNEL, "aeron:udp"))
        properties[_CHANNEL] = channel.with_parameters(endpoint=address)
    known = {_BACKUP: ClusterBackupConfig.property_names()}
    if backup_directory is not None:
        if directory is not None:
            raise click.UsageError("a backup in a DIRECTORY has its own driver and archive: leave out --dir")
        known[_ARCHIVE] = ArchiveConfig.property_names()
    shared = shared_settings(properties, known, allow_unknown=allow_unknown)
    place = None if backup_directory is None else backup_directory / "cluster"
    values: dict[str, Any] = {"properties": shared[_BACKUP], "cluster_directory": place}
    if credentials_file is not None:
        values["credentials"] = values["archive_credentials"] = FileCredentials(credentials_file)
    with named_by_property(ClusterBackupConfig, _EXAMPLES):
        ClusterBackupConfig.of(**values)
    with until_stopped() as stop, contextlib.ExitStack() as held:
        with stop.while_starting():
            if backup_directory is not None:
                archiving = held.enter_context(_archiving(backup_directory / "archive", shared[_ARCHIVE]))
                values["driver"] = archiving.driver
            backup = held.enter_context(ClusterBackup(aeron_directory=directory, **values))
        if not quiet:
            where = f"backup in {backup.directory}, driver in {backup._client.directory}"
            click.echo(f"{where}; Ctrl-C ends it")
        while backup.failure is None and not stop.wait(_CHECK_INTERVAL_S):
            pass
        if backup.failure is not None:
            raise backup.failure
    if not quiet:
        click.echo("backup stopped")


def _archiving(directory: Path, properties: dict[str, str]) -> ArchivingMediaDriver:
    """A driver of this process alone, and an archive on it."""
    from headrace.archive import ArchiveConfig, ArchivingMediaDriver

    with named_by_property(ArchiveConfig):
        given = cast("ArchiveSettings", ArchiveConfig.from_properties(properties))
        settings: ArchiveSettings = {"archive_directory": directory}
        if not is_control_given(properties):
            settings["control_channel_enabled"] = False
        return ArchivingMediaDriver.embedded(**settings | given)


@click.command("backup-query")
@directory_argument
@click.option(
    "--delay",
    "delay_s",
    metavar="SECONDS",
    type=options.FiniteRange(min=0),
    help="Have it ask after this time instead; 0: now.",
)
def backup_query_command(directory: Path, delay_s: float | None) -> None:
    """Show when the backup of the DIRECTORY asks the cluster next for new snapshots and terms, or set that."""
    from headrace.cluster.node.running_backup import RunningBackup

    backup = RunningBackup(directory)
    now_ms = SYSTEM_CLOCK.epoch_ms()
    if delay_s is not None:
        backup.query_at(now_ms + round(delay_s * 1000))
    click.echo(f"{format_time_ms(now_ms)} next: {format_time_ms(backup.next_query_ms)}")
