"""How the archive's commands find an archive: its directory, or a session with a running archive."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli import options
from headrace.cli.connection import connect
from headrace.cli.lifecycle import FAILED

if TYPE_CHECKING:
    from headrace.archive import Archive, ArchiveError, RecordingDescriptor

Command = TypeVar("Command", bound=Callable[..., Any])


def archive_directory_option(command: Command) -> Command:
    """`--archive-dir`: the directory whose recordings a command reads."""
    return _archive_directory_option(lambda: os.environ.get("AERON_ARCHIVE_DIR", "aeron-archive"))(command)


def archive_directory_setting_option(command: Command) -> Command:
    """`--archive-dir` of the archive itself, which also takes `-D aeron.archive.dir=`; None when it is not given."""
    return _archive_directory_option(None)(command)


def _archive_directory_option(default: Callable[[], str] | None) -> Callable[[Command], Command]:
    return click.option(
        "--archive-dir",
        "-a",
        "archive_directory",
        type=options.DirectoryType(),
        default=default,
        help="The archive's directory.  [default: $AERON_ARCHIVE_DIR, else aeron-archive]",
    )


dry_run_option = click.option(
    "--dry-run", "-n", is_flag=True, help="Print what would change, and change nothing."
)
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, *, is_confirmed: bool) -> None:
    """Ask before something is deleted or changed, unless the command line has said yes.

    Ctrl-C and a stdin without an answer are no.

    Raises:
        Exit: The answer is no.
    """
    try:
        if is_confirmed or click.confirm(question):
            return
    except click.Abort:
        click.echo(err=True)
    click.echo("error: not confirmed; nothing was changed", err=True)
    raise click.exceptions.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class ArchiveAddress:
    """Where a running archive is: its driver's directory, and the channels of requests and answers; and who asks it."""

    directory: Path
    control_channel: str
    response_channel: str | None
    credentials_file: Path | None


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how to connect to a running archive; the command gets them as `address`."""

    @functools.wraps(command)
    def addressed(
        *args: Any,
        directory: Path,
        control_channel: str,
        response_channel: str | None,
        credentials_file: Path | None,
        **kwargs: Any,
    ) -> Any:
        address = ArchiveAddress(directory, control_channel, response_channel, credentials_file)
        return command(*args, address=address, **kwargs)

    control = click.option(
        "--control-channel",
        default="aeron:ipc",
        show_default=True,
        help="Channel on which the archive takes requests: aeron:ipc when it is on the same driver.",
    )
    response = click.option(
        "--response-channel",
        default=None,
        help="Channel on which the archive answers.  [default: aeron:ipc; with a UDP control channel, a free port of "
        "localhost]",
    )
    credentials = credentials_file_option("for an archive that authenticates its clients.")
    return options.directory_option(control(response(credentials(addressed))))


def credentials_file_option(use: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--credentials-file`; `use` says for what."""
    return click.option(
        "--credentials-file",
        envvar="HEADRACE_CREDENTIALS_FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"File whose first line is name:secret, {use}  [default: $HEADRACE_CREDENTIALS_FILE]",
    )


def credentials_of(path: Path | None) -> bytes:
    """The first line of a file of credentials; none where there is no file.

    Raises:
        ConfigError: The file cannot be read, or has no line.
    """
    from headrace.security import FileCredentials

    return b"" if path is None else FileCredentials(path).encoded_credentials()


def known(archive: Archive, recording_id: int) -> RecordingDescriptor:
    """A recording of a running archive.

    Raises:
        ArchiveError: The archive does not have it.
    """
    from headrace.archive import ArchiveError, ErrorCode

    descriptor = archive.find_recording(recording_id)
    if descriptor is None:
        code = ErrorCode.UNKNOWN_RECORDING
        raise ArchiveError(f"unknown recording id: {recording_id} ({code.name})", code, code.name)
    return descriptor


def file_count(count: int) -> str:
    """How many files, in words."""
    return "1 file" if count == 1 else f"{count} files"


@contextmanager
def session(
    address: ArchiveAddress, name: str, on_error: Callable[[ArchiveError], object] | None = None
) -> Iterator[Archive]:
    """A session with a running archive; `on_error` gets the errors that come after the archive's answer.

    Raises:
        ArchiveError: What the block raised; if the archive does not have a recording, with where to find its id.
    """
    from headrace.archive import Archive, ArchiveError, AuthenticationError, ErrorCode

    response_channel = address.response_channel
    if response_channel is None:
        is_local = address.control_channel.startswith("aeron:ipc")
        response_channel = "aeron:ipc" if is_local else "aeron:udp?endpoint=localhost:0"
    credentials = credentials_of(address.credentials_file)
    with connect(address.directory, f"archive {name}") as client:
        try:
            archive = Archive.connect(
                client,
                control_channel=address.control_channel,
                response_channel=response_channel,
                client_name=f"headrace archive {name}",
                on_error=on_error,
                credentials=credentials,
            )
        except AuthenticationError as refusal:
            raise AuthenticationError(f"{refusal}; here a file that --credentials-file names") from refusal
        with archive:
            try:
                yield archive
            except ArchiveError as refusal:
                if refusal.code != ErrorCode.UNKNOWN_RECORDING:
                    raise
                advice = "`headrace archive list` prints those of a directory"
                raise ArchiveError(f"{refusal}; {advice}", refusal.code, refusal.code_name) from refusal
