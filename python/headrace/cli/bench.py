"""`headrace bench`: this machine in half a minute."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from headrace.cli import measure
from headrace.cli.histogram import histogram_of
from headrace.cli.options import json_option
from headrace.cli.output import OutputConsole, print_json
from headrace.tools.units import format_duration_ns, format_rate

IPC = "aeron:ipc"
UDP = "aeron:udp?endpoint=127.0.0.1:20127"
UDP_BACK = "aeron:udp?endpoint=127.0.0.1:20128"
_LENGTH = 40
_SAMPLES = 3
_ROUND_TRIPS = 5_000

Row = dict[str, object]


def _throughput(directory: Path, channel: str, *, is_batched: bool) -> Row:
    source = measure.throughput(
        directory, channel, 1001, length=_LENGTH, is_batched=is_batched, interval_s=1.0
    )
    # The first second warms up.
    samples = list(itertools.islice(source, 1, 1 + _SAMPLES))
    source.close()
    rate = statistics.median(sample.messages_a_second for sample in samples)
    configuration = f"{_LENGTH}-byte messages, two Python processes, driver in one of them"
    return {"value": rate, "unit": "msg/s", "configuration": configuration}


def _round_trip(directory: Path, ping: str, pong: str, *, is_embedded: bool) -> Row:
    with measure.round_trips_to_worker(
        directory, (ping, 1002), (pong, 1003), is_embedded=is_embedded
    ) as round_trips:
        p50 = histogram_of(round_trips(_ROUND_TRIPS)).get_value_at_percentile(50.0)
    how = "each with its driver on its own thread" if is_embedded else "that yield"
    configuration = (
        f"{measure.ROUND_TRIP_LENGTH} bytes there and back, p50 of {_ROUND_TRIPS}, two Python processes {how}"
    )
    return {"value": p50, "unit": "ns", "configuration": configuration}


def _driver_start(directory: Path) -> Row:
    value = statistics.median(measure.driver_start_ns() for _ in range(3))
    return {
        "value": value,
        "unit": "ns",
        "configuration": "a new driver to the first message in the same process",
    }


ROWS: dict[str, Callable[[Path], Row]] = {
    "ipc-throughput": lambda directory: _throughput(directory, IPC, is_batched=False),
    "ipc-throughput-batch": lambda directory: _throughput(directory, IPC, is_batched=True),
    "udp-throughput": lambda directory: _throughput(directory, UDP, is_batched=False),
    "udp-throughput-batch": lambda directory: _throughput(directory, UDP, is_batched=True),
    "ipc-round-trip": lambda directory: _round_trip(directory, IPC, IPC, is_embedded=False),
    "udp-round-trip": lambda directory: _round_trip(directory, UDP, UDP_BACK, is_embedded=True),
    "driver-start": _driver_start,
}


@click.command()
@click.argument("name", nargs=-1, type=click.Choice(list(ROWS)))
@json_option
def command(name: tuple[str, ...], as_json: bool) -> None:
    """Measure throughput, round trips and start-up on this machine, each with a driver that the command starts.

    The figures hold for this machine at this time. To compare with another library, measure both in one run, as
    `make bench` in the sources does.

    \b
    Examples:
      headrace bench
      headrace bench ipc-throughput udp-throughput
      headrace bench --json | jq -c '{name, value, unit}'
    """
    facts = measure.machine_facts()
    results: list[Row] = []
    console = Console(stderr=True)
    for chosen in name or ROWS:
        # A driver for each row, so that no row measures what an earlier one has left.
        with console.status(f"measuring {chosen}"), measure.driver_in(None) as directory:
            results.append({"name": chosen} | ROWS[chosen](directory))
        if as_json:
            print_json(results[-1] | {"machine": facts})
    if not as_json:
        OutputConsole().print(_table(results))
        click.echo(", ".join(str(fact) for fact in facts.values()))


def _table(results: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("what")
    table.add_column("figure", justify="right", style="bold green")
    table.add_column("how")
    for row in results:
        value = float(str(row["value"]))
        figure = format_rate(value) if row["unit"] == "msg/s" else format_duration_ns(value)
        table.add_row(str(row["name"]), figure, str(row["configuration"]))
    return table
