"""What every codec is, and what it gives."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Codec", "Decoded", "Unreadable"]

Decoded = tuple[dict[str, pa.Array], npt.NDArray[np.intp] | None]
"""Columns by name, and which of the payloads they are of; ``None`` for all of them."""


class Unreadable(Exception):
    """At least one of some payloads is not what it should be; the text says why, if there was just one."""


class Codec(Protocol):
    """Makes columns of payloads."""

    def types(self) -> dict[str, str]:
        """Names of the columns and their Spark types."""

    def decode(self, payloads: pa.BinaryArray, wanted: pa.Schema) -> Decoded:
        """The wanted columns of payloads.

        Raises:
            Unreadable: There are payloads of which no columns can be made.
        """
