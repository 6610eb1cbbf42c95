"""Reads the files of an archive without one: recordings, their segments and frames, and damage to them.

::

    from headrace.archive.files import ArchiveDirectory

    with ArchiveDirectory("recordings") as archive:
        for recording in archive.recordings():
            print(recording.recording_id, recording.stripped_channel, archive.end(recording.recording_id))

The directory may belong to a running archive or to one that died, be a copy, and be of Aeron's archive as well.
"""

from __future__ import annotations

from headrace._base.names import publish as _publish
from headrace.archive.files.catalog import CatalogEntry
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.directory import ArchiveDirectory, RecordedFrame, Segment, repair
from headrace.archive.files.frames import Frame
from headrace.archive.files.maintenance import Deletion
from headrace.archive.files.mark_file import MarkFields
from headrace.archive.files.older_layouts import Upgrade
from headrace.archive.files.retention_holds import Hold, check_hold_name, hold, holds, release
from headrace.archive.files.segment_rules import check_new_start
from headrace.archive.files.upkeep import (
    compact,
    delete_orphaned_segments,
    grow_catalog,
    mark_invalid,
    mark_valid,
    migrate,
    write_checksums,
)
from headrace.archive.files.verify import VerifyResult

__all__ = [
    "ArchiveDirectory",
    "CatalogEntry",
    "Deletion",
    "Frame",
    "Hold",
    "MarkFields",
    "RecordedFrame",
    "Segment",
    "Upgrade",
    "VerifyResult",
    "check_hold_name",
    "check_new_start",
    "checksum_named",
    "compact",
    "delete_orphaned_segments",
    "grow_catalog",
    "hold",
    "holds",
    "mark_invalid",
    "mark_valid",
    "migrate",
    "release",
    "repair",
    "write_checksums",
]

_publish(__name__, globals(), __all__, source="headrace._agent")
