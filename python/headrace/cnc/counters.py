"""Counters: one 64-bit value each, with a type, a key and a label, in two parallel arrays.

```text
metadata, 512 bytes a counter            values, 128 bytes a counter
  0  state   4 type   8 reuse deadline     0 value             8 registration id
 16  key, 112 bytes                       16 owner id         24 reference id
128  label length   132 label             32 padding
```

The driver allocates and frees while we read. So the state is read first and again last: a record whose state
or registration changed in between is read anew, and left out if it keeps changing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Protocol

from headrace._base.counter_record import CounterRecord

METADATA_LENGTH = 512
VALUE_LENGTH = 128
KEY_OFFSET = 16
KEY_LENGTH = 112
LABEL_LENGTH_OFFSET = 128
LABEL_OFFSET = 132
LABEL_LENGTH_MAX = 380

RECORD_UNUSED = 0
RECORD_ALLOCATED = 1

_ATTEMPTS = 3
_VALUES = struct.Struct("<qqqq")
_STATE = struct.Struct("<i")
_WORD = struct.Struct("<q")


class Sliceable(Protocol):
    """Bytes that a slice gives: memory, or what reads a file."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> bytes | memoryview: ...


class CountersReader:
    """Reads counters from two runs of bytes, each time anew: memory, or sections of a file."""

    def __init__(self, metadata: Sliceable, values: Sliceable) -> None:
        if len(metadata) * VALUE_LENGTH != len(values) * METADATA_LENGTH:
            raise ValueError(f"metadata length={len(metadata)} values length={len(values)}; must be 4 to 1")
        self._metadata = metadata
        self._values = values

    @property
    def capacity(self) -> int:
        """The greatest number of counters."""
        return len(self._values) // VALUE_LENGTH

    def __iter__(self) -> Iterator[CounterRecord]:
        for counter_id in range(self.capacity):
            state = self.state(counter_id)
            if state == RECORD_UNUSED:
                return
            if state == RECORD_ALLOCATED:
                record = self.record(counter_id)
                if record is not None:
                    yield record

    def state(self, counter_id: int) -> int:
        """Unused, allocated or reclaimed, as the constants of this module have it."""
        base = counter_id * METADATA_LENGTH
        state: int = _STATE.unpack(self._metadata[base : base + _STATE.size])[0]
        return state

    def value(self, counter_id: int) -> int:
        """The value only; meaningful while the counter is allocated."""
        return self._word(counter_id * VALUE_LENGTH)

    def record(self, counter_id: int) -> CounterRecord | None:
        """The counter, or `None` if it is not allocated or changes hands while being read."""
        for _ in range(_ATTEMPTS):
            if self.state(counter_id) != RECORD_ALLOCATED:
                return None
            record = self._copy(counter_id)
            is_same = self._registration_id(counter_id) == record.registration_id
            if is_same and self.state(counter_id) == RECORD_ALLOCATED:
                return record
        return None

    def find(self, type_id: int, registration_id: int) -> CounterRecord | None:
        """The allocated counter of this type and registration, if there is one."""
        for record in self:
            if record.type_id == type_id and record.registration_id == registration_id:
                return record
        return None

    def _registration_id(self, counter_id: int) -> int:
        return self._word(counter_id * VALUE_LENGTH + _WORD.size)

    def _word(self, offset: int) -> int:
        word: int = _WORD.unpack(self._values[offset : offset + _WORD.size])[0]
        return word

    def _copy(self, counter_id: int) -> CounterRecord:
        base = counter_id * METADATA_LENGTH
        raw = bytes(self._metadata[base : base + METADATA_LENGTH])
        (type_id,) = struct.unpack_from("<i", raw, 4)
        (label_length,) = struct.unpack_from("<i", raw, LABEL_LENGTH_OFFSET)
        # A length is another process's word: never follow it out of the record.
        label = raw[LABEL_OFFSET : LABEL_OFFSET + max(0, min(label_length, LABEL_LENGTH_MAX))]
        base = counter_id * VALUE_LENGTH
        value, registration_id, owner_id, reference_id = _VALUES.unpack(
            self._values[base : base + _VALUES.size]
        )
        return CounterRecord(
            counter_id=counter_id,
            type_id=type_id,
            label=label.decode("utf-8", errors="replace"),
            value=value,
            registration_id=registration_id,
            owner_id=owner_id,
            reference_id=reference_id,
            key=raw[KEY_OFFSET : KEY_OFFSET + KEY_LENGTH],
        )
