"""What a row found, and how it is shown and kept."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Repeated observations of one program, in the row's unit, in the order taken."""

    observations: Sequence[float]

    @property
    def value(self) -> float:
        """The median observation."""
        return median(self.observations)

    @property
    def spread(self) -> tuple[float, float]:
        """Smallest and largest observation."""
        return min(self.observations), max(self.observations)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the report. `ratio` is always higher-is-better for us."""

    name: str
    unit: str
    ours: Measurement
    peer_name: str
    peer: Measurement | None
    target: str
    configuration: str
    higher_is_better: bool = True
    notes: dict[str, float | str] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Ours against the peer's, or nothing where there is no peer."""
        if self.peer is None:
            return None
        if self.higher_is_better:
            return self.ours.value / self.peer.value
        return self.peer.value / self.ours.value

    def as_json(self) -> dict[str, object]:
        """The form kept in `latest.json`."""
        return {
            "name": self.name,
            "value": self.ours.value,
            "unit": self.unit,
            "peer": self.peer_name,
            "peer_value": None if self.peer is None else self.peer.value,
            "ratio": self.ratio,
            "configuration": self.configuration,
            "target": self.target,
            "spread": list(self.ours.spread),
            "peer_spread": None if self.peer is None else list(self.peer.spread),
            "notes": self.notes,
        }


def machine_facts() -> dict[str, str | int]:
    """What the figures depend on and a reader cannot guess."""
    model = "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = models[0] if models else model
    return {
        "cpu": model,
        "cores": os.cpu_count() or 0,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def show(rows: Sequence[Row], skipped: dict[str, str]) -> None:
    """Prints the table."""
    console = Console(width=150) if not sys.stdout.isatty() else Console()
    table = Table(title="Headrace against its peers, measured in one run")
    for heading in ("row", "ours", "spread", "peer", "peer's", "spread", "ratio", "must reach"):
        table.add_column(heading, justify="left" if heading in {"row", "peer", "must reach"} else "right")
    for row in rows:
        peer = row.peer
        table.add_row(
            row.name,
            f"{_figure(row.ours.value)} {row.unit}",
            _spread(row.ours),
            row.peer_name,
            "-" if peer is None else _figure(peer.value),
            "-" if peer is None else _spread(peer),
            "-" if row.ratio is None else f"{row.ratio:.2f} x",
            row.target,
        )
    console.print(table)
    for row in rows:
        console.print(f"[bold]{row.name}[/]: {row.configuration}", soft_wrap=True)
        for name, note in row.notes.items():
            console.print(f"    {name}: {note if isinstance(note, str) else _figure(note)}", soft_wrap=True)
    for name, reason in skipped.items():
        console.print(f"[yellow]{name} skipped: {reason}[/]", soft_wrap=True)


def keep(rows: Sequence[Row], directory: Path) -> None:
    """Writes `latest.json`, keeping rows of earlier runs that this one did not measure, and the plot."""
    directory.mkdir(exist_ok=True)
    latest = directory / "latest.json"
    earlier = json.loads(latest.read_text()) if latest.exists() else []
    fresh = {row.name: row.as_json() | {"machine": machine_facts()} for row in rows}
    merged = [entry for entry in earlier if entry["name"] not in fresh] + list(fresh.values())
    latest.write_text(json.dumps(merged, indent=2) + "\n")
    _plot(merged, directory / "ratios.png")


def _plot(entries: Sequence[dict[str, object]], path: Path) -> None:
    compared = [entry for entry in entries if isinstance(entry["ratio"], float)]
    if not compared:
        return
    figure, axes = plt.subplots(figsize=(9, 0.5 * len(compared) + 1.5), layout="constrained")
    names = [str(entry["name"]) for entry in compared]
    ratios = [float(str(entry["ratio"])) for entry in compared]
    bars = axes.barh(names, ratios, color="#2a6f97")
    axes.bar_label(
        bars, [f"{ratio:.1f} x {entry['peer']}" for ratio, entry in zip(ratios, compared, strict=True)]
    )
    axes.axvline(1.0, color="#888888", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(right=max(ratios) * 12)
    axes.invert_yaxis()
    axes.set_xlabel("times the peer, higher is better (log scale)")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _figure(value: float) -> str:
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if suffix == 'k' else limit):,.2f} {suffix}"
    return f"{value:,.2f}"


def _spread(measurement: Measurement) -> str:
    low, high = measurement.spread
    return f"{_figure(low)} .. {_figure(high)}"
