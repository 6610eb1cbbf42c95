"""What the type of a counter means: its name, whom it concerns, and how to read its key and its value."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from enum import StrEnum

from headrace._base.counter_record import CounterRecord
from headrace.cnc.counters import KEY_LENGTH


class Group(StrEnum):
    """Whom a counter concerns; the order is the one in which people look for trouble."""

    SYSTEM = "system"
    PUBLICATIONS = "publications"
    SUBSCRIPTIONS = "subscriptions"
    CHANNELS = "channels"
    CLIENTS = "clients"
    ARCHIVE = "archive"
    CLUSTER = "cluster"
    APPLICATION = "application"
    OTHER = "other"


class Reading(StrEnum):
    """How a person wants to see a value."""

    COUNT = "count"
    BYTES = "bytes"
    POSITION = "position"
    NANOSECONDS = "ns"
    EPOCH_MS = "epoch-ms"
    CHANNEL_STATUS = "status"
    VERSION = "version"
    OFFLOAD = "offload"


@dataclass(frozen=True, slots=True)
class CounterType:
    """A type's name (as labels have it), group and reading; `is_stream` if its key names a stream."""

    name: str
    group: Group
    reading: Reading = Reading.COUNT
    is_stream: bool = False


@dataclass(frozen=True, slots=True)
class StreamKey:
    """Which stream a counter belongs to. The channel is whole even where the key holds only its start."""

    registration_id: int
    session_id: int
    stream_id: int
    channel: str


SYSTEM_TYPE = 0
PUBLISHER_LIMIT = 1
SENDER_POSITION = 2
RECEIVER_HIGH_WATER_MARK = 3
SUBSCRIBER_POSITION = 4
RECEIVER_POSITION = 5
SEND_CHANNEL_STATUS = 6
RECEIVE_CHANNEL_STATUS = 7
SENDER_LIMIT = 9
CONGESTION = 10
CLIENT_HEARTBEAT = 11
PUBLISHER_POSITION = 12
SENDER_BACK_PRESSURE = 13
LOCAL_SOCKET_ADDRESS = 14
FLOW_CONTROL_RECEIVERS = 17
DESTINATION_COUNT = 18
NAKS_RECEIVED = 19
NAKS_SENT = 20
OFFLOAD = 2101
RESOLVER_HELD_BACK = 2102
PUBLISHER_HELD = 2103
IMAGE_HELD = 2104
SEND_DESTINATION = 2105
RETRANSMITS_SENT = 2106
RECEIVE_DESTINATION = 2107
IMAGE_DROPS = 2108
PUBLICATION_UNREPAIRED = 2109
IMAGE_UNREPAIRED = 2110

COUNTER_TYPES: dict[int, CounterType] = {
    SYSTEM_TYPE: CounterType("system", Group.SYSTEM),
    PUBLISHER_LIMIT: CounterType("pub-lmt", Group.PUBLICATIONS, Reading.POSITION, True),
    SENDER_POSITION: CounterType("snd-pos", Group.PUBLICATIONS, Reading.POSITION, True),
    RECEIVER_HIGH_WATER_MARK: CounterType("rcv-hwm", Group.SUBSCRIPTIONS, Reading.POSITION, True),
    SUBSCRIBER_POSITION: CounterType("sub-pos", Group.SUBSCRIPTIONS, Reading.POSITION, True),
    RECEIVER_POSITION: CounterType("rcv-pos", Group.SUBSCRIPTIONS, Reading.POSITION, True),
    SEND_CHANNEL_STATUS: CounterType("snd-channel", Group.CHANNELS, Reading.CHANNEL_STATUS),
    RECEIVE_CHANNEL_STATUS: CounterType("rcv-channel", Group.CHANNELS, Reading.CHANNEL_STATUS),
    SENDER_LIMIT: CounterType("snd-lmt", Group.PUBLICATIONS, Reading.POSITION, True),
    CONGESTION: CounterType("rcv-cc-cubic", Group.SUBSCRIPTIONS, Reading.COUNT, True),
    CLIENT_HEARTBEAT: CounterType("client-heartbeat", Group.CLIENTS, Reading.EPOCH_MS),
    PUBLISHER_POSITION: CounterType("pub-pos", Group.PUBLICATIONS, Reading.POSITION, True),
    SENDER_BACK_PRESSURE: CounterType("snd-bpe", Group.PUBLICATIONS, Reading.COUNT, True),
    LOCAL_SOCKET_ADDRESS: CounterType("local-sockaddr", Group.CHANNELS, Reading.CHANNEL_STATUS),
    15: CounterType("resolver-neighbors", Group.SYSTEM),
    16: CounterType("resolver-cache-entries", Group.SYSTEM),
    FLOW_CONTROL_RECEIVERS: CounterType("fc-receivers", Group.PUBLICATIONS, Reading.COUNT, True),
    DESTINATION_COUNT: CounterType("mdc-num-dest", Group.CHANNELS),
    NAKS_RECEIVED: CounterType("snd-naks-received", Group.PUBLICATIONS, Reading.COUNT, True),
    NAKS_SENT: CounterType("rcv-naks-sent", Group.SUBSCRIPTIONS, Reading.COUNT, True),
    21: CounterType("bootstrap-neighbor", Group.SYSTEM),
    OFFLOAD: CounterType("offload", Group.CHANNELS, Reading.OFFLOAD),
    RESOLVER_HELD_BACK: CounterType("resolver-held-back", Group.SYSTEM),
    PUBLISHER_HELD: CounterType("pub-held", Group.PUBLICATIONS, Reading.EPOCH_MS, True),
    IMAGE_HELD: CounterType("rcv-held", Group.SUBSCRIPTIONS, Reading.EPOCH_MS, True),
    SEND_DESTINATION: CounterType("snd-destination", Group.CHANNELS, Reading.CHANNEL_STATUS),
    RETRANSMITS_SENT: CounterType("snd-retransmits", Group.PUBLICATIONS, Reading.COUNT, True),
    RECEIVE_DESTINATION: CounterType("rcv-destination", Group.CHANNELS, Reading.COUNT),
    IMAGE_DROPS: CounterType("rcv-drops", Group.SUBSCRIPTIONS, Reading.EPOCH_MS, True),
    PUBLICATION_UNREPAIRED: CounterType("snd-unrepaired", Group.PUBLICATIONS, Reading.EPOCH_MS, True),
    IMAGE_UNREPAIRED: CounterType("rcv-unrepaired", Group.SUBSCRIPTIONS, Reading.EPOCH_MS, True),
    100: CounterType("rec-pos", Group.ARCHIVE, Reading.POSITION),
}

SYSTEM_READINGS: dict[int, Reading] = {
    0: Reading.BYTES,
    1: Reading.BYTES,
    26: Reading.NANOSECONDS,
    28: Reading.NANOSECONDS,
    30: Reading.NANOSECONDS,
    32: Reading.NANOSECONDS,
    34: Reading.VERSION,
    35: Reading.BYTES,
    36: Reading.BYTES,
    43: Reading.VERSION,
}

CHANNEL_STATUS_NAMES: dict[int, str] = {-1: "ERRORED", 0: "INITIALIZING", 1: "ACTIVE", 2: "CLOSING"}

OFFLOAD_NAMES: dict[int, str] = {0: "segmentation", 1: "vectored", 2: "single"}

_RANGES: tuple[tuple[range, CounterType], ...] = (
    (range(100, 200), CounterType("archive", Group.ARCHIVE)),
    (range(200, 300), CounterType("cluster", Group.CLUSTER)),
    (range(1000, 2**31), CounterType("application", Group.APPLICATION)),
)
_CHANNEL_KEYED = (SEND_CHANNEL_STATUS, RECEIVE_CHANNEL_STATUS, DESTINATION_COUNT, OFFLOAD)
_UNKNOWN = CounterType("other", Group.OTHER)
_STREAM_KEY = struct.Struct("<qiii")
_INT = struct.Struct("<i")
_STREAM_LABEL_FIELDS = 4


def counter_type(type_id: int) -> CounterType:
    """What is known of a type; never fails, since applications and later versions add their own."""
    known = COUNTER_TYPES.get(type_id)
    if known is not None:
        return known
    return next((kind for ids, kind in _RANGES if type_id in ids), _UNKNOWN)


def type_id_of(text: str) -> int:
    """A type's id from its number or its name.

    Raises:
        ValueError: No type has that name.
    """
    if text.lstrip("-").isdigit():
        return int(text)
    for type_id, kind in COUNTER_TYPES.items():
        if kind.name == text:
            return type_id
    names = ", ".join(kind.name for kind in COUNTER_TYPES.values())
    raise ValueError(f"type={text!r} is neither a number nor one of: {names}")


def reading_of(record: CounterRecord) -> Reading:
    """How to show the counter's value."""
    if record.type_id == SYSTEM_TYPE:
        return SYSTEM_READINGS.get(_INT.unpack_from(record.key)[0], Reading.COUNT)
    return counter_type(record.type_id).reading


def stream_key(record: CounterRecord) -> StreamKey | None:
    """The stream a counter belongs to, if its type has one."""
    if not counter_type(record.type_id).is_stream:
        return None
    registration_id, session_id, stream_id, _ = _STREAM_KEY.unpack_from(record.key)
    channel = _key_text(record.key, _STREAM_KEY.size - _INT.size)
    return StreamKey(registration_id, session_id, stream_id, _label_channel(record.label, channel))


def channel_of(record: CounterRecord) -> str | None:
    """The channel of a stream or of an endpoint, if the counter has one."""
    key = stream_key(record)
    if key is not None:
        return key.channel
    if record.type_id in _CHANNEL_KEYED:
        return _key_text(record.key, 0)
    return None


def holder_of(record: CounterRecord) -> str:
    """Of a ``pub-held`` or ``rcv-held`` counter: who holds the stream back, or did last."""
    return record.label.rpartition(" by ")[2]


def dropped_by(record: CounterRecord) -> tuple[str, str]:
    """Of a ``rcv-drops`` counter: where it comes from that the receiver drops, and where it lies."""
    source, _, place = record.label.rpartition(" from ")[2].partition(", ")
    return source, place


def mtu_of(record: CounterRecord) -> int:
    """Of a ``snd-unrepaired`` or ``rcv-unrepaired`` counter: the stream's longest datagram; 0 if it does not say."""
    _, _, mtu = record.label.rpartition(" mtu=")
    return int(mtu) if mtu.isdecimal() else 0


def client_name_of(record: CounterRecord) -> str:
    """Of a ``client-heartbeat`` counter: the name that the client gave itself; empty without one."""
    found = re.search(" name=(.*?)(?: version=|$)", record.label)
    return found[1] if found else ""


def socket_of(record: CounterRecord) -> tuple[int, str]:
    """Of a ``local-sockaddr`` or destination counter: its channel's status counter, and the address."""
    return _INT.unpack_from(record.key)[0], _key_text(record.key, _INT.size)


def destination_name_of(record: CounterRecord) -> str:
    """As the client wrote it: of a ``snd-destination`` a name with its port, of a ``rcv-destination`` the channel."""
    return record.label.partition(" of ")[2]


def _key_text(key: bytes, length_offset: int) -> str:
    start = length_offset + _INT.size
    length: int = _INT.unpack_from(key, length_offset)[0]
    return key[start : start + max(0, min(length, KEY_LENGTH - start))].decode("utf-8", errors="replace")


def _label_channel(label: str, key_channel: str) -> str:
    # "<name>: <registration> <session> <stream> <channel>", then " @<join position>", " by <holder>", " from
    # <source>" or " mtu=<bytes>"; the key may hold only a beginning.
    _, _, fields = label.partition(": ")
    parts = fields.split(" ", _STREAM_LABEL_FIELDS - 1)
    if len(parts) < _STREAM_LABEL_FIELDS or not parts[-1].startswith(key_channel):
        return key_channel
    return re.split(" (?:@|by |from |mtu=)", parts[-1], maxsplit=1)[0]
