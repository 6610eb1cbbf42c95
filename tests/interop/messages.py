"""Messages whose every byte follows from a seed and an index; `java/Peer.java` has the same rule."""

import struct
from collections import defaultdict

HEADER = struct.Struct("<qq")
MASK = (1 << 64) - 1


def mix(seed: int, index: int) -> int:
    """64 bits that decide a message's length and bytes."""
    product = (seed * 1_000_003 + index) * 0x9E3779B97F4A7C15 & MASK
    return product ^ (product >> 29)


def message(seed: int, index: int, min_length: int, max_length: int) -> bytes:
    """The message `index` of the publisher `seed`, at least 16 bytes long."""
    bits = mix(seed, index)
    length = min_length + (bits >> 33) % (max_length - min_length + 1)
    return HEADER.pack(index, seed) + _pattern(bits, length)


def _pattern(bits: int, length: int) -> bytes:
    first = (bits + 16) & 0xFF
    cycle = bytes((first + step) & 0xFF for step in range(256))
    count = length - HEADER.size
    return (cycle * (count // 256 + 1))[:count]


class Checker:
    """Takes messages of any number of publishers and insists on each once, whole, in its publisher's order."""

    def __init__(self) -> None:
        """Nothing received yet."""
        self.count = 0
        self._next_index: defaultdict[int, int] = defaultdict(int)

    def __call__(self, payload: bytes, header: object) -> None:
        """Checks one message."""
        index, seed = HEADER.unpack_from(payload)
        expected = self._next_index[seed]
        assert index == expected, f"expected message {expected} of publisher {seed}, got {index}"
        assert payload[HEADER.size :] == _pattern(mix(seed, index), len(payload)), f"message {index} differs"
        self._next_index[seed] = index + 1
        self.count += 1
