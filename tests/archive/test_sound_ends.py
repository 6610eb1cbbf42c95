"""Recordings of a cluster: what a power failure may take of them, whatever the archive's sync level is."""

from __future__ import annotations

import random

import pytest

from headrace.archive.files.catalog import Catalog
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.protocol.forcing import forced, has_sound_end, least_sync_level, with_sound_end
from headrace.archive.server.recovery import Recovery, recover
from headrace.channel import ChannelUri
from headrace.testing import SimulatedStorage
from tests.archive.streams import TERM_LENGTH, descriptor, frames

END = TERM_LENGTH + 1280


def write(storage: SimulatedStorage, channel: str, *, forces_end: bool = False) -> SegmentWriter:
    """A recording of a term and a little, of an archive that forces nothing."""
    catalog = Catalog(storage, capacity=4096)
    shape = descriptor(original_channel=channel)
    catalog.add(shape)
    writer = SegmentWriter(storage, 0, shape.geometry, 0, forces_end=forces_end)
    writer.open()
    while writer.position < END:
        count = min(END - writer.position, TERM_LENGTH - writer.position % TERM_LENGTH) // 128
        writer.write(frames(writer.position, count, 96), count * 128)
    return writer


@pytest.mark.parametrize(("sync_level", "is_cut"), [(0, True), (1, False)])
def test_a_recording_with_a_sound_end_ends_before_a_gap(sync_level: int, is_cut: bool) -> None:
    """Only where nothing is forced: elsewhere no power failure leaves a gap. What follows it is kept aside."""
    storage = SimulatedStorage()
    write(storage, with_sound_end("aeron:ipc?alias=log")).close()
    storage.files["0-0.rec"][1280 : 1280 + 32] = bytes(32)
    catalog = Catalog(storage)
    recover(catalog, storage, Recovery(now_ms=7, on_note=lambda _: None, sync_level=sync_level))
    found = catalog.find(0)
    if is_cut:
        assert found is not None
        assert found.stop_position == 1280
        assert "0-1280.cut" in storage.files
    else:
        assert found is None


def test_a_recording_with_a_sound_end_is_on_the_disk_once_it_has_ended() -> None:
    for seed in range(20):
        storage = SimulatedStorage(random.Random(seed))
        write(storage, with_sound_end("aeron:ipc?alias=log"), forces_end=True).end()
        storage.crash()
        catalog = Catalog(storage)
        recover(catalog, storage, Recovery(now_ms=7, on_note=lambda _: None))
        found = catalog.find(0)
        assert found is not None, f"seed {seed}"
        assert found.stop_position == END, f"seed {seed}"


def test_a_power_failure_takes_no_file_of_a_recording_with_a_sound_end() -> None:
    for seed in range(20):
        storage = SimulatedStorage(random.Random(seed))
        write(storage, with_sound_end("aeron:ipc?alias=log"), forces_end=True)
        storage.crash()
        assert "0-0.rec" in storage.files, f"seed {seed}"


def test_a_recording_is_in_the_catalog_after_a_power_failure_at_each_level() -> None:
    for seed in range(20):
        storage = SimulatedStorage(random.Random(seed))
        with_sync = Catalog(storage, capacity=4096)
        with_sync.add(descriptor())
        storage.crash()
        assert len(Catalog(storage)) == 1, f"seed {seed}"


def test_the_parameters_of_a_channel() -> None:
    assert least_sync_level("aeron:ipc?alias=snapshot") == 0
    assert least_sync_level("aeron:ipc?file-sync-level=7") == 0
    assert least_sync_level(forced("aeron:ipc?alias=snapshot")) == 1
    assert not has_sound_end("aeron:ipc?alias=log")
    assert has_sound_end(with_sound_end("aeron:udp?tags=1|alias=log"))
    assert ChannelUri(with_sound_end(forced("aeron:ipc?alias=log"))).stripped() == "aeron:ipc?alias=log"
