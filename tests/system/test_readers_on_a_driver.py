"""The readers, which know the formats on their own, agree with the driver and client that write them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.tools import CncFile, channel_of, counter_type, group_streams, stream_key
from headrace.tools.counter_types import COUNTER_TYPES, SYSTEM_READINGS, Reading, reading_of
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.system

UDP = f"aeron:udp?endpoint={free_endpoint()}"
STREAM_ID = 5
MESSAGES = 10


@pytest.fixture(scope="module")
def streaming() -> Iterator[tuple[headrace.Client, headrace.Publication]]:
    """A client whose stream has been read to its end over UDP."""
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        driver.connect() as client,
        client.add_subscription(UDP, STREAM_ID) as subscription,
        client.add_publication(UDP, STREAM_ID) as publication,
    ):
        for _ in range(MESSAGES):
            publication.offer_blocking(b"x", timeout_s=TIMEOUT_S)
        for _ in range(MESSAGES):
            subscription.receive(timeout_s=TIMEOUT_S)
        yield client, publication


def test_every_counter_is_named_as_its_type_says(
    streaming: tuple[headrace.Client, headrace.Publication],
) -> None:
    client, publication = streaming
    with CncFile.open(Path(client.directory)) as cnc:
        records = list(cnc.counters)
    types = {record.type_id for record in records}
    assert {0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 12} <= types <= COUNTER_TYPES.keys()
    for record in records:
        if record.type_id != 0:
            assert counter_type(record.type_id).name in record.label, record
        key = stream_key(record)
        if key is not None:
            expected = (publication.session_id, STREAM_ID, UDP)
            assert (key.session_id, key.stream_id, key.channel) == expected
        elif record.type_id in (6, 7, 2101):
            assert channel_of(record) == UDP, record


def test_system_counters_are_read_in_the_unit_their_label_has(
    streaming: tuple[headrace.Client, headrace.Publication],
) -> None:
    client, _ = streaming
    with CncFile.open(Path(client.directory)) as cnc:
        system = {record.counter_id: record for record in cnc.counters if record.type_id == 0}
    for counter_id, reading in SYSTEM_READINGS.items():
        assert reading_of(system[counter_id]) is reading
    in_ns = {counter_id for counter_id, record in system.items() if "in ns" in record.label}
    assert in_ns == {number for number, reading in SYSTEM_READINGS.items() if reading is Reading.NANOSECONDS}
    in_bytes = {counter_id for counter_id, record in system.items() if "ytes" in record.label}
    assert in_bytes == {number for number, reading in SYSTEM_READINGS.items() if reading is Reading.BYTES}


def test_the_reader_and_the_client_see_the_same(
    streaming: tuple[headrace.Client, headrace.Publication],
) -> None:
    client, _ = streaming
    # A client appends its name to the label of its heartbeat when it likes.
    with CncFile.open(Path(client.directory)) as cnc:
        read = {
            (record.counter_id, record.label, record.key) for record in cnc.counters if record.type_id != 11
        }
        pid = cnc.header.pid
    seen = {
        (record.counter_id, record.label, record.key) for record in client.counters if record.type_id != 11
    }
    assert read == seen
    assert pid > 0


def positions(cnc: CncFile) -> set[int | None]:
    (stream,) = group_streams(cnc.counters)
    return {stream.publisher_position, stream.sender_position, stream.receiver_position}


def test_the_stream_is_whole_at_every_party(
    streaming: tuple[headrace.Client, headrace.Publication],
) -> None:
    client, publication = streaming
    position = publication.position
    assert position == MESSAGES * 64
    with CncFile.open(Path(client.directory)) as cnc:
        # Each agent shows its own position, in turns of its own.
        await_true(lambda: positions(cnc) == {position})
        (stream,) = group_streams(cnc.counters)
    assert stream.missing == 0
    assert [(reader.position, stream.backlog(reader)) for reader in stream.readers] == [(position, 0)]
