"""Streams as one driver sees them: the position of each part, how much window is left, and which reader lags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address

from headrace._base.counter_record import CounterRecord
from headrace.tools import counter_types as types


@dataclass(frozen=True, slots=True)
class Reader:
    """A subscription on a stream and how far it has read."""

    registration_id: int
    position: int
    client_id: int | None
    """The client whose subscription it is; `None` under a driver that does not tell."""
    is_spy: bool
    """It reads the log of the publication itself."""
    is_tethered: bool
    """The publisher waits for it. For one with ``tether=false`` that falls behind it does not.

    The reader then loses its image, keeps its last position here, and joins again later.
    """


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Who keeps a stream from going on, and since when; the driver looks once a timer interval, a second by default."""

    by: str
    """A subscription with its client's id, a receiver with its address, or the sender."""
    since_ms: int

    @property
    def client_id(self) -> int | None:
        """The client whose subscription it is."""
        _, is_client, client_id = self.by.rpartition(" of client ")
        return int(client_id) if is_client and client_id.lstrip("-").isdigit() else None


@dataclass(frozen=True, slots=True)
class Drops:
    """What a receiver drops since it lies outside of its window; the driver looks once a timer interval."""

    source: str
    """The address that it comes from."""
    place: str
    """Where it lies: ahead of the slowest reader, or before what was read."""
    since_ms: int


@dataclass(frozen=True, slots=True)
class Unrepaired:
    """A receiver asks for the same bytes again and again, and they do not arrive, while heartbeats do.

    The datagrams may be longer than the path takes. The driver looks once a timer interval.
    """

    mtu: int
    """The longest datagram of the stream, in bytes."""
    since_ms: int


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a sender sends to besides others."""

    address: str | None
    """`None` while the name has none."""
    name: str | None
    """``host:port`` as the client wrote it; `None` where that is the address, or for a receiver that reports."""

    def __str__(self) -> str:
        if self.name is None:
            return self.address or ""
        return f"{self.name} ({self.address or 'no address'})"


class PathKind(StrEnum):
    """How a path brings streams."""

    UDP = "udp"
    MULTICAST = "multicast"
    IPC = "ipc"
    SPY = "spy"


@dataclass(frozen=True, slots=True)
class ReceivePath:
    """A destination of a subscription with ``control-mode=manual``."""

    channel: str
    """As the client wrote it."""
    address: str | None
    """Where its socket is bound; `None` for what is published on the driver's host."""
    is_live: bool
    """Something arrived in the last 5 s, or, on the driver's host, a publication of the stream is there."""

    @property
    def kind(self) -> PathKind:
        """By the channel alone: a group that is given by name counts as `PathKind.UDP`."""
        if self.channel.startswith("aeron-spy:"):
            return PathKind.SPY
        if self.channel.startswith("aeron:ipc"):
            return PathKind.IPC
        endpoint = re.search(r"[?|]endpoint=\[?([^|\]]*?)\]?:\d+(?:\||$)", self.channel)
        try:
            is_group = endpoint is not None and ip_address(endpoint[1]).is_multicast
        except ValueError:
            is_group = False
        return PathKind.MULTICAST if is_group else PathKind.UDP

    @property
    def state(self) -> str:
        """``live`` or ``silent``."""
        return "live" if self.is_live else "silent"


@dataclass(slots=True)
class StreamState:
    """One stream. Positions are bytes from its beginning; `None` where this driver has no such party."""

    session_id: int
    stream_id: int
    channel: str
    publisher_position: int | None = None
    publisher_limit: int | None = None
    sender_position: int | None = None
    sender_limit: int | None = None
    receiver_position: int | None = None
    receiver_high_water_mark: int | None = None
    back_pressure_count: int | None = None
    naks_received: int | None = None
    destination_count: int | None = None
    """How many addresses the sender sends to; `None` where the channel has one by its nature."""
    destinations: list[Destination] | None = None
    """Which they are; a channel with more than a hundred does not tell of all. `None` where the channel has one by its
    nature."""
    retransmits_sent: int | None = None
    receiver_count: int | None = None
    """Receivers of a group that flow control waits for; `None` where it does not count them."""
    naks_sent: int | None = None
    receive_addresses: list[str] | None = None
    """Where the receiver listens; `None` where the channel itself says it: it has a port, and no destinations."""
    paths: list[ReceivePath] | None = None
    """The destinations of the subscription that reads it, the first hundred; `None` where it has one address by its
    nature, or under a driver that does not tell."""
    publisher_held_back: HeldBack | None = None
    """The subscriber, spy, receiver or sender that the publisher waits for; `None` while it has room."""
    receiver_held_back: HeldBack | None = None
    """The subscriber that the receiver's window waits for."""
    receiver_drops: Drops | None = None
    """What arrives and is not taken; `None` while all is. When all is dropped the image ends, and its readers lose what
    lies between it and the next."""
    publisher_unrepaired: Unrepaired | None = None
    """Receivers go on asking for what was sent to them again; `None` while repairs arrive."""
    receiver_unrepaired: Unrepaired | None = None
    """What the receiver asks for again and again does not come; `None` while all comes in the end."""
    readers: list[Reader] = field(default_factory=list)
    counters: list[CounterRecord] = field(default_factory=list)

    @property
    def room(self) -> int | None:
        """Bytes the publisher may still write before it is pressed back."""
        return _difference(self.publisher_limit, self.publisher_position)

    @property
    def is_unconnected(self) -> bool:
        """The publisher has no subscriber, or its group has too few, and so may not write.

        While it has one its limit is a window beyond the slowest reader, or beyond the sender. Without one its limit is
        where the sender is, as it also is with a spy that is a whole window behind: that is no word of either.
        """
        return self._is_at_its_end and not self._has_spy_behind

    @property
    def may_be_unconnected(self) -> bool:
        """As :attr:`is_unconnected`, or a spy has begun to hold the publisher back: within a second it is named."""
        return self._is_at_its_end

    @property
    def _is_at_its_end(self) -> bool:
        if self.publisher_position is None or self.room != 0 or self.publisher_held_back is not None:
            return False
        return not self.readers if self.unsent is None else self.unsent == 0

    @property
    def _has_spy_behind(self) -> bool:
        return any(reader.is_spy and self.backlog(reader) for reader in self.readers)

    @property
    def unsent(self) -> int | None:
        """Bytes written that the sender has not sent."""
        return _difference(self.publisher_position, self.sender_position)

    @property
    def sender_window(self) -> int | None:
        """Bytes the receivers still allow the sender to send."""
        return _difference(self.sender_limit, self.sender_position)

    @property
    def missing(self) -> int | None:
        """Bytes between the first gap and the furthest byte received."""
        return _difference(self.receiver_high_water_mark, self.receiver_position)

    def backlog(self, reader: Reader) -> int | None:
        """Bytes that have arrived here and that this reader has not read."""
        if reader.is_spy:
            return _difference(self.publisher_position, reader.position)
        arrived = [self.receiver_high_water_mark, self.sender_position, self.publisher_position]
        furthest = next((position for position in arrived if position is not None), None)
        return _difference(furthest, reader.position)


_POSITION_FIELDS = {
    types.PUBLISHER_POSITION: "publisher_position",
    types.PUBLISHER_LIMIT: "publisher_limit",
    types.SENDER_POSITION: "sender_position",
    types.SENDER_LIMIT: "sender_limit",
    types.RECEIVER_POSITION: "receiver_position",
    types.RECEIVER_HIGH_WATER_MARK: "receiver_high_water_mark",
    types.SENDER_BACK_PRESSURE: "back_pressure_count",
    types.NAKS_RECEIVED: "naks_received",
    types.NAKS_SENT: "naks_sent",
    types.RETRANSMITS_SENT: "retransmits_sent",
    types.FLOW_CONTROL_RECEIVERS: "receiver_count",
}

_OF_RECEIVERS = frozenset({types.RECEIVER_POSITION, types.RECEIVER_HIGH_WATER_MARK, types.NAKS_SENT})

_HELD_FIELDS = {
    types.PUBLISHER_HELD: "publisher_held_back",
    types.IMAGE_HELD: "receiver_held_back",
}

_UNREPAIRED_FIELDS = {
    types.PUBLICATION_UNREPAIRED: "publisher_unrepaired",
    types.IMAGE_UNREPAIRED: "receiver_unrepaired",
}

_ADDRESSES = ("endpoint=", "control=")

_TELLS_ADDRESS = re.compile(r"[?|]endpoint=[^|\s]*:(?!0(?:[|\s]|$))")
"""A channel that says where its receiver listens, unless clients add its destinations."""

_OF_TRANSPORTS = frozenset(
    {
        types.DESTINATION_COUNT,
        types.SEND_CHANNEL_STATUS,
        types.SEND_DESTINATION,
        types.RECEIVE_CHANNEL_STATUS,
        types.RECEIVE_DESTINATION,
        types.LOCAL_SOCKET_ADDRESS,
    }
)
"""Types of counters that tell of streams what their transports have in common. They name neither stream nor session."""


def group_streams(records: Iterable[CounterRecord]) -> list[StreamState]:
    """The streams that the counters speak of, by stream, session and channel.

    A reader may name the channel with other parameters than the publisher does, as with ``tether=false``: it is on the
    same stream where medium and addresses are the same. The stream has the publisher's channel, or the receiver's
    where there is no publisher.
    """
    streams: dict[tuple[str, int, int], StreamState] = {}
    transports: dict[int, list[CounterRecord]] = {type_id: [] for type_id in _OF_TRANSPORTS}
    for record in records:
        if record.type_id in transports:
            transports[record.type_id].append(record)
        key = types.stream_key(record)
        if key is None:
            continue
        identity = (_place(key.channel), key.stream_id, key.session_id)
        stream = streams.get(identity)
        if stream is None:
            stream = streams[identity] = StreamState(key.session_id, key.stream_id, key.channel)
        stream.counters.append(record)
        if record.type_id == types.SUBSCRIBER_POSITION:
            stream.readers.append(_reader(record, key.channel))
        elif record.type_id == types.IMAGE_DROPS and record.value:
            stream.receiver_drops = Drops(*types.dropped_by(record), record.value)
        elif record.type_id in _HELD_FIELDS and record.value:
            setattr(stream, _HELD_FIELDS[record.type_id], HeldBack(types.holder_of(record), record.value))
        elif record.type_id in _UNREPAIRED_FIELDS and record.value:
            setattr(
                stream, _UNREPAIRED_FIELDS[record.type_id], Unrepaired(types.mtu_of(record), record.value)
            )
        elif record.type_id in _POSITION_FIELDS:
            setattr(stream, _POSITION_FIELDS[record.type_id], record.value)
            # As the publisher names it, where it is on this host.
            if record.type_id not in _OF_RECEIVERS or stream.publisher_position is None:
                stream.channel = key.channel
    for record in transports[types.DESTINATION_COUNT]:
        status_ids = {
            channel.counter_id
            for channel in transports[types.SEND_CHANNEL_STATUS]
            if channel.registration_id == record.registration_id
        }
        destinations = _destinations(status_ids, transports[types.SEND_DESTINATION])
        _list_destinations(record, destinations, streams.values())
    for record in transports[types.RECEIVE_CHANNEL_STATUS]:
        _list_sockets(record, transports[types.LOCAL_SOCKET_ADDRESS], streams.values())
        _list_paths(record, transports[types.RECEIVE_DESTINATION], streams.values())
    # The two ends of a stream on one host may name it differently, as with port 0: they come one after the other.
    return sorted(streams.values(), key=lambda each: (each.stream_id, each.session_id, _place(each.channel)))


def _reader(record: CounterRecord, channel: str) -> Reader:
    return Reader(
        record.registration_id,
        record.value,
        client_id=record.owner_id if record.owner_id > 0 else None,
        is_spy=channel.startswith("aeron-spy:"),
        is_tethered=re.search(r"[?|]tether=false(\||$)", channel) is None,
    )


def _destinations(status_ids: set[int], records: Iterable[CounterRecord]) -> list[Destination]:
    owned = [record for record in records if types.socket_of(record)[0] in status_ids]
    return [
        Destination(types.socket_of(record)[1] or None, types.destination_name_of(record) or None)
        for record in owned
    ]


def _list_destinations(
    record: CounterRecord, destinations: list[Destination], streams: Iterable[StreamState]
) -> None:
    """Destinations belong to the transport: to its publication, and to those that share its address or its tag."""
    channel = types.channel_of(record) or ""
    place, tag = _place(channel), _transport_tag(channel)
    for stream in streams:
        if stream.sender_position is None:
            continue
        is_opener = any(counter.registration_id == record.registration_id for counter in stream.counters)
        has_its_address = _has_address(place) and place == _place(stream.channel)
        has_its_tag = tag is not None and tag == _transport_tag(stream.channel)
        if is_opener or has_its_address or has_its_tag:
            stream.destination_count = record.value
            stream.destinations = destinations


def _list_sockets(
    channel: CounterRecord, sockets: Iterable[CounterRecord], streams: Iterable[StreamState]
) -> None:
    """Sockets belong to the transport: to the subscription that opened it, and to those that share its images."""
    if _TELLS_ADDRESS.search(channel.label) and "control-mode=manual" not in channel.label:
        return
    owners_and_addresses = map(types.socket_of, sockets)
    addresses = [address for owner, address in owners_and_addresses if owner == channel.counter_id]
    for stream in streams:
        if _is_read_through(channel, stream) and stream.receiver_position is not None:
            stream.receive_addresses = addresses


def _list_paths(
    channel: CounterRecord, destinations: Iterable[CounterRecord], streams: Iterable[StreamState]
) -> None:
    """Each stream that the subscription reads, wherever it comes from, has the paths by which it may come."""
    paths = [
        ReceivePath(types.destination_name_of(record), types.socket_of(record)[1] or None, record.value == 1)
        for record in destinations
        if types.socket_of(record)[0] == channel.counter_id
    ]
    for stream in streams:
        if paths and _is_read_through(channel, stream):
            stream.paths = paths


def _is_read_through(channel: CounterRecord, stream: StreamState) -> bool:
    """Whether one of the stream's readers opened the transport, or shares it by its tag: the opener may have gone."""
    if any(reader.registration_id == channel.registration_id for reader in stream.readers):
        return True
    tag = _transport_tag(types.channel_of(channel) or "")
    readers = (counter for counter in stream.counters if counter.type_id == types.SUBSCRIBER_POSITION)
    return tag is not None and any(
        _transport_tag(types.channel_of(reader) or "") == tag for reader in readers
    )


def _has_address(place: str) -> bool:
    return "?" in place


def _transport_tag(channel: str) -> str | None:
    tags = re.search(r"[?|]tags=([^,|]+)", channel)
    return tags[1] if tags else None


def _place(channel: str) -> str:
    """What a channel and another one of the same stream have in common: the medium and the addresses.

    A driver takes ``localhost`` for 127.0.0.1 without asking a name server, and so does this.
    """
    medium, _, parameters = channel.removeprefix("aeron-spy:").partition("?")
    addresses = sorted(
        each.replace("=localhost:", "=127.0.0.1:")
        for each in parameters.split("|")
        if each.startswith(_ADDRESSES)
    )
    return "?".join((medium, *addresses))


def _difference(greater: int | None, less: int | None) -> int | None:
    # The counters are read one after another while the stream moves, so a difference may dip below zero.
    if greater is None or less is None:
        return None
    return max(0, greater - less)
