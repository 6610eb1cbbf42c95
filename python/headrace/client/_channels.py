"""What looks wrong in a channel, told before the driver is asked: the driver takes most of it without effect.

The driver tells the same in its error log. Here the program's own log tells it, beside the line that is to be mended.
"""

from __future__ import annotations

import logging
from typing import Literal

from headrace import _core
from headrace._checks import excerpt
from headrace._logging import CLIENT

__all__ = ["check_channel"]

Role = Literal["publication", "subscription", "send destination", "receive destination"]


def check_channel(channel: str, role: Role) -> None:
    """Log a warning for each parameter of a channel that has no effect, or not the one that its text suggests."""
    if not CLIENT.isEnabledFor(logging.WARNING):
        return
    for doubt in _core.channel_doubts(channel, role):
        CLIENT.warning("headrace client: %s, channel=%s", doubt, excerpt(channel))
