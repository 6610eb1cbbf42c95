"""The demo in small: it delivers, it measures, it draws; and it notices when a message is wrong."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.progress import Progress

from headrace.cli.histogram import histogram_json, histogram_of
from headrace.demo import run
from headrace.demo.__main__ import RateColumn
from headrace.demo.envelope import HEADER, DeliveryError, Verifier
from headrace.demo.picture import save_latencies
from headrace.demo.records import load_records
from tests.system.processes import driver_process


def sealed(sequence: int, record: bytes) -> bytes:
    return HEADER.pack(sequence, zlib.crc32(record)) + record


def test_a_right_sequence_is_accepted() -> None:
    verifier = Verifier()
    for sequence, record in enumerate(load_records()[:100]):
        verifier.accept(sealed(sequence, record))
    assert verifier.count == 100


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (sealed(2, b"a"), "message 2 arrived where 1 was expected"),
        (sealed(0, b"a"), "message 0 arrived where 1 was expected"),
        (HEADER.pack(1, 7) + b"a", "message 1 of 13 bytes does not match its checksum"),
    ],
)
def test_a_lost_repeated_or_damaged_message_is_not(message: bytes, text: str) -> None:
    verifier = Verifier()
    verifier.accept(sealed(0, b"a"))
    with pytest.raises(DeliveryError, match=text):
        verifier.accept(message)


def test_a_bar_shows_the_rate_now_and_leaves_that_of_the_run_to_the_table() -> None:
    clock = iter(range(100))
    progress = Progress(get_time=lambda: float(next(clock)))
    task = progress.add_task("IPC", total=100)
    progress.update(task, completed=10)
    progress.update(task, completed=20)
    assert RateColumn().render(progress.tasks[0]).plain.startswith("now ")
    progress.update(task, completed=100)
    assert RateColumn().render(progress.tasks[0]).plain == ""


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    histogram = histogram_of(range(1000, 100_000, 10))
    save_latencies({"IPC": histogram}, tmp_path / "latency.png")
    assert (tmp_path / "latency.png").read_bytes().startswith(b"\x89PNG")
    assert histogram_json(histogram)["count"] == 9900


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with driver_process("demo") as made:
        yield made


@pytest.mark.system
@pytest.mark.parametrize("transport", run.TRANSPORTS, ids=lambda transport: transport.name)
def test_every_message_is_delivered_and_seen(directory: Path, transport: run.Transport) -> None:
    seen: list[int] = []
    small = dataclasses.replace(transport, messages=50_000)
    delivery = run.deliver(directory, small, seen.append)
    assert delivery.messages == seen[-1] == 50_000
    assert delivery.byte_count > 50_000 * HEADER.size


@pytest.mark.system
def test_round_trips_are_measured(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "ROUND_TRIPS", 500)
    assert run.round_trips(directory, run.TRANSPORTS[0]).get_total_count() == 500
