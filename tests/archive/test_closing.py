"""What a closed archive leaves in its process: nothing that is mapped."""

from __future__ import annotations

import gc
from pathlib import Path

from benches.processes import fresh_directory

import headrace


def mapped(directory: Path) -> list[str]:
    """Files of the directory, but for the event log, which the tests themselves keep open for their reports."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if str(directory) in line and "events.dat" not in line]


def test_a_closed_archive_keeps_no_file_of_its_driver_mapped(tmp_path: Path) -> None:
    directory = fresh_directory("closing")
    with (
        headrace.MediaDriver.embedded(directory=directory) as driver,
        headrace.ArchiveServer(
            archive_directory=tmp_path, driver=driver, control_channel_enabled=False
        ) as server,
    ):
        assert not server.is_closed
        assert mapped(directory)
    del driver, server
    gc.collect()
    assert mapped(directory) == []


def test_a_handler_that_holds_its_client_keeps_nothing_of_it_once_it_is_closed() -> None:
    directory = fresh_directory("closing")
    held: list[object] = []
    with headrace.MediaDriver.embedded(directory=directory) as driver:
        with driver.connect(on_error=held.append, on_available_image=held.append) as client:
            held.append(client)
        del client
    del driver, held
    gc.collect()
    assert mapped(directory) == []
