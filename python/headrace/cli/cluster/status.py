"""Commands that show the status of members, whether they run or not."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace._base.control_characters import shown
from headrace.cli import options
from headrace.cli.cluster.access import MemberDirectoryType, directory_argument, member_files, print_fields
from headrace.cli.lifecycle import FOUND
from headrace.cli.output import OutputConsole, Shown, contains, print_json, watch
from headrace.clock import SYSTEM_CLOCK
from headrace.tools.units import format_count, format_time_ms
from headrace.tools.views.header import title_line
from headrace.tools.views.responsive_view import ResponsiveView

if TYPE_CHECKING:
    from headrace.cluster.files.directory import ClusterDirectory
    from headrace.cluster.files.mark_file import MarkFields
    from headrace.cluster.node.running_member import MemberStatus

_HEADS = ("term", "commit position", "sessions", "snapshots", "elections", "errors")
_SHORT_HEADS = ("term", "commit", "sess", "snap", "elec", "err")
_WIDE = 110


@click.command("describe")
@directory_argument
@options.json_option
def describe_command(directory: Path, as_json: bool) -> None:
    """Show the fields of the mark files of a member and of its services in the DIRECTORY, and its last vote."""
    files = member_files(directory)
    with _told_without_member():
        _describe(files, as_json)


def _describe(files: ClusterDirectory, as_json: bool) -> None:
    mark, vote = files.mark(), files.candidate_term()
    values = _fields(mark)
    if vote is not None:
        values |= {f"candidate_term.{name}": value for name, value in dataclasses.asdict(vote).items()}
    for one, shown_values in [
        (mark, values),
        *((each, _fields(each)) for each in files.service_marks().values()),
    ]:
        if as_json:
            print_json(shown_values)
            continue
        click.echo(
            f"Type: {one.component} {_time(SYSTEM_CLOCK.epoch_ms())} (start: {_time(one.start_timestamp)}, "
            f"activity: {_time(one.activity_timestamp)})"
        )
        print_fields(shown_values)


@contextlib.contextmanager
def _told_without_member() -> Iterator[None]:
    """Say that no member has run on the directory, which is no failure here, as it is none in Aeron's tool."""
    from headrace.cluster.files.directory import NoMarkFileError

    try:
        yield
    except NoMarkFileError as reason:
        click.echo(f"error: {shown(str(reason))}", err=True)


def _fields(mark: MarkFields) -> dict[str, object]:
    return dataclasses.asdict(mark) | {"component": mark.component}


def _time(time_ms: int) -> str:
    return format_time_ms(time_ms) if time_ms > 0 else "none"


@click.command("pid")
@directory_argument
def pid_command(directory: Path) -> None:
    """Print the id of the process that runs the member, or ran it last."""
    click.echo(member_files(directory).mark().pid)


@click.command("errors")
@directory_argument
@options.json_option
@options.exit_code_option
def errors_command(directory: Path, as_json: bool, exit_code: bool) -> None:
    """Show the errors that a member recorded, then those of its driver, then those of its services.

    They stay readable when all of these have stopped or died, until the next ones start. An entry that begins with WARN
    is no failure.
    """
    from headrace.cnc.error_log import read_error_log
    from headrace.tools.views.errors import errors_json, errors_table

    files = member_files(directory)
    logs: dict[str, tuple[Any, ...]] = {}
    with _told_without_member():
        (member, noted), *services = files.errors().items()
        logs = {member: tuple(read_error_log(noted))} | _driver_errors(files.mark().aeron_directory)
        logs |= {name: tuple(read_error_log(data)) for name, data in services}
    console = OutputConsole()
    for source, entries in logs.items():
        if as_json:
            print_json({"source": source} | errors_json(entries))
        else:
            console.print(Shown(errors_table(Text(source, style="bold"), entries)))
    if exit_code and any(logs.values()):
        raise click.exceptions.Exit(FOUND)


def _driver_errors(directory: str) -> dict[str, tuple[Any, ...]]:
    """The error log of the member's driver, unless its directory is gone."""
    from headrace._base.exceptions import HeadraceError
    from headrace.cnc.cnc_file import CncFile
    from headrace.cnc.error_log import read_error_log
    from headrace.cnc.faults import DriverFileMissingError

    try:
        with CncFile.open(directory) as cnc:
            return {str(cnc.path): tuple(read_error_log(cnc.error_log))}
    except DriverFileMissingError:
        click.echo(f"the driver in {shown(directory)} has ended and left no errors", err=True)
        return {}
    except (HeadraceError, OSError) as reason:
        click.echo(f"the driver's errors cannot be read: {shown(str(reason))}", err=True)
        return {}


@click.command("watch")
@click.argument(
    "directories",
    metavar="DIRECTORY...",
    nargs=-1,
    required=True,
    type=MemberDirectoryType(),
)
@options.watch_options
@options.json_option
def watch_command(directories: tuple[Path, ...], interval_s: float, once: bool, as_json: bool) -> None:
    """Show the members of each DIRECTORY, live: who leads, in which state and term, and how far the log is agreed upon.

    \b
    Examples:
      headrace cluster watch /data/aeron-cluster
      headrace cluster watch --once --json /data/cluster-0 /data/cluster-1 /data/cluster-2
    """
    from headrace.cluster.node.running_member import RunningMember

    watch(
        lambda: _Members(SYSTEM_CLOCK.epoch_ms(), [RunningMember(one).status() for one in directories]),
        table=lambda taken, _, search: _members_table(taken, search),
        to_json=dataclasses.asdict,
        as_json=as_json,
        once=once,
        interval_s=interval_s,
    )


@dataclasses.dataclass(frozen=True)
class _Members:
    """The members as they were at `time_ms`."""

    time_ms: int
    members: list[MemberStatus]


def _members_table(taken: _Members, search: str) -> RenderableType:
    found = [row for row in taken.members if contains(search, *dataclasses.astuple(row))]
    if len(taken.members) == 1:
        where = taken.members[0].directory
        table = ResponsiveView(_table(found, _HEADS), _table(found, _SHORT_HEADS), width=_WIDE)
    else:
        where = f"{len(taken.members)} directories"
        # A narrow table has no room for a directory in one line.
        below = Text("\n".join(f"{_name(row)}  {row.directory}" for row in found), style="dim")
        table = ResponsiveView(
            _table(found, _HEADS, has_directory=True),
            Renderables(_table(found, _SHORT_HEADS), below),
            width=_WIDE,
        )
    return Renderables(title_line("members", taken.time_ms, where), table)


def _table(rows: Sequence[MemberStatus], heads: Sequence[str], *, has_directory: bool = False) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("member", "role", "state"):
        table.add_column(name, no_wrap=True)
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    if has_directory:
        table.add_column("directory", overflow="fold")
    for row in rows:
        table.add_row(
            _name(row),
            Text(row.role, style="bold green" if row.role == "leader" else ""),
            # Until its election is over a member does nothing else.
            row.state if row.election in ("closed", "") else row.election,
            *map(
                _number,
                (row.term, row.commit_position, row.sessions, row.snapshots, row.elections, row.errors),
            ),
            *([Text(row.directory)] if has_directory else []),
        )
    return table


def _name(row: MemberStatus) -> str:
    return f"{row.cluster_id}/{row.member_id}"


def _number(value: int | None) -> str:
    return "" if value is None else format_count(value)
