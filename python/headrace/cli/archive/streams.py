"""Commands about named streams: what an archive records whenever it runs."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from headrace.cli import options
from headrace.cli.archive.access import ArchiveAddress, confirm, session, session_options, yes_option
from headrace.cli.archive.retention import retention_of
from headrace.cli.lifecycle import FAILED
from headrace.cli.output import OutputConsole, Shown, print_json
from headrace.tools.units import format_bytes

if TYPE_CHECKING:
    from headrace.archive import NamedStream, Retention

_KEYS = ("channel", "stream_id", "remote", "keys", "keep_for", "keep_bytes", "keep_ended_for")


@dataclass(frozen=True, slots=True)
class _Declaration:
    name: str
    channel: str
    stream_id: int
    remote: bool = False
    keep_for: str | None = None
    keep_bytes: str | None = None
    keys: bool = False
    keep_ended_for: str | None = None

    @property
    def retention(self) -> Retention | None:
        kept = (self.keep_for, self.keep_bytes, self.keep_ended_for)
        return None if not any(kept) else retention_of(*kept)


@click.command("declare")
@click.argument("name", required=False)
@click.option("--channel", "-c", help="Channel of the publishers.")
@click.option("--stream", "-s", "stream_id", type=int, help="Stream id of the publishers.")
@click.option("--remote", is_flag=True, help="The publishers are on another driver than the archive.")
@click.option("--keys", is_flag=True, help="Each message has an envelope with a key and a number.")
@click.option(
    "--keep-for", metavar="TIME", help="Keep what was written within this time: 10m, 12h, 7d or 4w."
)
@click.option(
    "--keep-bytes", metavar="SIZE", help="Keep at least so many bytes of each recording: 500m, 100g."
)
@click.option(
    "--file", "-f", "path", type=click.Path(dir_okay=False, path_type=Path), help="Declare all of a file."
)
@session_options
@yes_option
def declare_command(
    name: str | None,
    channel: str | None,
    stream_id: int | None,
    remote: bool,
    keys: bool,
    keep_for: str | None,
    keep_bytes: str | None,
    path: Path | None,
    address: ArchiveAddress,
    yes: bool,
) -> None:
    """Record a stream under a name from now on, and after each restart of the archive.

    Declaring a name again changes its channel, or how much of it is kept. With --keep-for, the archive permanently
    deletes segment files, and whole recordings, with nothing newer.

    A file has a table for each stream, with the keys channel, stream_id, remote, keys, keep_for, keep_bytes,
    keep_ended_for.

    \b
    Examples:
      headrace archive declare trades -c aeron:ipc -s 1001
      headrace archive declare quotes -c 'aeron:udp?endpoint=224.0.1.1:40456' -s 7 --remote --keep-for 7d
      headrace archive declare -f streams.toml
    """
    from headrace.archive import SourceLocation

    if (path is None) == (name is None):
        raise click.UsageError("give the name of a stream, or --file with several")
    if path is not None:
        declarations = _in_file(path)
    else:
        assert name is not None, "checked above"
        if channel is None or stream_id is None:
            raise click.UsageError("a stream needs --channel and --stream")
        declarations = [_Declaration(name, channel, stream_id, remote, keep_for, keep_bytes, keys)]
    bounded = [one for one in declarations if one.retention is not None]
    if bounded:
        kept = ", ".join(f"{one.name} ({one.retention})" for one in bounded)
        confirm(f"from now on, permanently delete what is no longer kept of {kept}?", is_confirmed=yes)
    with session(address, "declare") as archive:
        for one in declarations:
            location = SourceLocation.REMOTE if one.remote else SourceLocation.LOCAL
            archive.declare(one.name, one.channel, one.stream_id, location=location, retention=one.retention)
            click.echo(f"{one.name} is recorded from now on: stream {one.stream_id} of {one.channel}")


def _in_file(path: Path) -> list[_Declaration]:
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text())
    except OSError as refusal:
        raise click.UsageError(f"cannot read {path}: {refusal.strerror}") from None
    except ValueError as damage:
        raise click.UsageError(f"{path} is not TOML: {damage}") from None
    declarations = []
    for name, values in found.items():
        if not isinstance(values, dict) or not {"channel", "stream_id"} <= values.keys():
            raise click.UsageError(f"{path}: [{name}] needs channel and stream_id")
        unknown = values.keys() - set(_KEYS)
        if unknown:
            raise click.UsageError(
                f"{path}: [{name}] has {sorted(unknown)[0]!r}; it may have {', '.join(_KEYS)}"
            )
        declarations.append(_Declaration(name, **values))
    return declarations


@click.command("undeclare")
@click.argument("name")
@session_options
def undeclare_command(name: str, address: ArchiveAddress) -> None:
    """End the recording of a named stream. Its recordings stay."""
    with session(address, "undeclare") as archive:
        if not archive.undeclare(name):
            click.echo(
                f"error: no stream is declared as {name}; `headrace archive streams` lists them", err=True
            )
            raise click.exceptions.Exit(FAILED)
    click.echo(f"{name} is not recorded any more; its recordings stay")


@click.command("streams")
@session_options
@options.json_option
def streams_command(address: ArchiveAddress, as_json: bool) -> None:
    """List the named streams of a running archive, with their recordings."""
    with session(address, "streams") as archive:
        found = [(stream, archive.stream_recordings(stream.name)) for stream in archive.streams()]
    if as_json:
        for stream, recordings in found:
            print_json({**_values(stream), "recordings": [one.recording_id for one in recordings]})
        return
    if not found:
        click.echo("no streams are declared; `headrace archive declare` declares one")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("name", "channel", "stream", "kept", "recordings", "recorded now"):
        table.add_column(
            title, justify="right" if title in ("stream", "recordings", "recorded now") else "left"
        )
    for stream, recordings in found:
        active = sum(one.is_active for one in recordings)
        kept = "everything" if stream.retention is None else str(stream.retention)
        table.add_row(
            stream.name, stream.channel, str(stream.stream_id), kept, str(len(recordings)), str(active)
        )
    OutputConsole().print(Shown(table))


@click.command("groups")
@click.argument("name")
@session_options
@options.json_option
def groups_command(name: str, address: ArchiveAddress, as_json: bool) -> None:
    """List the groups that read a named stream: their members, and the bytes that they have not committed."""
    with session(address, "groups") as archive:
        found = archive.groups(name)
    if as_json:
        for one in found:
            print_json({"name": one.name, "members": list(one.members), "lag": one.lag})
        return
    if not found:
        click.echo(f"no group reads {name}")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("group", "lag", "members"):
        table.add_column(title, justify="right" if title == "lag" else "left")
    for one in found:
        table.add_row(one.name, format_bytes(one.lag), ", ".join(one.members) or "none now")
    OutputConsole().print(Shown(table))


def _values(stream: NamedStream) -> dict[str, Any]:
    return {
        "name": stream.name,
        "channel": stream.channel,
        "stream_id": stream.stream_id,
        "location": stream.location.name,
        "keys": stream.keys,
        "retention": None if stream.retention is None else str(stream.retention),
    }
