"""Options that mean the same in every command that has them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from headrace._settings.config import default_directory

# What the samples of Aeron use, so that either side of a pair may be theirs.
SAMPLE_CHANNEL = "aeron:udp?endpoint=localhost:20121"
SAMPLE_STREAM_ID = 1001
PING_CHANNEL = "aeron:udp?endpoint=localhost:20123"
PONG_CHANNEL = "aeron:udp?endpoint=localhost:20124"
PING_STREAM_ID = 1002
PONG_STREAM_ID = 1003

Command = TypeVar("Command", bound=Callable[..., Any])


class DirectoryType(click.ParamType[Path]):
    """A driver's directory; absent means the default one."""

    name = "directory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path, which need not exist yet."""
        return Path(value)


class FiniteRange(click.FloatRange):
    """A number in a range. ``nan`` is in none, and ``inf`` is no time that passes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class RegexType(click.ParamType[re.Pattern[str]]):
    """A regular expression."""

    name = "regex"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[str]:
        """The compiled expression."""
        try:
            return re.compile(value)
        except re.error as wrong:
            self.fail(f"{value!r} is not a regular expression: {wrong}", param, ctx)


def directory_option(command: Command) -> Command:
    """`--dir`: which driver."""
    return _directory_option(default_directory)(command)


def directory_setting_option(command: Command) -> Command:
    """`--dir` of a command that also takes `-D aeron.dir=`: absent is None, so that a default overrides nothing."""
    return _directory_option(None)(command)


def _directory_option(default: Callable[[], str] | None) -> Callable[[Command], Command]:
    return click.option(
        "--dir",
        "-d",
        "directory",
        type=DirectoryType(),
        default=default,
        help="The driver's directory.  [default: $AERON_DIR, else /dev/shm/aeron-USER]",
    )


def channel_option(default: str = SAMPLE_CHANNEL) -> Callable[[Command], Command]:
    """`--channel`: where the stream goes."""
    text = (
        "Where the stream goes: aeron:ipc within one machine, aeron:udp?endpoint=host:port between machines."
    )
    return click.option("--channel", "-c", default=default, show_default=True, help=text)


def stream_option(default: int = SAMPLE_STREAM_ID) -> Callable[[Command], Command]:
    """`--stream`: which stream on the channel."""
    return click.option(
        "--stream",
        "-s",
        "stream_id",
        type=int,
        default=default,
        show_default=True,
        help="Stream id on the channel.",
    )


def json_option(command: Command) -> Command:
    """`--json`: for programs."""
    text = "Print JSON, one object a line, for programs."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def idle_option(command: Command) -> Command:
    """`--idle`: what to do while nothing arrives."""
    text = (
        "What to do while nothing arrives: spin is fastest and keeps a core busy, yield lets other processes run, "
        "backoff sleeps after a short time."
    )
    choices = click.Choice(["spin", "yield", "backoff"])
    return click.option("--idle", type=choices, default="yield", show_default=True, help=text)(command)


def embedded_option(command: Command) -> Command:
    """`--embedded`: a driver on the command's own thread."""
    text = (
        "Run a driver on this command's own thread, which spins: the lowest latency over UDP with few cores."
    )
    return click.option("--embedded", "is_embedded", is_flag=True, help=text)(command)


def pong_options(command: Command) -> Command:
    """`--pong-channel` and `--pong-stream`: where pongs go."""
    channel = click.option(
        "--pong-channel", default=PONG_CHANNEL, show_default=True, help="Channel of the answers."
    )
    stream = click.option(
        "--pong-stream", type=int, default=PONG_STREAM_ID, show_default=True, help="Stream id of the answers."
    )
    return channel(stream(command))


def number_option(
    name: str, short: str, *, default: int, help: str, least: int = 1
) -> Callable[[Command], Command]:
    """A whole number of at least `least`."""
    kind = click.IntRange(min=least)
    return click.option(name, short, type=kind, default=default, show_default=True, help=help)


def timeout_option(default: float, help: str, *, least: float = 0) -> Callable[[Command], Command]:
    """`--timeout`: how long to wait."""
    kind = FiniteRange(min=least)
    return click.option(
        "--timeout",
        "timeout_s",
        type=kind,
        default=default,
        show_default=True,
        metavar="SECONDS",
        help=help,
    )


def message_options(command: Command) -> Command:
    """`--count` and `--format`: how many messages to print, and how."""
    count = click.option("--count", "-n", type=click.IntRange(min=1), help="End after this many messages.")
    text = "text, hex: one line for each message; raw: payloads without separators; none: count only."
    choices = click.Choice(["text", "hex", "raw", "none"])
    form = click.option(
        "--format", "-f", "format_", type=choices, default="text", show_default=True, help=text
    )
    return count(form(command))


def watch_options(command: Command) -> Command:
    """`--interval` and `--once`: how often a live table is drawn."""
    once = click.option(
        "--once",
        is_flag=True,
        help="Print once and end. Implied when stdout is not a terminal, except with --json.",
    )
    interval = click.option(
        "--interval",
        "-i",
        "interval_s",
        type=FiniteRange(min=0.05),
        default=1.0,
        show_default=True,
        help="Seconds between refreshes.",
    )
    return interval(once(command))


def exit_code_option(command: Command) -> Command:
    """`--exit-code`: for scripts that only ask whether the command has anything to show."""
    return click.option(
        "--exit-code", is_flag=True, help="End with exit status 4 if at least one entry is found."
    )(command)
