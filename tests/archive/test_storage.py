"""The archive's directory: what its files are, and what a refusal of the system tells."""

import re
from pathlib import Path

import pytest

from headrace._agent.storage import DirectoryStorage
from headrace.archive.files.catalog import CATALOG_NAME, Catalog
from headrace.archive.files.pending_operations import delete_all, purged_files
from headrace.testing import SimulatedStorage


def test_a_purge_takes_what_a_kill_left_of_a_copy() -> None:
    """The start after the kill may have kept nothing aside under that name."""
    storage = SimulatedStorage()
    for name in ("0-0.rec", "0-1280.cut", "0-1280.cut.part", "1-1280.cut.part"):
        storage.create(name, 5)
    assert set(purged_files(storage, [0])) == {"0-0.rec", "0-1280.cut", "0-1280.cut.part"}
    delete_all(storage)
    assert storage.names() == []


def test_a_refusal_of_an_open_file_tells_its_name(tmp_path: Path) -> None:
    """The system says only what it refuses."""
    storage = DirectoryStorage(tmp_path)
    storage.create("0-0.rec", 64).close()
    file = storage.open("0-0.rec", read_only=True)
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "0-0.rec"))):
        file.write(0, b"x")
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "0-0.rec"))):
        file.set_length(128)
    file.close()
    (tmp_path / CATALOG_NAME).mkdir()
    with pytest.raises(IsADirectoryError, match=re.escape(str(tmp_path / CATALOG_NAME))):
        Catalog(storage)


def test_a_link_that_leads_to_itself_is_no_file(tmp_path: Path) -> None:
    """It would keep the archive from starting, whatever its name."""
    storage = DirectoryStorage(tmp_path)
    storage.create("0-0.rec", 64).close()
    (tmp_path / "0-65536.rec").symlink_to("0-65536.rec")
    assert storage.names() == ["0-0.rec"]
