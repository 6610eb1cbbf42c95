"""The settings of a follow."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from headrace._base.checks import check_callable, check_names, wrong
from headrace.archive.client.following.follow import Follow
from headrace.archive.client.following.machine import Followed, Follower
from headrace.archive.client.following.sources import Address
from headrace.archive.client.session_link import ArchiveLink
from headrace.channel import ChannelUri
from headrace.positions import FRAME_ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from headrace.archive.client.session import ArchiveSession
    from headrace.archive.client.settings import ArchiveClientConfig

__all__ = ["Begin", "FollowSettings", "follow", "live_address", "replay_address"]

Begin = int | Literal["start", "live"]

_REPLAY_STREAM_ID = 1020
_RULE = "is not an argument of follow, see headrace.Archive.follow"


class FollowSettings(TypedDict, total=False):
    """Keyword arguments of :meth:`headrace.Archive.follow`."""

    live_channel: str
    live_stream_id: int
    live_destinations: Sequence[str]
    replay_channel: str
    replay_stream_id: int
    timeout_s: float
    on_live: Callable[[int], object] | None
    on_left_live: Callable[[int], object] | None


@dataclass(frozen=True, slots=True)
class _Settings:
    live_channel: str | None = None
    live_stream_id: int | None = None
    live_destinations: Sequence[str] | None = None
    replay_channel: str | None = None
    replay_stream_id: int | None = None
    timeout_s: float | None = None
    on_live: Callable[[int], object] | None = None
    on_left_live: Callable[[int], object] | None = None


def follow(
    session: ArchiveSession, recording_id: int, begin: Begin, **settings: Unpack[FollowSettings]
) -> Follow:
    """Begin to follow; sends no request yet.

    Raises:
        ConfigError: An argument is unknown or wrong, or there is a live channel without its stream.
    """
    names = [field.name for field in dataclasses.fields(_Settings)]
    check_names(settings, names, _RULE, others=("recording_id", "from_position"))
    chosen = _Settings(**settings)
    if recording_id < 0:
        raise wrong("recording_id", recording_id, "must be at least 0")
    if isinstance(begin, str):
        if begin not in ("start", "live"):
            raise wrong("from_position", begin, 'must be a position, "start" or "live"')
    elif not isinstance(begin, int) or isinstance(begin, bool):
        raise wrong("from_position", begin, 'must be a position, "start" or "live"')
    elif begin < 0 or begin % FRAME_ALIGNMENT:
        raise wrong("from_position", begin, f"must be a multiple of {FRAME_ALIGNMENT} from 0 up")
    check_callable("on_live", chosen.on_live)
    check_callable("on_left_live", chosen.on_left_live)
    follower = Follower(
        session.client,
        ArchiveLink(session.client, session._config),
        Followed(
            recording_id,
            begin,
            live_address(chosen.live_channel, chosen.live_stream_id, chosen.live_destinations),
            replay_address(session._config, chosen.replay_channel, chosen.replay_stream_id),
            _timeout_s(chosen, session._config),
        ),
    )
    follower.on_live, follower.on_left_live = chosen.on_live, chosen.on_left_live
    return Follow(follower)


def live_address(
    channel: str | None, stream_id: int | None, paths: Sequence[str] | None = None
) -> Address | None:
    """Where a program receives publishers; ``None`` for where the recording says.

    Raises:
        ConfigError: One of channel and stream is missing, or destinations that the channel needs, or cannot have.
    """
    if (channel is None) != (stream_id is None):
        rule = "live_channel and live_stream_id go together: give both or neither"
        raise wrong("live_channel", channel, rule)
    is_manual = channel is not None and ChannelUri(channel).get("control-mode") == "manual"
    if is_manual == (not paths) or isinstance(paths, str):
        rule = (
            "must be the channels of the paths, for a live_channel with control-mode=manual and for no other"
        )
        raise wrong("live_destinations", paths, rule)
    if channel is None or stream_id is None:
        return None
    for path in paths or ():
        ChannelUri(path)
    return Address(channel, stream_id, tuple(paths or ()))


def replay_address(config: ArchiveClientConfig, channel: str | None, stream_id: int | None) -> Address:
    """Where the archive replays to.

    Raises:
        ConfigError: The archive cannot send there.
    """
    channel = channel or _default_replay_channel(config)
    config.check_way_back("replay_channel", channel)
    return Address(channel, _REPLAY_STREAM_ID if stream_id is None else stream_id)


def _default_replay_channel(config: ArchiveClientConfig) -> str:
    """The channel by which the archive answers; over a network with a port that the system chooses."""
    responses = ChannelUri(config.response_channel)
    if responses.is_response:
        return config.response_channel
    endpoint = responses.get("endpoint")
    if endpoint is None:
        return "aeron:ipc"
    host, _, _ = endpoint.rpartition(":")
    interface = responses.get("interface")
    return f"aeron:udp?endpoint={host}:0" + (f"|interface={interface}" if interface else "")


def _timeout_s(chosen: _Settings, config: ArchiveClientConfig) -> float:
    if chosen.timeout_s is None:
        return config.message_timeout_s
    if chosen.timeout_s == 0:
        raise wrong("timeout_s", chosen.timeout_s, "must be above 0")
    return chosen.timeout_s
