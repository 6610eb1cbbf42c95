"""Frames as a log holds them, and descriptions of recordings, for tests of files."""

import struct

from headrace.archive import RecordingDescriptor

TERM_LENGTH = 64 * 1024
INITIAL_TERM_ID = 2_147_483_646  # wraps in the third term
STREAM_ID = 1001
SESSION_ID = -77


def descriptor(**changes: object) -> RecordingDescriptor:
    """A recording of 64 KiB terms in segments of two of them."""
    values = {
        "control_session_id": 0,
        "correlation_id": 0,
        "recording_id": 0,
        "start_timestamp": 1_700_000_000_000,
        "stop_timestamp": -1,
        "start_position": 0,
        "stop_position": -1,
        "initial_term_id": INITIAL_TERM_ID,
        "segment_file_length": 2 * TERM_LENGTH,
        "term_buffer_length": TERM_LENGTH,
        "mtu_length": 1408,
        "session_id": SESSION_ID,
        "stream_id": STREAM_ID,
        "stripped_channel": "aeron:ipc",
        "original_channel": "aeron:ipc?alias=test",
        "source_identity": "aeron:ipc",
    }
    return RecordingDescriptor(**(values | changes))  # type: ignore[arg-type]


def frame(position: int, payload: bytes, *, kind: int = 1, length: int | None = None) -> bytes:
    """One frame at a position, padded to 32 bytes; of padding, the header alone."""
    geometry = descriptor().geometry
    header = struct.pack(
        "<iBBHiiiiq",
        32 + len(payload) if length is None else length,
        0,
        0xC0,
        kind,
        geometry.term_offset(position),
        SESSION_ID,
        STREAM_ID,
        geometry.term_id(position),
        position,
    )
    data = header + payload
    return data + bytes(-len(data) % 32)


def frames(position: int, count: int, payload_length: int) -> bytes:
    """So many frames of one length from a position on."""
    data = b""
    for index in range(count):
        data += frame(position + len(data), bytes([index % 251 + 1]) * payload_length)
    return data
