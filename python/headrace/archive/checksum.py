"""The checksums that frames and catalog entries may carry."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from headrace._exceptions import ConfigError
from headrace.archive.positions import signed_32

__all__ = ["Checksum", "checksum_named"]

Checksum = Callable[[bytes | bytearray | memoryview], int]
"""Gives the checksum of some bytes as a signed 32-bit number, which is how files store it."""

_CASTAGNOLI = 0x82F6_3B78


def crc_32(data: bytes | bytearray | memoryview) -> int:
    """The checksum of IEEE 802.3, as zlib has it."""
    return signed_32(zlib.crc32(data))


def _table(polynomial: int) -> tuple[int, ...]:
    values = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        values.append(value)
    return tuple(values)


_CASTAGNOLI_TABLE = _table(_CASTAGNOLI)


def crc_32c(data: bytes | bytearray | memoryview) -> int:
    """The Castagnoli checksum, byte by byte: for reading others' files. CRC-32 is a hundred times faster here."""
    value, table = 0xFFFF_FFFF, _CASTAGNOLI_TABLE
    for byte in bytes(data):
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return signed_32(value ^ 0xFFFF_FFFF)


_NAMES: dict[str, Checksum] = {
    "CRC-32": crc_32,
    "io.aeron.archive.checksum.Crc32": crc_32,
    "org.agrona.checksum.Crc32": crc_32,
    "CRC-32C": crc_32c,
    "io.aeron.archive.checksum.Crc32c": crc_32c,
    "org.agrona.checksum.Crc32c": crc_32c,
}


def checksum_named(name: str | None, setting: str = "checksum") -> Checksum | None:
    """The checksum of a name in the specification; ``None`` for none.

    Raises:
        ConfigError: Nobody knows the name.
    """
    if not name:
        return None
    if name not in _NAMES:
        rule = "must be one of " + ", ".join(sorted(_NAMES))
        raise ConfigError(f"{setting}={name}: {rule}", setting, name, rule)
    return _NAMES[name]
