"""The text of the event that opens a session: our members announce a limit there, Aeron's leave it empty.

``max-message-length=N``: the longest message of a client that the cluster's log takes.
"""

from __future__ import annotations

import re

__all__ = ["announced_length", "announcement"]

_LENGTH = re.compile(r"max-message-length=([0-9]{1,10})")


def announcement(max_message_length: int) -> str:
    """The text."""
    return f"max-message-length={max_message_length}"


def announced_length(detail: str) -> int | None:
    """The length that a text announces; ``None`` for any other text."""
    found = _LENGTH.fullmatch(detail)
    return None if found is None else int(found[1])
