"""Runs the demo and shows it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hdrh.histogram import HdrHistogram
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

import headrace
from headrace._base.extras import install_command
from headrace.cli.histogram import histogram_json, histogram_table
from headrace.demo import run
from headrace.demo.envelope import DeliveryError
from headrace.demo.picture import save_latencies
from headrace.demo.records import checksum_of, load_records
from headrace.tools.units import format_bytes, format_count, format_rate

RESULTS = Path("demo-results")


class RateColumn(ProgressColumn):
    """Messages a second, now. At the end the table says the rate of the whole run, and this says none."""

    def render(self, task: Task) -> Text:
        """The column's text."""
        speed = None if task.finished else task.speed
        return Text("" if speed is None else f"now {format_rate(speed)}", style="green")


def main() -> int:
    """Exit status 1 if anything did not arrive once, in order and whole."""
    console = Console()
    try:
        records = load_records()
    except ModuleNotFoundError:
        text = f"error: the data set is missing, which headrace[demo] brings: {install_command('demo')}"
        console.print(Text(text, style="red"))
        return 1
    size = sum(map(len, records))
    amount = f"{format_count(len(records))} records of vega-datasets, {format_bytes(size)} of JSON"
    console.print(f"{amount}, crc {checksum_of(records):08x}; each one message, from process to process")
    try:
        deliveries, histograms = _run(console)
    except (DeliveryError, headrace.HeadraceError) as failure:
        console.print(Text(f"error: {failure}", style="bold red"))
        return 1
    console.print(_table(deliveries))
    for name, histogram in histograms.items():
        console.print(histogram_table(histogram, f"{name}: round trips of 64 bytes, two Python processes"))
    RESULTS.mkdir(exist_ok=True)
    save_latencies(histograms, RESULTS / "latency.png")
    latencies = {name: histogram_json(histogram) for name, histogram in histograms.items()}
    (RESULTS / "summary.json").write_text(
        json.dumps(run.summary_json(deliveries, latencies), indent=2) + "\n"
    )
    console.print(f"picture in {RESULTS / 'latency.png'}, figures in {RESULTS / 'summary.json'}")
    return 0


def _run(console: Console) -> tuple[list[run.Delivery], dict[str, HdrHistogram]]:
    deliveries: list[run.Delivery] = []
    histograms = {}
    counted = TextColumn("{task.completed:,.0f} of {task.total:,.0f} messages")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        counted,
        RateColumn(),
        TimeElapsedColumn(),
    )
    with run.driver_process() as directory:
        with Progress(*columns, console=console, speed_estimate_period=2.0) as progress:
            deliveries.extend(_deliver(directory, transport, progress) for transport in run.TRANSPORTS)
        for transport in run.TRANSPORTS:
            with console.status(f"round trips over {transport.name}"):
                histograms[transport.name] = run.round_trips(directory, transport)
    return deliveries, histograms


def _deliver(directory: Path, transport: run.Transport, progress: Progress) -> run.Delivery:
    task = progress.add_task(transport.name, total=transport.messages)
    return run.deliver(directory, transport, lambda count: progress.update(task, completed=count))


def _table(deliveries: list[run.Delivery]) -> Table:
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
    for name in ("transport", "messages", "payload", "seconds", "rate", "verified"):
        is_text = name in ("transport", "verified")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=name != "verified")
    for delivery in deliveries:
        table.add_row(
            delivery.transport,
            format_count(delivery.messages),
            format_bytes(delivery.byte_count),
            f"{delivery.seconds:.1f}",
            format_rate(delivery.messages / delivery.seconds),
            "once, in order, whole",
            style="bold",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
