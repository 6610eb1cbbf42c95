"""Parameters of a recording's channel that limit its losses in a power failure, whatever the archive's setting is.

For a cluster, which must start by itself: its snapshots count only once they are on the disk, and its log may lose its
end, but must have no gap. Aeron's archive ignores the parameters.
"""

from __future__ import annotations

from headrace._base.exceptions import ConfigError
from headrace.channel import ChannelUri

__all__ = ["forced", "has_sound_end", "least_sync_level", "with_sound_end"]

_LEVEL, _END = "file-sync-level", "sound-end"
_LEVELS = {"1": 1, "2": 2}
_DATA = 1


def forced(channel: str) -> str:
    """The channel of a recording of which a position counts as recorded only once it is on the disk."""
    return ChannelUri(channel).with_parameters(**{_LEVEL: _DATA})


def least_sync_level(channel: str) -> int:
    """The sync level that the channel of a request to record asks for; 0 without one."""
    return _LEVELS.get(_parameter(channel, _LEVEL), 0)


def with_sound_end(channel: str) -> str:
    """The channel of a recording that is on the disk once it has ended, and ends before the first gap after a crash.

    If the archive forces nothing to the disk, a power failure leaves gaps. For other recordings a person must decide
    what to do with the data after a gap.
    """
    return ChannelUri(channel).with_parameters(**{_END: "true"})


def has_sound_end(channel: str) -> bool:
    """Whether the channel of a recording asks for that."""
    return _parameter(channel, _END) == "true"


def _parameter(channel: str, name: str) -> str:
    try:
        return ChannelUri(channel).get(name) or ""
    except ConfigError:
        # Of a damaged entry of the catalog.
        return ""
