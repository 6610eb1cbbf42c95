"""Latencies: recorded as nanoseconds, shown as percentiles, never as a mean alone."""

from __future__ import annotations

from collections.abc import Iterable

from hdrh.histogram import HdrHistogram
from rich.console import Group
from rich.table import Table
from rich.text import Text

from headrace.tools.units import format_count, format_duration_ns

PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_HIGHEST_NS = 60_000_000_000
_DIGITS = 3


def histogram_of(durations_ns: Iterable[int]) -> HdrHistogram:
    """A histogram with three significant digits, up to a minute; longer ones count as a minute."""
    histogram = HdrHistogram(1, _HIGHEST_NS, _DIGITS)
    for duration_ns in durations_ns:
        histogram.record_value(max(1, min(duration_ns, _HIGHEST_NS)))
    return histogram


def histogram_table(histogram: HdrHistogram, title: str) -> Group:
    """Percentiles of a run."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("percentile", justify="right")
    table.add_column("at most", justify="right", style="cyan")
    for percentile in PERCENTILES:
        name = "max" if percentile == 100.0 else f"{percentile:g}"
        table.add_row(name, format_duration_ns(histogram.get_value_at_percentile(percentile)))
    table.add_row("count", format_count(histogram.get_total_count()))
    return Group(Text(title, style="bold"), table)


def histogram_json(histogram: HdrHistogram) -> dict[str, object]:
    """Percentiles in nanoseconds, by name."""
    values: dict[str, object] = {
        f"p{percentile:g}_ns": histogram.get_value_at_percentile(percentile) for percentile in PERCENTILES
    }
    return {"count": histogram.get_total_count()} | values
