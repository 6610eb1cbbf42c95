"""Figures of what the programs print, and rows that compare round trips."""

from collections.abc import Callable, Iterable

import numpy as np

from benches.report import Measurement, Row


def rates(lines: Iterable[str]) -> Measurement:
    """Messages a second from lines `count nanoseconds`; the first window warms up."""
    windows = [tuple(map(int, line.split())) for line in lines]
    return Measurement(observations=[count * 1e9 / duration for count, duration in windows[1:]])


def percentiles(durations_ns: np.ndarray) -> dict[str, float | str]:
    """Of durations, in microseconds."""
    return {f"p{point:g} us": float(np.percentile(durations_ns, point)) / 1e3 for point in (50, 90, 99, 99.9)}


def rtt_row(
    name: str,
    ours: list[np.ndarray],
    peer_name: str,
    peer: list[np.ndarray],
    target: str,
    configuration: str,
) -> Row:
    """Compares medians; the notes carry both sides' percentiles over all runs."""
    notes: dict[str, float | str] = {
        f"ours {key}": value for key, value in percentiles(np.concatenate(ours)).items()
    }
    notes |= {f"peer {key}": value for key, value in percentiles(np.concatenate(peer)).items()}
    return Row(
        name=name,
        unit="us (p50)",
        ours=Measurement(observations=[float(np.median(run)) / 1e3 for run in ours]),
        peer_name=peer_name,
        peer=Measurement(observations=[float(np.median(run)) / 1e3 for run in peer]),
        target=target,
        configuration=configuration,
        higher_is_better=False,
        notes=notes,
    )


def samples(lines: Iterable[str]) -> np.ndarray:
    """Durations, one a line."""
    return np.array([int(line) for line in lines], dtype=np.int64)


def in_turns(
    ours: Callable[[], np.ndarray], peer: Callable[[], np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Seven runs of each, one after the other: the host changes what both can do within seconds."""
    pairs = [(ours(), peer()) for _ in range(7)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def thrice(measure: Callable[[], np.ndarray]) -> list[np.ndarray]:
    """Three runs."""
    return [measure() for _ in range(3)]
