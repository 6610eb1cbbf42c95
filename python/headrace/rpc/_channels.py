"""The channels of requests and of their answers, from the one channel that both sides name."""

from __future__ import annotations

from headrace._checks import wrong

__all__ = ["answers_channel", "answers_stream", "check_channel", "with_params"]

_MEDIA = "aeron:ipc"
_STREAM_ID_MAX = (1 << 31) - 1


def check_channel(channel: str) -> None:
    """Refuses a channel that has no answers: a server would wait on it without ever being asked.

    Raises:
        ConfigError: It is not a channel of IPC.
    """
    if channel.partition("?")[0] != _MEDIA:
        raise wrong(
            "channel",
            channel,
            f"must be {_MEDIA}: server and requester are on one machine",
        )


def answers_stream(stream_id: int, answers_stream_id: int | None) -> int:
    """The stream of answers: the one after that of the requests, unless the program names one.

    Raises:
        ConfigError: No stream comes after that of the requests.
    """
    if answers_stream_id is not None:
        return answers_stream_id
    if stream_id == _STREAM_ID_MAX:
        raise wrong(
            "stream_id", stream_id, "must have a stream after it for the answers; or give answers_stream_id"
        )
    return stream_id + 1


def with_params(channel: str, *params: str) -> str:
    """A channel with further parameters."""
    return f"{channel}{'|' if '?' in channel else '?'}{'|'.join(params)}"


def answers_channel(channel: str) -> str:
    """Where the answers to a channel's requests go, with terms as long as those of the requests."""
    media, _, params = channel.partition("?")
    kept = [param for param in params.split("|") if param.startswith("term-length=")]
    return with_params(media, "control-mode=response", *kept)
