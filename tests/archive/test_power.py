"""What was synced is there after a power cut at any moment, at both sync levels; and a kill leaves no half catalog."""

import os
import random
from collections.abc import Callable

import pytest

from headrace.archive.files.catalog import CATALOG_NAME, Catalog
from headrace.archive.files.checksum import Checksum, checksum_named
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.files.verify import frames_of, verify
from headrace.archive.server.recovery import Recovery, recover
from headrace.testing import Killed, SimulatedStorage
from tests.archive.streams import TERM_LENGTH, descriptor, frame
from tests.helpers import rounds

pytestmark = pytest.mark.faults

CUTS = 100
CAPACITY = 4096
# Entries that reach over pages of the catalog, now and then.
LONG = "aeron:ipc?alias=" + "x" * 1500


def seeded() -> random.Random:
    """The same choices each time, unless HEADRACE_SEED says otherwise."""
    seed = int(os.environ.get("HEADRACE_SEED", "20263"))
    print(f"seed={seed}; again with HEADRACE_SEED={seed}")
    return random.Random(seed)


def block(choose: random.Random, position: int) -> bytes:
    """Some whole frames to the end of a term at most: short ones, long ones, ones of zeros."""
    data, room = b"", TERM_LENGTH - position % TERM_LENGTH
    for _ in range(choose.randint(1, 12)):
        length = choose.choice((0, 1, 40, 500, 1376, 3000, 9000))
        payload = bytes(length) if choose.random() < 0.3 else choose.randbytes(length)
        one = frame(position + len(data), payload)
        if len(data) + len(one) > room:
            return data or frame(position, b"", kind=0, length=room)
        data += one
    return data


class Life:
    """One life of an archive's files: a recording after another, until the power goes."""

    def __init__(
        self, storage: SimulatedStorage, choose: random.Random, sync_level: int, checksum: Checksum | None
    ) -> None:
        self._storage = storage
        self._choose = choose
        self._sync_level = sync_level
        self._checksum = checksum
        self.acknowledged: dict[int, int] = {}
        self.recorded: dict[int, bytearray] = {}

    def run(self) -> None:
        catalog = Catalog(
            self._storage, capacity=CAPACITY, sync_level=self._sync_level, checksum=self._checksum
        )
        while True:
            recording_id = catalog.add(descriptor(original_channel=LONG))
            self.acknowledged[recording_id] = 0
            self.recorded[recording_id] = stream = bytearray()
            writer = SegmentWriter(
                self._storage,
                recording_id,
                descriptor().geometry,
                0,
                sync_level=self._sync_level,
                checksum=self._checksum,
            )
            writer.open()
            for _ in range(self._choose.randint(1, 40)):
                data = block(self._choose, writer.position)
                is_padding = data[6] == 0
                length = int.from_bytes(data[:4], "little") if is_padding else len(data)
                stream += data.ljust(length, b"\0")
                writer.write(data, length)
                self.acknowledged[recording_id] = writer.position
            writer.close()
            catalog.stopped(recording_id, writer.position, 1)


def stored(storage: SimulatedStorage, catalog: Catalog, recording_id: int) -> bytes:
    """The payloads of a recording, with the zeros between them."""
    found = catalog.find(recording_id)
    assert found is not None
    return b"".join(body for _, one, body in frames_of(storage, found, 0, found.stop_position))


def written(stream: bytearray, storage: SimulatedStorage, stop: int) -> bytes:
    """The same of what was to be recorded."""
    memory = SimulatedStorage()
    whole = SegmentWriter(memory, 0, descriptor().geometry, 0)
    whole.open()
    offset = 0
    while offset < stop:
        end = min(stop, offset + TERM_LENGTH - offset % TERM_LENGTH)
        whole.write(bytes(stream[offset:end]), end - offset)
        offset = end
    whole.close()
    return b"".join(body for _, _, body in frames_of(memory, descriptor(stop_position=stop), 0, stop))


@pytest.mark.parametrize("sync_level", [1, 2])
@pytest.mark.parametrize("checksum", [None, "CRC-32C"])
def test_what_was_acknowledged_is_there_after_a_power_cut(sync_level: int, checksum: str | None) -> None:
    """At any write or sync, with any pages of what was not synced lost; what follows it is whole, or skipped.

    A recording in which a torn frame is followed by others is skipped by name, and a repair truncates there.
    """
    choose, kind = seeded(), checksum_named(checksum)
    refusals: list[str] = []
    acknowledged = 0
    cuts = rounds(CUTS)
    for cut in range(cuts):
        storage = SimulatedStorage(choose)
        if choose.random() < 0.5:
            storage.kill_before(choose.randint(0, 250))
        else:
            # When most is at stake.
            storage.kill_before(choose.randint(0, 60), "sync")
        life = Life(storage, choose, sync_level, kind)
        with pytest.raises(Killed):
            life.run()
        is_catalog_forced = CATALOG_NAME in storage.forced_names
        storage.crash()
        if not is_catalog_forced:
            assert not any(life.acknowledged.values())
            continue
        catalog = Catalog(storage, capacity=CAPACITY, sync_level=sync_level, checksum=kind)
        notes: list[str] = []
        recover(catalog, storage, Recovery(now_ms=2, on_note=notes.append, checksum=kind))
        skipped = [note for note in notes if "is skipped" in note]
        if skipped:
            refusals += skipped
            list(verify(catalog, storage, checksum=kind, is_repaired=True, now_ms=2))
            catalog.close()
            catalog = Catalog(storage, capacity=CAPACITY, sync_level=sync_level, checksum=kind)
        for recording_id, position in life.acknowledged.items():
            acknowledged += position > 0
            found = catalog.find(recording_id)
            if found is None:
                assert position == 0
                continue
            assert found.stop_position >= position, (cut, recording_id)
            stream = life.recorded[recording_id]
            assert stored(storage, catalog, recording_id) == written(stream, storage, found.stop_position)
        wrong = [
            one.text for one in verify(catalog, storage, is_thorough=True, checksum=kind) if not one.is_ok
        ]
        assert wrong == [], (cut, wrong)
        assert catalog.next_recording_id > max(life.acknowledged, default=-1) - 1
        catalog.close()
    assert acknowledged > cuts, "most lives had something to lose"
    assert all(".rec: " in text and "--repair" in text for text in refusals)
    assert 0 < len(refusals) < cuts // 4


CHANGES: dict[str, Callable[[Catalog], object]] = {
    "add": lambda catalog: catalog.add(descriptor(stream_id=9)),
    "stop": lambda catalog: catalog.stopped(1, 4096, 5),
    "extend": lambda catalog: catalog.extended(1, 2, 3, 4),
    "longer channel": lambda catalog: catalog.replace_channel(0, "aeron:ipc?alias=" + "x" * 200, "aeron:ipc"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_kill_at_any_write_of_the_catalog_leaves_one_that_opens(change: str) -> None:
    """With every other recording as it was."""
    writes = 0
    is_over = False
    while not is_over:
        storage = SimulatedStorage()
        catalog = Catalog(storage, capacity=CAPACITY)
        for stream_id in (1, 2, 3):
            catalog.add(descriptor(stream_id=stream_id, stop_position=64))
        storage.kill_before(writes)
        try:
            CHANGES[change](catalog)
            is_over = True
        except Killed:
            pass
        storage.mend()
        again = Catalog(storage)
        assert [one.descriptor.stream_id for one in again][:3] == [1, 2, 3]
        assert again.add(descriptor(stream_id=10)) >= 3
        assert [one.descriptor.stream_id for one in Catalog(storage)][-1] == 10
        writes += 1
    assert writes > 1


def test_what_a_kill_left_of_a_longer_catalog_is_not_used_again() -> None:
    """Its bytes would be entries of no recording."""
    storage = SimulatedStorage()
    catalog = Catalog(storage, capacity=1 << 16)
    catalog.add(descriptor())
    storage.files["archive.catalog.updated"] = bytearray(b"\x01" * (1 << 17))
    CHANGES["longer channel"](catalog)
    again = Catalog(storage)
    assert [one.descriptor.original_channel[-1] for one in again] == ["x"]
    assert again.add(descriptor()) == 1
    assert storage.names() == [CATALOG_NAME]
