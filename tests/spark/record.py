"""An archive and a publisher that record until they are killed: ``record.py ARCHIVE DRIVER_DIRECTORY``."""

from __future__ import annotations

import sys
import time

import headrace


def main(archive_directory: str, directory: str) -> None:
    driver = headrace.DriverConfig(directory=directory, threading_mode="SHARED")
    settings = {"archive_directory": archive_directory, "segment_file_length": 128 * 1024}
    with (
        headrace.ArchivingMediaDriver(driver, control_channel_enabled=False, **settings) as archiving,
        archiving.connect_archive() as archive,
        archive.add_recorded_publication("aeron:ipc?term-length=64k", 1001) as publication,
    ):
        print("recording", flush=True)
        index = 0
        while True:
            publication.offer_blocking(b"message %d " % index * (1 + index % 150))
            index += 1
            time.sleep(0.005)


main(*sys.argv[1:])
