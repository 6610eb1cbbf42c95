"""A catalog of very many recordings: it is listed in pages, changed in place, and holds up no recording."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import headrace
from headrace._agent.storage import DirectoryStorage
from headrace.archive.files.catalog import CATALOG_NAME, STATE_VALID, Catalog, new_catalog
from headrace.archive.server.listings import RecordingListing
from headrace.testing import SimulatedStorage
from tests.archive.streams import descriptor
from tests.helpers import TIMEOUT_S

COUNT = 100_000
PAGE = 10_000


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory whose catalog has so many recordings, all of them empty."""
    directory = tmp_path_factory.mktemp("large")
    one = descriptor(start_position=0, stop_position=0)
    new_catalog(
        DirectoryStorage(directory), ((STATE_VALID, one.replace(recording_id=id)) for id in range(COUNT))
    )
    yield directory
    (directory / CATALOG_NAME).unlink()


@pytest.mark.system
def test_a_listing_in_pages_holds_up_no_recording(directory: Path) -> None:
    """Messages are sent and recorded while it goes on, and it has each recording once."""
    listed: list[int] = []
    is_over = threading.Event()

    def list_all(archive: headrace.Archive) -> None:
        while page := [one.recording_id for one in archive.list_recordings(len(listed), PAGE)]:
            listed.extend(page)
        is_over.set()

    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=directory) as archiving,
        archiving.connect_archive() as lister,
        archiving.connect_archive() as archive,
        archive.add_durable_publication("aeron:ipc?term-length=64k", 1001) as publication,
    ):
        thread = threading.Thread(target=list_all, args=(lister,))
        thread.start()
        recorded_meanwhile = 0
        while not is_over.is_set():
            publication.publish(b"meanwhile", timeout_s=TIMEOUT_S)
            recorded_meanwhile += 1
        thread.join(TIMEOUT_S)
    assert listed == list(range(COUNT + 1))
    # Had each page been one turn of the archive, there would have been no more than pages.
    assert recorded_meanwhile > COUNT // PAGE


class Reader:
    """A control session whose client takes everything at once."""

    session_id = 1

    def __init__(self) -> None:
        self.listing: object = self
        self.count = 0

    def try_send(self, message: bytes) -> bool:
        self.count += 1
        return True

    def send_unknown(self, *_: object) -> None:
        """The listing has ended."""


def test_a_turn_of_a_listing_looks_at_few_entries() -> None:
    """Also where none of them is wanted."""
    storage = SimulatedStorage()
    new_catalog(storage, ((STATE_VALID, descriptor(stop_position=0, recording_id=id)) for id in range(1000)))
    catalog = Catalog(storage, capacity=32)
    for is_wanted in (lambda entry: True, lambda entry: False):
        reader, turns = Reader(), 0
        listing = RecordingListing(catalog, 1, 0, 1000, is_wanted)
        while reader.listing is not None:
            work_count = listing.do_work(cast(Any, reader))
            assert work_count <= 65
            turns += 1
        assert turns >= 1000 // 64


def test_a_channel_that_fits_changes_its_entry_alone() -> None:
    """Where the entry is in one page, which a kill cannot tear; else the whole catalog is written anew."""
    storage = SimulatedStorage()
    new_catalog(storage, ((STATE_VALID, descriptor(stop_position=0, recording_id=id)) for id in range(100)))
    catalog = Catalog(storage, capacity=32)
    old = bytes(storage.files[CATALOG_NAME])
    written = []
    for entry in catalog.entries():
        storage.step_count, before = 0, entry.descriptor
        catalog.replace_channel(entry.recording_id, "aeron:ipc", "aeron:ipc")
        written.append(storage.step_count)
        is_in_one_page = entry.offset // 4096 == (entry.offset + entry.length - 1) // 4096
        # Two would be a write in place, page by page.
        assert storage.step_count == 1 if is_in_one_page else storage.step_count > 2
        catalog.replace_channel(entry.recording_id, before.original_channel, before.stripped_channel)
    assert len(set(written)) > 1
    assert bytes(storage.files[CATALOG_NAME]) == old
    assert [one.descriptor for one in Catalog(storage, read_only=True).entries()] == [
        one.descriptor for one in catalog.entries()
    ]
