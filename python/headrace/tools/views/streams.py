"""Streams: one block each, from the publisher to the readers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headrace.tools.counter_types import CLIENT_HEARTBEAT, client_name_of
from headrace.tools.snapshot import DriverSnapshot
from headrace.tools.streams import Drops, HeldBack, ReceivePath, StreamState, Unrepaired
from headrace.tools.units import format_bytes, format_count, format_duration_ns
from headrace.tools.views.header import header_json, header_line

_DASH = "-"
_ADDRESSES_SHOWN = 6


def streams_table(snapshot: DriverSnapshot, streams: Sequence[StreamState]) -> RenderableType:
    """One row for each party of each stream."""
    if not streams:
        return Renderables(header_line(snapshot, "streams"), Text("no streams", style="dim"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("party", no_wrap=True)
    table.add_column("position", justify="right", no_wrap=True)
    table.add_column("has", justify="right", style="cyan", no_wrap=True)
    table.add_column("of what", overflow="fold")
    for stream in streams:
        title = Text(f"stream {stream.stream_id}  session {stream.session_id}  ", style="bold yellow")
        title.append(stream.channel, style="not bold")
        table.add_row("", "", "", title)
        for party, position, amount, meaning in _parties(stream, snapshot):
            table.add_row(f"  {party}", "" if position is None else format_count(position), amount, meaning)
    return Renderables(header_line(snapshot, "streams"), table)


def streams_json(snapshot: DriverSnapshot, streams: Sequence[StreamState]) -> dict[str, object]:
    """One object a refresh."""
    return header_json(snapshot) | {"streams": [_stream_json(stream, snapshot) for stream in streams]}


def _absence(receiver_count: int) -> str:
    """Why a publisher may not write."""
    if receiver_count:
        return f"not connected: its group needs more receivers, and has {receiver_count}"
    return "no subscriber is connected"


def _parties(stream: StreamState, snapshot: DriverSnapshot) -> list[tuple[str, int | None, str, str]]:
    rows: list[tuple[str, int | None, str, str]] = []
    if stream.publisher_position is not None:
        meaning = "before back pressure" + _held(stream.publisher_held_back, snapshot)
        room = _amount(stream.room)
        if stream.is_unconnected:
            room, meaning = _DASH, _absence(stream.receiver_count or 0)
        elif stream.may_be_unconnected:
            room, meaning = _DASH, "no subscriber is connected, or a spy holds it back"
        rows.append(("publisher", stream.publisher_position, room, meaning))
    if stream.sender_position is not None:
        window = f"to send, {_amount(stream.sender_window)} of window left"
        window += _events(stream.back_pressure_count, "back pressure event", "back pressure events")
        window += _events(stream.naks_received, "NAK", "NAKs")
        window += _events(stream.retransmits_sent, "retransmit", "retransmits")
        window += _unrepaired(stream.publisher_unrepaired, snapshot)
        rows.append(("sender", stream.sender_position, _amount(stream.unsent), window))
    if stream.destination_count is not None:
        addresses = _addresses(list(map(str, stream.destinations or ())), stream.destination_count)
        rows.append(("sends to", None, format_count(stream.destination_count), addresses))
    if stream.receiver_position is not None:
        # Without a reader the driver looks for no gaps.
        missing, meaning = (stream.missing, "past a gap") if stream.readers else (None, "no reader remains")
        meaning += _events(stream.naks_sent, "NAK sent", "NAKs sent")
        meaning += _held(stream.receiver_held_back, snapshot)
        if (drops := stream.receiver_drops) is not None:
            duration = _duration(drops.since_ms, snapshot)
            meaning += f", drops packets from {drops.source}, {drops.place}, for {duration}"
        meaning += _unrepaired(stream.receiver_unrepaired, snapshot)
        rows.append(("receiver", stream.receiver_position, _amount(missing), meaning))
    if stream.paths is not None:
        rows += _paths(stream.paths)
    elif stream.receive_addresses is not None:
        count = len(stream.receive_addresses)
        rows.append(("listens at", None, format_count(count), _addresses(stream.receive_addresses, count)))
    for reader in stream.readers:
        meaning = f"to read, subscription {reader.registration_id}"
        if reader.client_id is not None:
            name = _client_name(reader.client_id, snapshot)
            meaning += f" of client {reader.client_id}" + (f" ({name})" if name else "")
        if not reader.is_tethered:
            meaning += ", which may lose its image"
        party = "spy" if reader.is_spy else "reader"
        rows.append((party, reader.position, _amount(stream.backlog(reader)), meaning))
    return rows


def _paths(paths: Sequence[ReceivePath]) -> list[tuple[str, int | None, str, str]]:
    shown = paths[:_ADDRESSES_SHOWN]
    rows: list[tuple[str, int | None, str, str]] = [
        ("path", None, path.state, f"{path.kind} {path.address or ''}".rstrip() + f"\n{path.channel}")
        for path in shown
    ]
    if len(paths) > len(shown):
        left = format_count(len(paths) - len(shown))
        rows.append(("path", None, "", f"and {left} more: see --json"))
    return rows


def _addresses(addresses: Sequence[str], count: int) -> str:
    """The first of so many, one a line, so that none is broken."""
    shown = addresses[:_ADDRESSES_SHOWN]
    left = count - len(shown)
    more = [f"and {format_count(left)} more: see --json"] if left > 0 else []
    return "\n".join([*shown, *more]) or "no address"


def _amount(value: int | None) -> str:
    return _DASH if value is None else format_bytes(value)


def _events(count: int | None, one: str, many: str) -> str:
    return f", {format_count(count)} {one if count == 1 else many}" if count else ""


def _held(held: HeldBack | None, snapshot: DriverSnapshot) -> str:
    if held is None:
        return ""
    name = _client_name(held.client_id, snapshot)
    by = f"{held.by} ({name})" if name else held.by
    return f", held back by {by} for {_duration(held.since_ms, snapshot)}"


def _unrepaired(unrepaired: Unrepaired | None, snapshot: DriverSnapshot) -> str:
    if unrepaired is None:
        return ""
    duration = _duration(unrepaired.since_ms, snapshot)
    return f", repairs have not arrived for {duration}: mtu={unrepaired.mtu} may be more than the path takes"


def _client_name(client_id: int | None, snapshot: DriverSnapshot) -> str:
    beats = (record for record in snapshot.counters if record.type_id == CLIENT_HEARTBEAT)
    return next((client_name_of(beat) for beat in beats if beat.registration_id == client_id), "")


def _elapsed_ms(since_ms: int, snapshot: DriverSnapshot) -> int:
    return max(0, snapshot.time_ms - since_ms)


def _duration(since_ms: int, snapshot: DriverSnapshot) -> str:
    return format_duration_ns(_elapsed_ms(since_ms, snapshot) * 1_000_000)


def _held_json(held: HeldBack | None, snapshot: DriverSnapshot) -> dict[str, object] | None:
    if held is None:
        return None
    return {
        "by": held.by,
        "client_name": _client_name(held.client_id, snapshot) or None,
        "since_ms": held.since_ms,
        "for_ms": _elapsed_ms(held.since_ms, snapshot),
    }


def _drops_json(drops: Drops | None, snapshot: DriverSnapshot) -> dict[str, object] | None:
    if drops is None:
        return None
    return {
        "source": drops.source,
        "place": drops.place,
        "since_ms": drops.since_ms,
        "for_ms": _elapsed_ms(drops.since_ms, snapshot),
    }


def _unrepaired_json(unrepaired: Unrepaired | None, snapshot: DriverSnapshot) -> dict[str, object] | None:
    if unrepaired is None:
        return None
    return {
        "mtu": unrepaired.mtu,
        "since_ms": unrepaired.since_ms,
        "for_ms": _elapsed_ms(unrepaired.since_ms, snapshot),
    }


def _stream_json(stream: StreamState, snapshot: DriverSnapshot) -> dict[str, object]:
    return {
        "session_id": stream.session_id,
        "stream_id": stream.stream_id,
        "channel": stream.channel,
        "publisher_position": stream.publisher_position,
        "publisher_limit": stream.publisher_limit,
        "sender_position": stream.sender_position,
        "sender_limit": stream.sender_limit,
        "receiver_position": stream.receiver_position,
        "receiver_high_water_mark": stream.receiver_high_water_mark,
        "back_pressure_count": stream.back_pressure_count,
        "naks_received": stream.naks_received,
        "receiver_count": stream.receiver_count,
        "retransmits_sent": stream.retransmits_sent,
        "destination_count": stream.destination_count,
        "destinations": None
        if stream.destinations is None
        else [{"address": each.address, "name": each.name} for each in stream.destinations],
        "naks_sent": stream.naks_sent,
        "receive_addresses": stream.receive_addresses,
        "paths": None
        if stream.paths is None
        else [
            {"channel": each.channel, "kind": each.kind, "address": each.address, "state": each.state}
            for each in stream.paths
        ],
        "publisher_held_back": _held_json(stream.publisher_held_back, snapshot),
        "receiver_held_back": _held_json(stream.receiver_held_back, snapshot),
        "receiver_drops": _drops_json(stream.receiver_drops, snapshot),
        "publisher_unrepaired": _unrepaired_json(stream.publisher_unrepaired, snapshot),
        "receiver_unrepaired": _unrepaired_json(stream.receiver_unrepaired, snapshot),
        "readers": [
            {
                "registration_id": reader.registration_id,
                "position": reader.position,
                "backlog": stream.backlog(reader),
                "client_id": reader.client_id,
                "client_name": _client_name(reader.client_id, snapshot) or None,
                "is_spy": reader.is_spy,
                "is_tethered": reader.is_tethered,
            }
            for reader in stream.readers
        ],
    }
