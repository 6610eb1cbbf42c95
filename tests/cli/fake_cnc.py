"""Writes the files that readers read, field by field from the format, so that readers meet known contents."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

RING = 1024 + 768
BROADCAST = 1024 + 128
VALUES = 128 * 64
METADATA = 4 * VALUES
ERRORS = 4096


@dataclass
class FakeCnc:
    """A command and control file under construction; `write` puts it on disk."""

    version: int = 0x0200
    pid: int = 4242
    heartbeat_ms: int = 1_700_000_000_000
    lengths: list[int] = field(default_factory=lambda: [RING, BROADCAST, METADATA, VALUES, ERRORS])
    page_size: int = 4096
    metadata: bytearray = field(default_factory=lambda: bytearray(METADATA))
    values: bytearray = field(default_factory=lambda: bytearray(VALUES))
    errors: bytearray = field(default_factory=lambda: bytearray(ERRORS))
    _error_offset: int = 0

    def counter(
        self,
        counter_id: int,
        type_id: int,
        label: str,
        value: int,
        *,
        key: bytes = b"",
        registration_id: int = 0,
        owner_id: int = -1,
        reference_id: int = 0,
        state: int = 1,
    ) -> None:
        base = counter_id * 512
        struct.pack_into("<iiq", self.metadata, base, state, type_id, 2**63 - 1)
        self.metadata[base + 16 : base + 16 + len(key)] = key
        text = label.encode()
        struct.pack_into("<i", self.metadata, base + 128, len(text))
        self.metadata[base + 132 : base + 132 + len(text)] = text
        struct.pack_into(
            "<qqqq", self.values, counter_id * 128, value, registration_id, owner_id, reference_id
        )

    def stream_counter(
        self,
        counter_id: int,
        type_id: int,
        name: str,
        value: int,
        *,
        registration_id: int,
        session_id: int,
        stream_id: int,
        channel: str,
        suffix: str = "",
    ) -> None:
        stored = channel.encode()[:92]
        key = struct.pack("<qiii", registration_id, session_id, stream_id, len(stored)) + stored
        label = f"{name}: {registration_id} {session_id} {stream_id} {channel}{suffix}"
        self.counter(counter_id, type_id, label, value, key=key, registration_id=registration_id)

    def error(self, count: int, first_ms: int, last_ms: int, text: str) -> None:
        body = text.encode()
        length = 24 + len(body)
        struct.pack_into("<iiqq", self.errors, self._error_offset, length, count, last_ms, first_ms)
        self.errors[self._error_offset + 24 : self._error_offset + length] = body
        self._error_offset += -(-length // 8) * 8

    def to_bytes(self) -> bytes:
        header = struct.pack(
            "<iiiiiiqqqi", self.version, *self.lengths, 10**10, 1_690_000_000_000, self.pid, self.page_size
        )
        ring = bytearray(RING)
        struct.pack_into("<q", ring, 1024 + 640, self.heartbeat_ms)
        whole = header.ljust(128, b"\0") + ring + bytes(BROADCAST) + self.metadata + self.values + self.errors
        return bytes(whole) + bytes(-len(whole) % 4096)

    def write(self, directory: Path) -> Path:
        path = directory / "cnc.dat"
        path.write_bytes(self.to_bytes())
        return path


def loss_entry(
    count: int,
    total: int,
    first_ms: int,
    last_ms: int,
    session_id: int,
    stream_id: int,
    channel: str,
    source: str,
) -> bytes:
    """One loss report entry, padded to its alignment."""
    text = channel.encode()
    entry = struct.pack("<qqqqiii", count, total, first_ms, last_ms, session_id, stream_id, len(text)) + text
    entry += bytes(-len(entry) % 4)
    entry += struct.pack("<i", len(source)) + source.encode()
    return entry + bytes(-len(entry) % 64)


def a_busy_driver() -> FakeCnc:
    """A driver with one UDP stream of two readers, a client, and an error."""
    cnc = FakeCnc()
    cnc.counter(0, 0, "Bytes sent", 5_000_000, key=struct.pack("<i", 0))
    cnc.counter(1, 0, "Errors: version=1.53.0 commit=abc", 2, key=struct.pack("<i", 15))
    channel = "aeron:udp?endpoint=localhost:20121"
    stream = {"session_id": -7, "stream_id": 1001, "channel": channel}
    cnc.stream_counter(2, 12, "pub-pos (exclusive)", 9_000, registration_id=31, **stream)
    cnc.stream_counter(3, 1, "pub-lmt", 73_000, registration_id=31, **stream)
    cnc.stream_counter(4, 2, "snd-pos", 8_960, registration_id=31, **stream)
    cnc.stream_counter(5, 9, "snd-lmt", 65_536, registration_id=31, **stream)
    cnc.stream_counter(6, 3, "rcv-hwm", 8_960, registration_id=33, **stream)
    cnc.stream_counter(7, 5, "rcv-pos", 8_000, registration_id=33, **stream)
    cnc.stream_counter(8, 4, "sub-pos", 7_936, registration_id=32, suffix=" @0", **stream)
    cnc.counter(9, 3, "gone", 1, state=-1)
    cnc.stream_counter(10, 4, "sub-pos", 64, registration_id=40, suffix=" @64", **stream)
    text = channel.encode()
    cnc.counter(11, 6, f"snd-channel: {channel} 127.0.0.1:4000", 1, key=struct.pack("<i", len(text)) + text)
    cnc.counter(12, 11, "client-heartbeat: id=30 name=tester", 1_700_000_000_000, key=struct.pack("<q", 30))
    cnc.error(3, 1_699_000_000_000, 1_699_000_100_000, "(-1) io.aeron.Something: it broke\n  at here")
    return cnc
