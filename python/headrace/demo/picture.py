"""The demo's picture: latency by percentile, one line a transport."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hdrh.histogram import HdrHistogram

_NINES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)


def save_latencies(histograms: Mapping[str, HdrHistogram], path: Path) -> None:
    """Draw the histograms over a logarithmic scale of percentiles, as HdrHistogram plots are drawn."""
    import matplotlib

    # No display is needed, and none is looked for.
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    for name, histogram in histograms.items():
        percentiles = _percentiles(histogram.get_total_count())
        values_us = [histogram.get_value_at_percentile(percentile) / 1000 for percentile in percentiles]
        axes.plot([1 / (1 - percentile / 100) for percentile in percentiles], values_us, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([1 / (1 - nine / 100) for nine in _NINES], [f"{nine:g}%" for nine in _NINES])
    axes.minorticks_off()
    axes.set_xlabel("percentile of round trips")
    axes.set_ylabel("round trip at most, microseconds")
    axes.set_title("Round trips between two Python processes")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _percentiles(count: int) -> list[float]:
    # Up to the last percentile that is more than one observation.
    steps = [100 * (1 - 10 ** (-step / 20)) for step in range(121)]
    return [percentile for percentile in steps if (1 - percentile / 100) * count >= 1]
