"""Record a year of hourly temperatures while one process publishes them and another receives them."""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
from vega_datasets import local_data

import headrace
from headrace import sbe
from headrace.archive import RecordingSignal

SCHEMA = Path(__file__).with_name("weather.xml")
CHANNEL = "aeron:ipc"
READINGS, RECEIPTS = 2001, 2002  # stream ids
RATE = 5_000  # readings a second, one every 200 microseconds
TIMEOUT_S = 60.0


def record(archive_directory: Path) -> list[int]:
    """Record both streams from beginning to end; returns the ids of the two recordings."""
    # The driver has threads, which a forked process would lack.
    processes = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=archive_directory) as archiving,
        archiving.connect_archive() as archive,
        processes,
    ):
        for stream_id in (READINGS, RECEIPTS):
            archive.start_recording(CHANNEL, stream_id)
        receiver = processes.submit(receive, archiving.directory)
        # The stream of receipts starts when the receiver listens. Publish only after that.
        archive.await_signal(RecordingSignal.START, timeout_s=TIMEOUT_S)
        publisher = processes.submit(publish, archiving.directory)
        publisher.result(TIMEOUT_S)
        receiver.result(TIMEOUT_S)
        return sorted(archive.await_signal(RecordingSignal.STOP).recording_id for _ in range(2))


def publish(driver_directory: str) -> None:
    """Publish every reading at its time, whether or not the receiver keeps up."""
    message = sbe.Schema.from_file(SCHEMA)["Reading"]
    with (
        headrace.connect(driver_directory) as client,
        client.add_publication(CHANNEL, READINGS) as publication,
    ):
        publication.wait_until_connected(TIMEOUT_S)
        begin = time.perf_counter()
        for sequence, (city, observed_s, fahrenheit) in enumerate(readings()):
            time.sleep(max(0.0, begin + sequence / RATE - time.perf_counter()))
            publication.offer_blocking(
                message.encode(sequence, time.time_ns(), observed_s, city, fahrenheit), timeout_s=TIMEOUT_S
            )


def receive(driver_directory: str) -> None:
    """Answer each reading with a receipt, until the publisher disconnects."""
    schema = sbe.Schema.from_file(SCHEMA)
    reading, receipt = schema["Reading"], schema["Receipt"]
    with (
        headrace.connect(driver_directory) as client,
        client.add_subscription(CHANNEL, READINGS) as subscription,
        client.add_publication(CHANNEL, RECEIPTS) as receipts,
    ):

        def on_reading(payload: bytes, header: headrace.Header) -> None:
            received_ns = time.time_ns()
            sequence = reading.decode(payload).sequence
            receipts.offer_blocking(receipt.encode(sequence, received_ns), timeout_s=TIMEOUT_S)

        receipts.wait_until_connected(TIMEOUT_S)
        subscription.wait_until_connected(TIMEOUT_S)
        idle = headrace.BlockingIdleStrategy(subscription)
        while subscription.images:
            idle.idle(subscription.poll(on_reading))


def readings() -> Iterator[tuple[str, int, float]]:
    """City, time and temperature from the `vega-datasets` package: Seattle and San Francisco in 2010."""
    cities = {"SEATTLE": local_data.seattle_temps(), "SAN_FRANCISCO": local_data.sf_temps()}
    table = pd.concat(frame.assign(city=city) for city, frame in cities.items()).sort_values(["date", "city"])
    seconds = table["date"].astype("datetime64[s]").astype("int64")
    return zip(table["city"], seconds.tolist(), table["temp"].tolist(), strict=True)
