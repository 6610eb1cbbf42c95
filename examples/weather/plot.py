"""The picture: the weather in the stream, and its latencies."""

from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("Agg")  # draws into files and looks for no display
from matplotlib import pyplot as plt

CITIES = {"SEATTLE": "tab:blue", "SAN_FRANCISCO": "tab:orange"}
SHADES = {"max": "#fdb863", "p99": "#e66101", "p90": "#b2abd2", "p50": "#5e3c99"}


def save(weather: pd.DataFrame, latency: pd.DataFrame, missing: int, path: Path) -> None:
    """Draw the weather by day above and the latencies by window below."""
    figure, (above, below) = plt.subplots(2, figsize=(10, 8), layout="constrained")
    for city, colour in CITIES.items():
        days = weather[weather["city"] == city]
        dates = pd.to_datetime(days["day"])
        above.fill_between(dates, days["low"], days["high"], color=colour, alpha=0.2, linewidth=0)
        above.plot(dates, days["mean"], color=colour, label=city.replace("_", " ").title())
    above.set(
        title="What was sent: temperature by day, mean and range",
        xlabel="day of observation",
        ylabel="temperature, °F",
    )
    seconds = (latency["window"] - latency["window"].min()).dt.total_seconds()
    for name, colour in SHADES.items():
        below.plot(seconds, latency[name], color=colour, label=name)
    below.set(
        title=f"How it arrived: {latency['received'].sum():,} readings, {missing:,} missing",
        xlabel="sent, seconds since the first (windows of 100 ms)",
        ylabel="latency, microseconds",
        yscale="log",
    )
    below.set_ylim(top=4 * latency["max"].max())  # room for the legend
    below.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    for axes in (above, below):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, ncols=4, loc="upper right")
    figure.savefig(path, dpi=120)
    plt.close(figure)
