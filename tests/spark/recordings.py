"""Recordings written straight into an archive's files, so that no archive is needed to test reading them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from headrace._agent.storage import DirectoryStorage
from headrace.archive.files.catalog import Catalog
from headrace.archive.files.checksum import Checksum
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.positions import HEADER_LENGTH, align

TERM_LENGTH = 64 * 1024
SEGMENT_LENGTH = 128 * 1024
MTU = 1408
MAX_PAYLOAD = MTU - HEADER_LENGTH
INITIAL_TERM_ID = 11
CHECKSUM = "CRC-32C"
_HEADER = struct.Struct("<iBBHiiiiq")
Message = tuple[bytes, int]
"""Payload and reserved value."""


class RecordingFiles:
    """One recording, which can grow."""

    def __init__(
        self,
        directory: Path,
        *,
        stream_id: int = 1001,
        session_id: int = 77,
        channel: str = "aeron:ipc",
        start_position: int = 0,
        start_timestamp: int = 1_700_000_000_000,
    ) -> None:
        self._storage = DirectoryStorage(directory)
        self.stream_id = stream_id
        self.session_id = session_id
        descriptor = RecordingDescriptor(
            control_session_id=0,
            correlation_id=0,
            recording_id=0,
            start_timestamp=start_timestamp,
            stop_timestamp=-1,
            start_position=start_position,
            stop_position=-1,
            initial_term_id=INITIAL_TERM_ID,
            segment_file_length=SEGMENT_LENGTH,
            term_buffer_length=TERM_LENGTH,
            mtu_length=MTU,
            session_id=session_id,
            stream_id=stream_id,
            stripped_channel=channel,
            original_channel=channel,
            source_identity="aeron:ipc",
        )
        catalog = Catalog(self._storage)
        self.recording_id = catalog.add(descriptor)
        catalog.close()
        geometry = descriptor.replace(recording_id=self.recording_id).geometry
        self._writer = SegmentWriter(self._storage, self.recording_id, geometry, start_position)
        self._writer.open()

    @property
    def position(self) -> int:
        """Where the recording ends."""
        return self._writer.position

    def append(self, messages: Iterable[Message]) -> list[int]:
        """Record messages; gives the position after each."""
        positions = []
        for payload, reserved_value in messages:
            for frame, span in self._frames(payload, reserved_value):
                self._writer.write(frame, span)
            positions.append(self.position)
        return positions

    def append_fragment(self, payload: bytes, flags: int) -> int:
        """Record one fragment, be it of a whole message or not; gives the position after it."""
        span = align(HEADER_LENGTH + len(payload), 32)
        frame = self._header(HEADER_LENGTH + len(payload), flags, 1, 0) + payload
        self._writer.write(frame.ljust(span, b"\0"), span)
        return self.position

    def append_gap(self, length: int) -> int:
        """Record padding, as it is put where something was lost; gives the position after it."""
        self._writer.write(self._header(length, 0xC0, 0, 0), length)
        return self.position

    def _frames(self, payload: bytes, reserved_value: int) -> Iterator[tuple[bytes, int]]:
        parts = [payload[at : at + MAX_PAYLOAD] for at in range(0, len(payload), MAX_PAYLOAD)] or [b""]
        room = TERM_LENGTH - self.position % TERM_LENGTH
        if sum(align(HEADER_LENGTH + len(part), 32) for part in parts) > room:
            yield self._header(room, 0xC0, 0, 0), room
        for index, part in enumerate(parts):
            flags = (0x80 if index == 0 else 0) | (0x40 if index + 1 == len(parts) else 0)
            span = align(HEADER_LENGTH + len(part), 32)
            header = self._header(HEADER_LENGTH + len(part), flags, 1, reserved_value)
            yield (header + part).ljust(span, b"\0"), span

    def _header(self, length: int, flags: int, kind: int, reserved_value: int) -> bytes:
        offset, term = self.position % TERM_LENGTH, INITIAL_TERM_ID + self.position // TERM_LENGTH
        return _HEADER.pack(
            length, 0, flags, kind, offset, self.session_id, self.stream_id, term, reserved_value
        )

    def put_checksums(self, checksum: Checksum) -> None:
        """Make it a recording of an archive with a record checksum, for recordings from position 0."""
        for path in self._storage.directory.glob(f"{self.recording_id}-*.rec"):
            path.write_bytes(checksum.put(path.read_bytes()))

    def stop(self, stop_timestamp: int = 1_700_000_060_000) -> None:
        """Note in the catalog where the recording ends."""
        self._writer.close()
        catalog = Catalog(self._storage)
        catalog.stopped(self.recording_id, self.position, stop_timestamp)
        catalog.close()
