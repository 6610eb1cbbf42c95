"""`headrace subscribe`: what arrives on a stream."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._base.control_characters import shown
from headrace.cli import options
from headrace.cli.connection import connect, unless_raised
from headrace.cli.lifecycle import FAILED, INTERRUPTED, until_stopped
from headrace.cli.output import print_json
from headrace.cli.progress import RateLine

if TYPE_CHECKING:
    from headrace import Header, Message

Write = Callable[[bytes, "Header | Message"], None]
_FRAGMENTS_A_POLL = 256


@click.command()
@options.directory_option
@options.channel_option()
@options.stream_option()
@options.message_options
@click.option(
    "--timeout",
    "timeout_s",
    type=options.FiniteRange(min=0),
    metavar="SECONDS",
    help="End with exit status 1 if no message arrives for this long.  [default: wait without limit]",
)
@options.json_option
def command(
    directory: Path,
    channel: str,
    stream_id: int,
    count: int | None,
    format_: str,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    """Print the messages of a stream until Ctrl-C (exit status 0), or until --count messages have arrived.

    With --json each message is one object: stream_id, session_id, position, length, and text, or base64 where the
    payload is not UTF-8.

    \b
    Examples:
      headrace subscribe
      headrace subscribe -c aeron:ipc -s 1001 --count 5 --json
      headrace subscribe -f raw > copy.bin
      headrace subscribe -f none            # only the rate
    """
    import headrace

    line = RateLine("received", is_shown=format_ == "none" and not as_json)
    write = write_json if as_json else WRITERS[format_]

    def handler(payload: bytes, header: Header) -> None:
        # The limit below keeps `poll` from returning more fragments than --count.
        write(payload, header)
        line.add(1, len(payload))

    with (
        until_stopped() as stop,
        connect(directory, "subscribe", unless_raised) as client,
        client.add_subscription(channel, stream_id) as subscription,
        line,
    ):
        idle = headrace.BlockingIdleStrategy(subscription)
        last_arrival = time.monotonic()
        while not stop.is_set and (count is None or line.count < count):
            limit = _FRAGMENTS_A_POLL if count is None else min(_FRAGMENTS_A_POLL, count - line.count)
            fragments = subscription.poll(handler, limit)
            idle.idle(fragments)
            if fragments:
                if line.count == fragments:
                    line.restart_clock()
                last_arrival = time.monotonic()
                sys.stdout.flush()
            elif timeout_s is not None and time.monotonic() - last_arrival > timeout_s:
                click.echo(
                    f"error: nothing arrived for {timeout_s:g} s on {channel} stream {stream_id}", err=True
                )
                raise click.exceptions.Exit(FAILED)
            line.refresh()
    if format_ == "none" and not as_json:
        click.echo(line.summary())
    if count is not None and line.count < count:
        raise click.exceptions.Exit(INTERRUPTED)


def _write_text(payload: bytes, header: Header | Message) -> None:
    text = payload.decode("utf-8", errors="replace")
    # A pipe gets what was sent; a terminal would obey it.
    sys.stdout.write((shown(text) if sys.stdout.isatty() else text) + "\n")


def _write_hex(payload: bytes, header: Header | Message) -> None:
    sys.stdout.write(payload.hex() + "\n")


def _write_raw(payload: bytes, header: Header | Message) -> None:
    sys.stdout.buffer.write(payload)


def _write_nothing(payload: bytes, header: Header | Message) -> None:
    pass


def write_json(payload: bytes, header: Header | Message) -> None:
    """A message as an object."""
    message: dict[str, object] = {
        "stream_id": header.stream_id,
        "session_id": header.session_id,
        "position": header.position,
        "length": len(payload),
    }
    try:
        message["text"] = payload.decode("utf-8")
    except UnicodeDecodeError:
        message["base64"] = base64.b64encode(payload).decode("ascii")
    print_json(message)


WRITERS: dict[str, Write] = {
    "text": _write_text,
    "hex": _write_hex,
    "raw": _write_raw,
    "none": _write_nothing,
}
