"""What the commands on a member's directory have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from headrace.cli.output import Shown, print_whole

if TYPE_CHECKING:
    from headrace.cluster.directory import ClusterDirectory

directory_argument = click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
beside_archive_option = click.option(
    "--archive-dir",
    "-a",
    "archive_directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The archive's directory.  [default: archive, beside the cluster's]",
)


def member_files(directory: Path) -> ClusterDirectory:
    """The files of a member."""
    from headrace.cluster.directory import ClusterDirectory

    return ClusterDirectory(directory)


def print_fields(values: dict[str, object]) -> None:
    """Names and values, one a line."""
    table = Table(box=None, show_header=False)
    for name, value in values.items():
        table.add_row(name, str(value))
    print_whole(Shown(table))
