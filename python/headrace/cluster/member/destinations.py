"""Addresses of other members, as destinations of a stream. Cluster specification 1.2."""

from __future__ import annotations

from headrace.channel import ChannelUri

__all__ = ["destination"]


def destination(template: str, endpoint: str) -> str:
    """An endpoint as a destination, which has of a channel its medium and its interface alone."""
    uri = ChannelUri(template)
    interface = uri.get("interface")
    return f"aeron:{uri.media}?endpoint={endpoint}" + (f"|interface={interface}" if interface else "")
