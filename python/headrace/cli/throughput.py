"""`headrace throughput`: messages a second from one process to another."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from headrace.cli import measure, options
from headrace.cli.lifecycle import INTERRUPTED, until_stopped
from headrace.cli.measure import Sample
from headrace.cli.output import OutputConsole, Shown, print_json
from headrace.tools.units import format_bytes, format_rate

_INTERVAL_S = 1.0


@click.command()
@click.option(
    "--dir",
    "-d",
    "directory",
    type=options.DirectoryType(),
    help="Use the driver of this directory.  [default: start a driver]",
)
@options.channel_option("aeron:ipc")
@options.stream_option()
@options.number_option("--length", "-L", default=32, help="Bytes in each message.")
@options.number_option("--seconds", "-t", default=5, help="How long to measure.")
@click.option(
    "--batch", "is_batched", is_flag=True, help="Send and receive many messages in one call, as numpy arrays."
)
@options.json_option
def command(
    directory: Path | None,
    channel: str,
    stream_id: int,
    length: int,
    seconds: int,
    is_batched: bool,
    as_json: bool,
) -> None:
    """Measure messages a second from a publisher process to this one. Starts a driver unless --dir names one.

    --json prints one object a second, then one with the median.

    \b
    Examples:
      headrace throughput
      headrace throughput --batch
      headrace throughput -c 'aeron:udp?endpoint=localhost:20121' --length 1024 --seconds 10
    """
    samples: list[Sample] = []
    with (
        until_stopped() as stop,
        measure.driver_in(directory) as driver,
        Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live,
    ):
        for sample in itertools.islice(_samples(driver, channel, stream_id, length, is_batched), seconds):
            samples.append(sample)
            if as_json:
                print_json(_sample_json(sample))
            else:
                live.update(Shown(_table(samples, channel, length)), refresh=True)
            if stop.is_set:
                break
    if as_json:
        print_json({"median_messages_a_second": _median(samples), "length": length, "channel": channel})
    else:
        OutputConsole().print(Shown(_table(samples, channel, length)))
    if len(samples) < seconds:
        raise click.exceptions.Exit(INTERRUPTED)


def _samples(driver: Path, channel: str, stream_id: int, length: int, is_batched: bool) -> Iterator[Sample]:
    return measure.throughput(
        driver, channel, stream_id, length=length, is_batched=is_batched, interval_s=_INTERVAL_S
    )


def _table(samples: list[Sample], channel: str, length: int) -> Group:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("second", "messages", "payload"):
        table.add_column(name, justify="right")
    for number, sample in enumerate(samples, 1):
        payload = f"{format_bytes(sample.byte_count / sample.seconds)}/s"
        table.add_row(str(number), format_rate(sample.messages_a_second), payload)
    median = _median(samples)
    table.add_row("median", format_rate(median), f"{format_bytes(median * length)}/s", style="bold green")
    return Group(f"{length}-byte messages over {channel}, process to process", table)


def _sample_json(sample: Sample) -> dict[str, object]:
    return {"messages": sample.messages, "bytes": sample.byte_count, "seconds": sample.seconds}


def _median(samples: list[Sample]) -> float:
    rates = sorted(sample.messages_a_second for sample in samples)
    return rates[len(rates) // 2] if rates else 0.0
