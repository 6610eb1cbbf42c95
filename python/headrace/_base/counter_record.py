"""What is known of one counter, whether a client or a tool read it."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CounterRecord"]


@dataclass(frozen=True, slots=True)
class CounterRecord:
    """One counter as it was at one moment."""

    counter_id: int
    type_id: int
    label: str
    value: int
    registration_id: int
    owner_id: int
    reference_id: int
    # 112 bytes, most of them 0.
    key: bytes = field(repr=False)
