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

Files, protocol and counters are those of Aeron's archive, so either side may be Aeron's.
"""

from __future__ import annotations

from headrace._agent.storage import DirectoryStorage, Storage, StorageFile
from headrace._base.exceptions import ArchiveError, ArchiveTimeoutError, AuthenticationError
from headrace._base.names import publish as _publish
from headrace.archive.archiving_driver import ArchivingMediaDriver
from headrace.archive.client.archive import Archive
from headrace.archive.client.consumer import Consumer, ConsumerState, Record
from headrace.archive.client.durable import DurablePublication
from headrace.archive.client.extension import extension_channel
from headrace.archive.client.following.follow import Follow
from headrace.archive.client.following.states import FollowState
from headrace.archive.client.following.stream_follow import StreamFollow
from headrace.archive.client.named_streams import Group
from headrace.archive.client.reconnecting import ReconnectingArchive
from headrace.archive.client.replay import Replay
from headrace.archive.client.replication import Replication
from headrace.archive.client.settings import ArchiveClientConfig
from headrace.archive.client.signals import Signal
from headrace.archive.client.stream_data import StreamData
from headrace.archive.client.stream_publication import StreamPublication
from headrace.archive.client.table import Table
from headrace.archive.envelope import Envelope, EnvelopeError
from headrace.archive.errors import ArchiveFileError, CatalogError, MarkFileError, SegmentError
from headrace.archive.files.catalog import Catalog, CatalogEntry
from headrace.archive.protocol.codes import ErrorCode, RecordingSignal, SourceLocation
from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.archive.protocol.named_stream import NamedStream, StreamAddress
from headrace.archive.protocol.place import Place
from headrace.archive.protocol.retention import Retention
from headrace.archive.server.archive_server import ArchiveServer
from headrace.archive.server.config import ArchiveConfig

__all__ = [
    "Archive",
    "ArchiveClientConfig",
    "ArchiveConfig",
    "ArchiveError",
    "ArchiveFileError",
    "ArchiveServer",
    "ArchiveTimeoutError",
    "ArchivingMediaDriver",
    "AuthenticationError",
    "Catalog",
    "CatalogEntry",
    "CatalogError",
    "Consumer",
    "ConsumerState",
    "DirectoryStorage",
    "DurablePublication",
    "Envelope",
    "EnvelopeError",
    "ErrorCode",
    "Follow",
    "FollowState",
    "Group",
    "MarkFileError",
    "NamedStream",
    "Place",
    "ReconnectingArchive",
    "Record",
    "RecordingDescriptor",
    "RecordingSignal",
    "Replay",
    "Replication",
    "Retention",
    "SegmentError",
    "Signal",
    "SourceLocation",
    "Storage",
    "StorageFile",
    "StreamAddress",
    "StreamData",
    "StreamFollow",
    "StreamPublication",
    "Table",
    "extension_channel",
]

_publish(__name__, globals(), __all__, source="headrace._agent")
