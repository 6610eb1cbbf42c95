"""The archive: streams recorded into files, found again and replayed.

::

    import headrace

    with headrace.ArchivingMediaDriver.embedded(archive_directory="recordings") as archiving:
        with archiving.connect_archive() as archive:
            with archive.add_recorded_publication("aeron:ipc", 1001) as publication:
                publication.offer_blocking(b"hello")
            recording = archive.list_recordings()[-1]
            with archive.replay(recording.recording_id) as replay:
                for message in replay:
                    print(message.payload)

Files, protocol and counters are those of Aeron's archive, so either side may be theirs.
"""

from __future__ import annotations

from headrace._exceptions import ArchiveError, ArchiveTimeoutError
from headrace._names import publish as _publish
from headrace.archive._config import ArchiveConfig
from headrace.archive.archiving_driver import ArchivingMediaDriver
from headrace.archive.catalog import Catalog, CatalogEntry
from headrace.archive.client import Archive, extension_channel
from headrace.archive.context import RecordingSignal, SourceLocation
from headrace.archive.descriptor import RecordingDescriptor
from headrace.archive.errors import ArchiveFileError, CatalogError, ErrorCode, MarkFileError, SegmentError
from headrace.archive.replay import Replay
from headrace.archive.server import ArchiveServer
from headrace.archive.session import Signal
from headrace.archive.storage import DirectoryStorage, Storage, StorageFile

__all__ = [
    "Archive",
    "ArchiveConfig",
    "ArchiveError",
    "ArchiveFileError",
    "ArchiveServer",
    "ArchiveTimeoutError",
    "ArchivingMediaDriver",
    "Catalog",
    "CatalogEntry",
    "CatalogError",
    "DirectoryStorage",
    "ErrorCode",
    "MarkFileError",
    "RecordingDescriptor",
    "RecordingSignal",
    "Replay",
    "SegmentError",
    "Signal",
    "SourceLocation",
    "Storage",
    "StorageFile",
    "extension_channel",
]

_publish(__name__, globals(), __all__)
