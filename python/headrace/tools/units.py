"""Numbers as people read them. Pure functions, one unit each."""

from __future__ import annotations

from datetime import datetime

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_DECIMAL = ("", "k", "M", "G", "T")
_DURATIONS = (
    (3_600_000_000_000, "h"),
    (60_000_000_000, "min"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
)


def format_count(value: int) -> str:
    """Thousands separated: `1,234,567`."""
    return f"{value:,}"


def format_bytes(value: float) -> str:
    """`1.2 MiB`; whole bytes below one KiB."""
    return _scaled(value, 1024, _BINARY)


def format_rate(value: float, unit: str = "msg/s") -> str:
    """Scaled by thousands: `1.2 M msg/s`."""
    return f"{_scaled(value, 1000, _DECIMAL)} {unit}".replace("  ", " ")


def format_duration_ns(value: float) -> str:
    """`1.5 ms`: the largest unit that leaves at least one before the point."""
    for scale, unit in _DURATIONS:
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} ns"


def format_time_ms(epoch_ms: int) -> str:
    """Local time with milliseconds and zone: `2026-01-31 13:45:00.123+0100`; the number if it is no time.

    It may come from a file that is not what its reader was told.
    """
    try:
        moment = datetime.fromtimestamp(epoch_ms / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(epoch_ms)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{epoch_ms % 1000:03d}{moment:%z}"


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    scaled = float(value)
    for unit in units:
        if abs(scaled) < base or unit == units[-1]:
            digits = 0 if unit == units[0] else 1
            return f"{scaled:.{digits}f} {unit}".rstrip()
        scaled /= base
    raise AssertionError("the last unit always returns")
