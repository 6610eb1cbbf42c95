"""A disk that refuses, and an error log that is full: nothing changes, and what matters is kept."""

import dataclasses

import pytest

from headrace._agent.error_log import ErrorLog
from headrace.archive.files.catalog import CATALOG_NAME, STATE_DELETED, Catalog
from headrace.archive.files.checksum import checksum_named
from headrace.cnc.error_log import read_error_log
from headrace.testing import SimulatedStorage
from tests.archive.streams import descriptor

CRC_32 = checksum_named("CRC-32")


CHANGES = {
    "add": lambda catalog: catalog.add(descriptor(stream_id=9)),
    "stopped": lambda catalog: catalog.stopped(0, 4096, 17),
    "extended": lambda catalog: catalog.extended(1, 2, 3, 4),
    "channel": lambda catalog: catalog.replace_channel(0, "aeron:ipc?alias=x", "aeron:ipc"),
    "longer channel": lambda catalog: catalog.replace_channel(0, "aeron:ipc?alias=" + "x" * 300, "aeron:ipc"),
    "state": lambda catalog: catalog.set_state(1, STATE_DELETED),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("refused", "after"), [("write", 0), ("write", 1), ("write", 2), ("sync", 0)])
def test_what_the_disk_refuses_changes_nothing_in_memory(change: str, refused: str, after: int) -> None:
    """And nothing on disk once it works again; the same change then succeeds."""
    storage = SimulatedStorage()
    catalog = Catalog(storage, sync_level=1, checksum=CRC_32)
    catalog.add(descriptor())
    catalog.add(descriptor(stop_position=64))
    before = [dataclasses.replace(entry) for entry in catalog.entries()]
    storage.fail(refused, f"{CATALOG_NAME}*", after=after)
    try:
        CHANGES[change](catalog)
    except OSError:
        assert catalog.entries() == before
        assert catalog.next_recording_id == 2
        storage.mend()
        CHANGES[change](catalog)
    else:
        assert refused == "write", "a write more than the change has"
    assert Catalog(storage, checksum=CRC_32).entries() == catalog.entries() != before


def entries_of(texts: list[str], length: int) -> list[tuple[str, int, int]]:
    """What an error log of a length keeps of texts that come one each millisecond."""
    buffer = bytearray(length)

    def put_bytes(offset: int, data: bytes) -> None:
        buffer[offset : offset + len(data)] = data

    log = ErrorLog(put_bytes, len(buffer))
    for now_ms, text in enumerate(texts):
        log.record(text, now_ms)
    return [
        (entry.text, entry.observation_count, entry.last_observation_ms) for entry in read_error_log(buffer)
    ]


FULL = "WARN - this log is full and drops further texts"


def test_errors_are_kept_once_each_where_tools_read_them() -> None:
    """And that others found no place is said in a last entry."""
    found = entries_of(["one", "two", "one", "x" * 300, "one", "y" * 300], 256)
    assert found == [("one", 3, 4), ("two", 1, 1), (FULL, 2, 5)]


def test_warnings_leave_half_of_the_error_log_to_errors() -> None:
    """So that a client cannot crowd out what the archive has to say of itself."""
    warnings = [f"WARN - wrong request {index}" for index in range(1000)]
    found = entries_of([*warnings, "disk", *warnings, "driver"], 4096)
    assert [text for text, _, _ in found if not text.startswith("WARN - ")] == ["disk", "driver"]
    kept = [count for text, count, _ in found if text.startswith("WARN - wrong")]
    assert len(kept) == 4096 // 2 // 48
    assert set(kept) == {2}
    assert (FULL, 2 * (1000 - len(kept)), 2000) in found
