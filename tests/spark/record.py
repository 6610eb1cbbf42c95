"""An archive and publishers that record until a line comes on stdin: ``record ARCHIVE DRIVER_DIRECTORY NAME``.

In an empty directory it begins recording 0. In one that has recording 0, it goes on with that and begins another.
Prints ``recording POSITION`` when it begins, with the position at which recording 0 goes on, and ``published COUNT``
at the end, when that many messages of each publisher are recorded. A message is ``NAME RECORDING_ID NUMBER`` and a
space, up to 150 times.
"""

from __future__ import annotations

import select
import sys
import time

import headrace
from headrace.archive import RecordingDescriptor, extension_channel
from headrace.channel import ChannelUri
from tests.spark.recordings import CHECKSUM
from tests.spark.sinks import PATIENT_CLIENT, PATIENT_DRIVER

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 1001


def extend(archive: headrace.Archive, recording: RecordingDescriptor) -> headrace.ExclusivePublication:
    channel = extension_channel(CHANNEL, recording)
    publication = archive.client.add_exclusive_publication(channel, STREAM_ID)
    of_it = ChannelUri(CHANNEL).with_parameters(session_id=publication.session_id)
    archive.extend_recording(recording.recording_id, of_it, STREAM_ID)
    return publication


def main(archive_directory: str, directory: str, name: str) -> None:
    driver = headrace.DriverConfig(directory=directory, **PATIENT_DRIVER)
    with (
        headrace.ArchivingMediaDriver(
            driver,
            control_channel_enabled=False,
            archive_directory=archive_directory,
            segment_file_length=128 * 1024,
            mark_file_liveness_timeout_ms=1000,
            record_checksum=CHECKSUM,
        ) as archiving,
        archiving.driver.connect(**PATIENT_CLIENT) as client,
        archiving.connect_archive(client) as archive,
    ):
        first = archive.find_recording(0)
        publications = [] if first is None else [extend(archive, first)]
        publications.append(archive.add_recorded_publication(CHANNEL, STREAM_ID))
        print("recording", publications[0].position, flush=True)
        count = 0
        while not select.select([sys.stdin], [], [], 0.02)[0]:
            for recording_id, publication in enumerate(publications):
                publication.offer_blocking(
                    b"%s %d %d " % (name.encode(), recording_id, count) * (1 + count % 150)
                )
            count += 1
        for recording_id, publication in enumerate(publications):
            while (archive.recording_position(recording_id) or 0) < publication.position:
                time.sleep(0.01)
        print("published", count, flush=True)


main(*sys.argv[1:])
