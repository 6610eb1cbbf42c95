"""`headrace pong`: answers every message."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import options
from headrace.cli.connection import client_and_turn
from headrace.cli.lifecycle import until_stopped

if TYPE_CHECKING:
    from headrace import Header

# How long an answer waits for a reader.
_NO_READER_S = 1.0


@click.command()
@options.directory_option
@click.option(
    "--channel", "-c", default=options.PING_CHANNEL, show_default=True, help="Channel of the pings."
)
@options.stream_option(options.PING_STREAM_ID)
@options.pong_options
@options.idle_option
@options.embedded_option
def command(
    directory: Path,
    channel: str,
    stream_id: int,
    pong_channel: str,
    pong_stream: int,
    idle: str,
    is_embedded: bool,
) -> None:
    """Send every message of the ping stream back on the pong stream, until Ctrl-C.

    The default channels and streams are those of Aeron's samples, so Aeron's ping or pong can be the other side.

    \b
    Examples:
      headrace pong
      headrace pong -c aeron:ipc --pong-channel aeron:ipc --idle spin
      headrace pong --embedded                    # needs no driver; for `headrace ping --embedded`
    """
    with (
        until_stopped() as stop,
        client_and_turn(directory, "pong", is_embedded=is_embedded, idle=idle) as (client, turn),
        client.add_subscription(channel, stream_id) as pings,
        client.add_publication(pong_channel, pong_stream) as pongs,
    ):
        offer = pongs.offer

        def answer(payload: bytes, header: Header) -> None:
            if offer(payload) > 0:
                return
            # Who asks may hear of this stream before this side hears of the reader; one that has left never does.
            given_up_at = time.monotonic() + _NO_READER_S
            while offer(payload) <= 0 and not stop.is_set:
                if not pongs.is_connected and time.monotonic() > given_up_at:
                    return
                turn(0)

        click.echo(
            f"answering {channel} stream {stream_id} on {pong_channel} stream {pong_stream}; Ctrl-C ends it"
        )
        while not stop.is_set:
            turn(pings.poll(answer, 16))
