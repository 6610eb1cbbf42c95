"""What the demo puts before each record, so that a subscriber can prove what it received.

```text
  0          8              12
  | sequence | crc32 of rest | record
```
"""

from __future__ import annotations

import struct
import zlib

HEADER = struct.Struct("<QI")


class DeliveryError(Exception):
    """A message was lost, repeated, out of order, or not what was sent."""


class Verifier:
    """Accepts messages that carry the next sequence number and the right checksum, and nothing else."""

    def __init__(self) -> None:
        self.count = 0
        self.byte_count = 0

    def accept(self, message: bytes) -> None:
        """Take the next message.

        Raises:
            DeliveryError: it is not the next one, or it is damaged.
        """
        sequence, checksum = HEADER.unpack_from(message)
        if sequence != self.count:
            raise DeliveryError(f"message {sequence} arrived where {self.count} was expected")
        if zlib.crc32(message[HEADER.size :]) != checksum:
            raise DeliveryError(f"message {sequence} of {len(message)} bytes does not match its checksum")
        self.count += 1
        self.byte_count += len(message)
