"""`headrace errors`: what went wrong in a driver."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from headrace.cli import options
from headrace.cli.lifecycle import FOUND
from headrace.cli.output import contains, watch
from headrace.clock import SYSTEM_CLOCK
from headrace.cnc.error_log import ErrorEntry, read_error_log
from headrace.tools.snapshot import DriverWatcher
from headrace.tools.views.errors import errors_json, errors_table
from headrace.tools.views.header import header_line, title_line


@click.command()
@options.directory_option
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read this file instead of the driver's.",
)
@click.option(
    "--offset",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Byte at which the error log in --file begins.",
)
@options.watch_options
@options.json_option
@options.exit_code_option
def command(
    directory: Path,
    file: Path | None,
    offset: int,
    interval_s: float,
    once: bool,
    as_json: bool,
    exit_code: bool,
) -> None:
    """Show the errors that a driver recorded: each distinct error, how often it occurred, and since when.

    The errors of a driver that has stopped or died can still be read. --file reads any file that holds an error log,
    such as a mark file.

    \b
    Examples:
      headrace errors --once
      headrace errors --once --exit-code > /dev/null || echo "look at the errors"
      headrace errors --file archive-mark.dat --offset 8192 --once
    """
    shown: list[ErrorEntry] = []

    def show(source: Text, entries: tuple[ErrorEntry, ...]) -> tuple[Text, tuple[ErrorEntry, ...]]:
        shown[:] = entries
        return source, entries

    def run(watcher: DriverWatcher | None) -> None:
        def take() -> tuple[Text, tuple[ErrorEntry, ...]]:
            if watcher is not None:
                snapshot = watcher.snapshot()
                return show(header_line(snapshot, "errors"), snapshot.errors)
            assert file is not None
            log = file.read_bytes()[offset:]
            return show(title_line("errors", SYSTEM_CLOCK.epoch_ms(), file), tuple(read_error_log(log)))

        watch(
            take,
            table=lambda taken, _, search: errors_table(
                taken[0], [entry for entry in taken[1] if contains(search, entry.text)]
            ),
            to_json=lambda taken: errors_json(taken[1]),
            as_json=as_json,
            once=once,
            interval_s=interval_s,
        )

    if file is not None:
        run(None)
    else:
        with DriverWatcher(directory, timeout_s=1.0) as watcher:
            run(watcher)
    if exit_code and shown:
        raise click.exceptions.Exit(FOUND)
