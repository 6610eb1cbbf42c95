"""The envelope of messages that have a key, a number or headers: bytes before the payload, for whoever wants them.

0  u8  version, 1           8   i64 number of the message, -1 for none
1  u8  count of headers     16  key, then each header: u16 + name in UTF-8, u32 + value; then the payload
2  u16 length of the key
4  u32 zero

All numbers are little-endian. A program in another language needs no more than this.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace._base.checks import wrong
from headrace._base.exceptions import HeadraceError

__all__ = ["Envelope", "EnvelopeError"]

_HEAD = struct.Struct("<BBHIq")
_NAME, _VALUE = struct.Struct("<H"), struct.Struct("<I")
_VERSION = 1
_SHORT_MAX = (1 << 16) - 1
_HEADERS_MAX = 255


class EnvelopeError(HeadraceError):
    """Bytes that are no message with an envelope; the text says why."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message with its envelope.

    Attributes:
        payload: The message itself.
        key: By which members of a group share messages, and of which a table keeps the latest; may be empty.
        number: Counts the messages of a publisher, so that a reader sees what is missing or double; -1 for none.
        headers: Names and values.
    """

    payload: bytes
    key: bytes = b""
    number: int = -1
    headers: Mapping[str, bytes] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The bytes to publish.

        Raises:
            ConfigError: The key, a header's name, or the count of headers is above what the envelope holds.
        """
        if len(self.key) > _SHORT_MAX:
            raise wrong("key", f"{len(self.key)} bytes", f"must have at most {_SHORT_MAX}")
        if len(self.headers) > _HEADERS_MAX:
            raise wrong("headers", f"{len(self.headers)} of them", f"must be at most {_HEADERS_MAX}")
        parts = [_HEAD.pack(_VERSION, len(self.headers), len(self.key), 0, self.number), self.key]
        for name, value in self.headers.items():
            encoded = name.encode()
            if len(encoded) > _SHORT_MAX:
                raise wrong("headers", f"a name of {len(encoded)} bytes", f"must have at most {_SHORT_MAX}")
            parts += _NAME.pack(len(encoded)), encoded, _VALUE.pack(len(value)), value
        parts.append(self.payload)
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> Envelope:
        """The message in some bytes.

        Raises:
            EnvelopeError: They do not begin with an envelope.
        """
        if len(data) < _HEAD.size:
            raise EnvelopeError(f"length={len(data)} is below the {_HEAD.size} bytes of an envelope")
        version, count, key_length, zero, number = _HEAD.unpack_from(data)
        if version != _VERSION or zero:
            raise EnvelopeError(f"version={version} of an envelope, and this program reads {_VERSION}")
        end = _HEAD.size + key_length
        key, headers = data[_HEAD.size : end], {}
        try:
            for _ in range(count):
                name, end = _taken(data, end, _NAME)
                value, end = _taken(data, end, _VALUE)
                headers[name.decode()] = value
        except (struct.error, UnicodeDecodeError):
            raise EnvelopeError(f"{count} headers do not fit into length={len(data)}") from None
        if end > len(data):
            raise EnvelopeError(f"key and headers of {end} bytes do not fit into length={len(data)}")
        return cls(data[end:], key, number, headers)


def _taken(data: bytes, offset: int, length: struct.Struct) -> tuple[bytes, int]:
    begin = offset + length.size
    end = begin + length.unpack_from(data, offset)[0]
    return data[begin:end], end
