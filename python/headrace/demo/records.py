"""The demo's input: real records, one JSON message each."""

from __future__ import annotations

import csv
import importlib.resources
import json
import zlib
from collections.abc import Iterator
from importlib.resources.abc import Traversable

# Airports, cars and employment of the USA, hourly temperatures of two cities, stock prices, daily weather.
_TABLES = (
    "airports.csv",
    "seattle-temps.csv",
    "sf-temps.csv",
    "stocks.csv",
    "seattle-weather.csv",
    "us-employment.csv",
)
_OBJECTS = ("cars.json", "barley.json", "iris.json", "wheat.json", "driving.json")


def load_records() -> list[bytes]:
    """Each row of the tables in the `vega-datasets` package, as compact JSON.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """
    folder = importlib.resources.files("vega_datasets") / "_data"
    return [
        json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
        for name in (*_TABLES, *_OBJECTS)
        for row in _rows(folder / name)
    ]


def checksum_of(records: list[bytes]) -> int:
    """One number for all of them, to name the input in the report."""
    total = 0
    for record in records:
        total = zlib.crc32(record, total)
    return total


def _rows(file: Traversable) -> Iterator[dict[str, object]]:
    text = file.read_text(encoding="utf-8")
    if file.name.endswith(".csv"):
        yield from csv.DictReader(text.splitlines())
    else:
        yield from json.loads(text)
