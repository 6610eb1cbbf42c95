"""Where a subscription begins to read the publishers that are connected when it is added."""

from __future__ import annotations

from typing import Literal

from headrace._base.checks import wrong

__all__ = ["Start", "is_now"]

Start = Literal["now"]


def is_now(start: Start | None) -> bool:
    """True for a subscription that skips what was published before.

    Raises:
        ConfigError: The value is neither of the two.
    """
    if start not in (None, "now"):
        raise wrong("start", start, 'must be "now", or None for where the driver joins a stream')
    return start is not None
