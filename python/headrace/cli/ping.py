"""`headrace ping`: round trips."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headrace.cli import measure, options
from headrace.cli.connection import client_and_turn
from headrace.cli.histogram import histogram_json, histogram_of, histogram_table
from headrace.cli.output import OutputConsole, print_json


@click.command()
@options.directory_option
@click.option(
    "--channel", "-c", default=options.PING_CHANNEL, show_default=True, help="Channel on which to send pings."
)
@options.stream_option(options.PING_STREAM_ID)
@options.pong_options
@options.number_option("--messages", "-n", default=10_000, help="Number of round trips to measure.")
@options.number_option(
    "--warmup", "-w", default=1_000, least=0, help="Number of round trips before the measured ones."
)
@options.number_option("--length", "-L", default=32, least=8, help="Bytes in each message.")
@options.idle_option
@options.embedded_option
@options.json_option
def command(
    directory: Path,
    channel: str,
    stream_id: int,
    pong_channel: str,
    pong_stream: int,
    messages: int,
    warmup: int,
    length: int,
    idle: str,
    is_embedded: bool,
    as_json: bool,
) -> None:
    """Measure round trips to a `headrace pong`, one message in flight at a time, and show their percentiles.

    \b
    Examples:
      headrace ping                                                  # with `headrace pong` running
      headrace ping -c aeron:ipc --pong-channel aeron:ipc --idle spin
      headrace ping --embedded                # with `headrace pong --embedded`: no driver beside
      headrace ping --json | jq .p99_ns
    """
    with client_and_turn(directory, "ping", is_embedded=is_embedded, idle=idle) as (client, turn):
        if sys.stderr.isatty():
            click.echo(f"waiting for `headrace pong` on {channel} stream {stream_id}", err=True)
        durations_ns = measure.round_trips(
            client,
            turn,
            ping=(channel, stream_id),
            pong=(pong_channel, pong_stream),
            messages=messages,
            warmup=warmup,
            length=length,
        )
    histogram = histogram_of(durations_ns)
    if as_json:
        print_json(histogram_json(histogram))
    else:
        OutputConsole().print(
            histogram_table(histogram, f"round trips of {length} bytes, {channel} and {pong_channel}")
        )
