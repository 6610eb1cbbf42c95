"""`headrace cluster check-determinism`: whether a service does the same again for what a member's log has."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

import click

from headrace.cli.cluster.access import archive_of, beside_archive_option, directory_argument
from headrace.cli.cluster.node import service_maker
from headrace.cli.lifecycle import FAILED

_LOG_NAMES = ("recording.log", "node-state.dat")


@click.command("check-determinism")
@directory_argument
@click.argument("service", metavar="MODULE:CLASS")
@beside_archive_option
@click.option(
    "--from-snapshot", is_flag=True, help="Begin with the latest snapshot, and not with the whole log."
)
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=0), default=600.0, show_default=True)
def check_determinism_command(
    directory: Path, service: str, archive_directory: Path | None, from_snapshot: bool, timeout_s: float
) -> None:
    """Replay the log of a member that does not run into two instances of a service, and compare what they do.

    CLASS is the service's, or a function that gives a service, such as an ObjectService around an object. Nothing in
    the DIRECTORY changes: the log is copied to a temporary directory first, which needs as much room. Exit status 1
    says that the instances parted, with the first position of the log where they did, or that a handler raised or asked
    for the time, for random numbers or for threads.

    \b
    Examples:
      headrace cluster check-determinism /data/node prices:OrderBook
      headrace cluster check-determinism /data/node prices:OrderBook --from-snapshot
    """
    from headrace.cluster import ClusterNode, DeterminismCheck, DeterminismError
    from headrace.cluster.directory import ClusterDirectory

    make = service_maker(service)
    ClusterDirectory(directory).check_no_member_runs()
    with ClusterDirectory(directory).recording_log():
        archive = archive_of(directory, archive_directory)
    errors: list[str] = []
    with tempfile.TemporaryDirectory(prefix="headrace-determinism-") as made:
        copy = Path(made)
        (copy / "cluster").mkdir()
        for name in _LOG_NAMES:
            if (directory / name).exists():
                shutil.copyfile(directory / name, copy / "cluster" / name)
        shutil.copytree(archive, copy / "archive", ignore=shutil.ignore_patterns("archive-mark*", "*.events"))
        if not from_snapshot:
            with ClusterDirectory(copy / "cluster").changed_recording_log() as log:
                while log.invalidate_latest_snapshot():
                    pass
        check = DeterminismCheck(make)
        with (
            contextlib.suppress(DeterminismError),  # among the errors
            ClusterNode(check, directory=copy, on_error=errors.append) as node,
        ):
            node.wait_until_leader(timeout_s)
            position = node.module.commit_position
    for error in dict.fromkeys(errors):
        click.echo(error)
    if check.difference is not None or errors:
        raise SystemExit(FAILED)
    click.echo(f"{service} does the same again, up to log position {position}")
