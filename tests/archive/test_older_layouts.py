"""Directories of Aeron's archives before version 3 of the format become those of today, whatever interrupts it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import headrace
from headrace.archive import ArchiveConfig, files
from headrace.archive.errors import CatalogError, MarkFileError, SegmentError
from headrace.archive.files.catalog import Catalog
from headrace.archive.files.frames import FLAGS_BEGIN
from headrace.archive.files.mark_file import MARK_NAME, ArchiveMarkFile
from headrace.archive.files.older_layouts import is_upgrade_begun, planned_upgrade, upgrade
from headrace.archive.files.verify import frames_of, verify
from headrace.archive.server.recovery import open_files
from headrace.testing import Killed, ManualClock, SimulatedStorage
from tests.golden.archive import MESSAGE_COUNTS, MESSAGE_LENGTH, VERSIONS, unpack

pytestmark = pytest.mark.faults

LATER_MS = 1_900_000_000_000
CONFIG = ArchiveConfig(control_channel_enabled=False)
FIRST_LEFT = 43
"""The message of recording 4 that is the first in what version 2.1.0 has left of it."""


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Version of the directory."""
    return str(request.param)


@pytest.fixture
def directory(version: str, tmp_path: Path) -> Path:
    """A directory of that version."""
    return unpack(version, tmp_path)


def in_memory(directory: Path, chance: random.Random | None = None) -> SimulatedStorage:
    """The same files on a simulated disk, all of them forced to it."""
    storage = SimulatedStorage(chance)
    for path in directory.iterdir():
        storage.files[path.name] = bytearray(path.read_bytes())
    return storage.copy()


def content(storage: SimulatedStorage) -> dict[str, bytes]:
    """All files."""
    return {name: bytes(data) for name, data in storage.files.items()}


def start(storage: SimulatedStorage) -> Catalog:
    """As the server does it."""
    mark = ArchiveMarkFile(storage, 64, LATER_MS)
    mark.clear_errors()
    catalog = open_files(CONFIG, storage, LATER_MS, lambda text: None)
    mark.close()
    return catalog


def check(storage: SimulatedStorage, catalog: Catalog, version: str) -> None:
    """Every message of every recording is there, and nothing else."""
    assert len(catalog) == len(MESSAGE_COUNTS)
    for entry in catalog:
        one, count = entry.descriptor, MESSAGE_COUNTS[entry.recording_id]
        frames = frames_of(storage, one, one.start_position, one.stop_position)
        marks = [body[0] for _, frame, body in frames if frame.flags & FLAGS_BEGIN and not frame.is_padding]
        is_purged = version == "2.1.0" and entry.recording_id == 4
        assert marks == list(range(FIRST_LEFT if is_purged else 1, count + 1))
    checked = verify(catalog, storage, is_thorough=True, checksum=None)
    assert [finding.text for finding in checked if not finding.is_ok] == []
    assert not [name for name in storage.files if name.endswith((".begun", ".updated"))]


def test_what_old_archives_recorded_is_replayed(directory: Path) -> None:
    """Named by a dry run, migrated once, recorded in and replayed by an archive of today."""
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    planned = files.migrate(directory, is_dry_run=True)
    assert planned is not None
    assert planned.recording_ids == tuple(MESSAGE_COUNTS)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    assert files.migrate(directory) == planned
    assert files.migrate(directory) is None
    assert {new for _, new in planned.renamed} <= {path.name for path in directory.iterdir()}
    with files.ArchiveDirectory(directory) as archive:
        assert archive.mark().aeron_directory.startswith("/dev/shm")
        assert archive.mark().control_channel == "aeron:udp?endpoint=127.0.0.1:28010"
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=directory) as archiving,
        archiving.connect_archive() as client,
        client.replay(5) as replay,
    ):
        received = [bytes(message.payload) for message in replay]
        assert received == [bytes([index + 1]) * MESSAGE_LENGTH for index in range(MESSAGE_COUNTS[5])]


def test_a_kill_at_any_step_leaves_the_old_directory_or_one_that_the_next_start_finishes(
    version: str, directory: Path
) -> None:
    """The start may be killed too; and the command finishes it as well."""
    before, step = in_memory(directory), 0
    is_over = False
    while not is_over:
        killed = before.copy()
        killed.kill_before(step)
        try:
            upgrade(killed)
            is_over = True
        except Killed:
            pass
        killed.crash(keeps_writes=True)
        again = killed.copy()
        upgrade(again)
        check(again, start(again), version)
        if is_upgrade_begun(killed) or is_over:
            kill_the_start(killed, version)
        else:
            assert content(killed) == content(before)
        step += 1
    assert step > 10


def kill_the_start(killed: SimulatedStorage, version: str) -> None:
    """Kill the start of an archive before each of its steps, and let the one after that be."""
    step, is_over = 0, False
    while not is_over:
        again = killed.copy()
        again.kill_before(step)
        try:
            start(again)
            is_over = True
        except Killed:
            pass
        again.crash(keeps_writes=True)
        check(again, start(again), version)
        # Most of its steps are those of every start: a few of them are enough.
        step += 5


@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_at_any_step_loses_nothing(version: str, directory: Path, seed: int) -> None:
    """Any of what was not forced to the medium may be lost."""
    before, step, is_over = in_memory(directory, random.Random(seed)), 0, False
    while not is_over:
        cut = before.copy()
        cut.kill_before(step)
        try:
            upgrade(cut)
            is_over = True
        except Killed:
            pass
        cut.crash()
        upgrade(cut)
        check(cut, start(cut), version)
        step += 1


@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename"])
def test_what_the_disk_refuses_is_done_by_the_next_call(version: str, directory: Path, kind: str) -> None:
    """Once, at each of the first steps of a kind."""
    for after in range(4):
        storage = in_memory(directory)
        storage.fail(kind, after=after, times=1)
        try:
            upgrade(storage)
        except OSError:
            assert storage.refused_count == 1
        storage.mend()
        upgrade(storage)
        check(storage, start(storage), version)


@pytest.mark.parametrize("version", ["0.0.1", "1.0.0"])
def test_a_file_that_is_not_what_its_name_says_is_refused(version: str, directory: Path) -> None:
    """By its name, and nothing is changed. Files of 2.1.0 have their names already, and are not looked into."""
    storage = in_memory(directory)
    storage.files["0-1.rec" if version == "0.0.1" else "0-131072.rec"] = bytearray(
        storage.files["1-1.rec" if version == "0.0.1" else "1-393216.rec"]
    )
    before = content(storage)
    with pytest.raises(SegmentError, match=r"0-1.*\.rec: its first frame has term_id=14"):
        upgrade(storage)
    assert content(storage) == before


def test_a_directory_whose_old_archive_was_active_a_moment_ago_is_refused(directory: Path) -> None:
    """By the timestamp that archives of that time have written."""
    written_ms = int.from_bytes((directory / MARK_NAME).read_bytes()[8:16], "little")
    clock = ManualClock(epoch_ns=written_ms * 1_000_000)
    with pytest.raises(MarkFileError, match="another archive is running"):
        files.migrate(directory, clock=clock)
    clock.advance(10)
    assert files.migrate(directory, clock=clock) is not None


DAMAGE = {
    "the length of entries": (4, b"\0\2\0\0", "length=512"),
    "a version that is not known": (2, b"\7", "version 7"),
    "a description without its texts": (1024, b"\x55\0\0\0", "damaged entry at offset=1024: a string"),
    "an id twice": (2048 + 48, b"\0", "recording_id=0 follows 0"),
    "a start position off the frames": (1024 + 72, b"\1", "start_position=1"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_catalog_is_refused(directory: Path, damage: str) -> None:
    """By what is wrong, and nothing is changed."""
    offset, data, text = DAMAGE[damage]
    storage = in_memory(directory)
    storage.files["archive.catalog"][offset : offset + len(data)] = data
    before = content(storage)
    with pytest.raises(CatalogError, match=text):
        upgrade(storage)
    assert content(storage) == before


def test_there_is_nothing_to_do_without_an_old_catalog(tmp_path: Path) -> None:
    """A directory of today says so, and one without a catalog is refused."""
    storage = SimulatedStorage()
    with pytest.raises(CatalogError, match="there is no catalog"):
        planned_upgrade(storage)
    start(storage).close()
    assert planned_upgrade(storage) is None
    with pytest.raises(CatalogError, match="there is no catalog"):
        files.migrate(tmp_path)
