"""The channels of requests and of their answers, from the one channel that both sides name."""

from __future__ import annotations

__all__ = ["answers_channel", "with_params"]


def with_params(channel: str, *params: str) -> str:
    """A channel with further parameters."""
    return f"{channel}{'|' if '?' in channel else '?'}{'|'.join(params)}"


def answers_channel(channel: str) -> str:
    """Where the answers to a channel's requests go, with terms as long as those of the requests."""
    media, _, params = channel.partition("?")
    kept = [param for param in params.split("|") if param.startswith("term-length=")]
    return with_params(media, "control-mode=response", *kept)
