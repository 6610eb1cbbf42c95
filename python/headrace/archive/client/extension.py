"""The channel with which a publisher continues a stopped recording."""

from __future__ import annotations

from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.channel import ChannelUri

__all__ = ["extension_channel"]


def extension_channel(channel: str, descriptor: RecordingDescriptor) -> str:
    """The channel for a publication that continues where a recording stopped."""
    geometry, position = descriptor.geometry, descriptor.stop_position
    return ChannelUri(channel).with_parameters(
        mtu=descriptor.mtu_length,
        term_length=descriptor.term_buffer_length,
        init_term_id=descriptor.initial_term_id,
        term_id=geometry.term_id(position),
        term_offset=geometry.term_offset(position),
    )
