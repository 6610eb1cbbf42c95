"""What the commands on a member's directory have in common."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from headrace.cli.output import Shown, print_whole

if TYPE_CHECKING:
    from headrace.cluster.files.directory import ClusterDirectory

# Of these a member's directory has at least one, once a member has run there.
_MEMBER_FILES = ("cluster-mark.dat", "cluster-mark.lnk", "recording.log")
# Where a `ClusterNode` keeps the files of its member.
_IN_NODE = "cluster"
# The archive's files beside them: of a `ClusterNode`, and of a member whose settings name no directories.
_ARCHIVES = ("archive", "aeron-archive")


class MemberDirectoryType(click.Path):
    """The directory of a member's files, given as such or as the directory of its node."""

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The one with the member's files; the one that was given if there are none."""
        given = Path(os.fsdecode(super().convert(value, param, ctx)))
        return next((one for one in (given, given / _IN_NODE) if _has_member(one)), given)


def _has_member(directory: Path) -> bool:
    return any((directory / name).exists() for name in _MEMBER_FILES)


directory_argument = click.argument("directory", type=MemberDirectoryType())
beside_archive_option = click.option(
    "--archive-dir",
    "-a",
    "archive_directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The archive's directory.  [default: $AERON_ARCHIVE_DIR, else archive or aeron-archive beside the member's "
    "directory]",
)


def archive_beside(directory: Path, given: Path | None) -> Path | None:
    """The directory of a member's archive: what was given, else that of the environment, else the one beside it."""
    named = given or os.environ.get("AERON_ARCHIVE_DIR")
    if named:
        return Path(named)
    parent = directory.absolute().parent
    return next((parent / name for name in _ARCHIVES if (parent / name).is_dir()), None)


def archive_of(directory: Path, given: Path | None) -> Path:
    """As :func:`archive_beside`, for what cannot do without.

    Raises:
        ClusterFileError: There is none.
    """
    from headrace.cluster.errors import ClusterFileError

    found = archive_beside(directory, given)
    if found is None:
        parent = directory.absolute().parent
        raise ClusterFileError(
            f"{parent} has no directory {' or '.join(_ARCHIVES)}: name the archive's directory with --archive-dir"
        )
    return found


def member_files(directory: Path) -> ClusterDirectory:
    """The files of a member."""
    from headrace.cluster.files.directory import ClusterDirectory

    return ClusterDirectory(directory)


def print_fields(values: dict[str, object]) -> None:
    """Names and values, one a line."""
    table = Table(box=None, show_header=False)
    for name, value in values.items():
        table.add_row(name, str(value))
    print_whole(Shown(table))
