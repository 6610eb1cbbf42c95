"""Numbers of the protocol that print by name."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["NamedNumber"]


class NamedNumber(IntEnum):
    """An ``IntEnum`` that ``print`` and f-strings show by name; the number alone would tell a reader nothing."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, format_spec: str) -> str:
        return format(int(self) if format_spec.endswith("d") else str(self), format_spec)
