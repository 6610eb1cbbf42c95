"""The readers of counters, errors and losses: right on good files, clear on bad ones."""

from __future__ import annotations

import dataclasses
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._base.counter_record import CounterRecord
from headrace.cnc.counters import CountersReader
from headrace.tools import (
    CncFile,
    CounterFilter,
    Destination,
    DriverFileMissingError,
    DriverNotReadyError,
    FileFormatError,
    Reader,
    StreamState,
    Unrepaired,
    channel_of,
    group_streams,
    read_error_log,
    read_loss_report,
    stream_key,
)
from headrace.tools.counter_types import Reading, reading_of, type_id_of
from headrace.tools.snapshot import DriverWatcher
from headrace.tools.streams import HeldBack
from headrace.tools.views.stat import read_value
from tests.cli.fake_cnc import ERRORS, RING, VALUES, FakeCnc, a_busy_driver, loss_entry


def test_counters_are_read_in_order_and_freed_ones_are_left_out(driver_directory: Path) -> None:
    with CncFile.open(driver_directory) as cnc:
        records = list(cnc.counters)
    assert [record.counter_id for record in records] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12]
    assert (records[0].label, records[0].value) == ("Bytes sent", 5_000_000)
    assert records[3].registration_id == 31


def test_a_directory_may_be_text(driver_directory: Path) -> None:
    """As `default_directory()` and `MediaDriver.directory` give it."""
    with CncFile.open(str(driver_directory)) as cnc, DriverWatcher(str(driver_directory)) as watcher:
        assert watcher.snapshot().path == cnc.path
    assert read_loss_report(str(driver_directory)) == read_loss_report(driver_directory)


def test_the_header_says_whose_file_it_is(driver_directory: Path) -> None:
    with CncFile.open(driver_directory) as cnc:
        assert (cnc.header.pid, cnc.header.version_text, cnc.header.page_size) == (4242, "0.2.0", 4096)
        assert cnc.heartbeat_age_ms(now_ms=1_700_000_000_250) == 250


def test_a_driver_that_stopped_has_no_heartbeat_age(tmp_path: Path) -> None:
    FakeCnc(heartbeat_ms=-1).write(tmp_path)
    with CncFile.open(tmp_path) as cnc:
        assert cnc.heartbeat_age_ms(now_ms=0) is None


def test_values_are_live_and_records_are_snapshots(tmp_path: Path) -> None:
    path = a_busy_driver().write(tmp_path)
    with CncFile.open(tmp_path) as cnc:
        before = cnc.counters.record(0)
        offset = 128 + cnc.header.to_driver_length + cnc.header.to_clients_length
        with path.open("r+b") as file:
            file.seek(offset + cnc.header.counters_metadata_length)
            file.write(struct.pack("<q", 77))
        assert cnc.counters.value(0) == 77
        assert before is not None
        assert before.value == 5_000_000


def test_a_file_that_is_cut_short_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = a_busy_driver().write(tmp_path)
    with CncFile.open(tmp_path) as cnc, DriverWatcher(tmp_path) as watcher:
        os.truncate(path, 4096)
        for read in (
            lambda: list(cnc.counters),
            lambda: list(read_error_log(cnc.error_log)),
            watcher.snapshot,
        ):
            with pytest.raises(FileFormatError, match=r"length=4096.*cut short"):
                read()
        os.truncate(path, 0)
        with pytest.raises(FileFormatError, match=r"length=0.*cut short"):
            cnc.heartbeat_ms()


def test_closing_twice_is_allowed_and_a_replaced_file_is_noticed(tmp_path: Path) -> None:
    path = a_busy_driver().write(tmp_path)
    cnc = CncFile.open(tmp_path)
    assert not cnc.is_replaced
    path.rename(tmp_path / "old")
    assert cnc.is_replaced
    a_busy_driver().write(tmp_path)
    assert cnc.is_replaced
    cnc.close()
    cnc.close()


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DriverFileMissingError, match="headrace driver"):
        CncFile.open(tmp_path)


def test_a_file_being_written_is_not_read(tmp_path: Path) -> None:
    FakeCnc(version=0).write(tmp_path)
    with pytest.raises(DriverNotReadyError, match="version=0"):
        CncFile.open(tmp_path)


def _set_length(index: int, value: int) -> Callable[[FakeCnc], None]:
    def apply(cnc: FakeCnc) -> None:
        cnc.lengths[index] = value

    return apply


def _set_version(cnc: FakeCnc) -> None:
    cnc.version = 0x010000


def _set_page_size(cnc: FakeCnc) -> None:
    cnc.page_size = 4097


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (_set_version, "version=1.0.0"),
        (_set_length(0, RING + 8), "to-driver length=1800"),
        (_set_length(0, -1), "to-driver length=-1"),
        (_set_length(1, 0), "to-clients length=0"),
        (_set_length(2, VALUES), f"counter metadata length={VALUES}"),
        (_set_length(3, 100), "counter values length=100"),
        (_set_length(4, 1 << 30), "its header describes"),
        (_set_length(4, -8), "error log length=-8"),
        (_set_page_size, "page size=4097"),
    ],
)
def test_a_damaged_header_is_refused_by_file_value_and_rule(
    tmp_path: Path, damage: Callable[[FakeCnc], None], found: str
) -> None:
    cnc = FakeCnc()
    damage(cnc)
    path = cnc.write(tmp_path)
    with pytest.raises(FileFormatError, match=re.escape(found)) as refusal:
        CncFile.open(tmp_path)
    assert str(path) in str(refusal.value)


def test_a_short_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cnc.dat").write_bytes(b"\0" * 100)
    with pytest.raises(FileFormatError, match="length=100"):
        CncFile.open(tmp_path)


@given(noise=st.binary(min_size=0, max_size=600), at=st.integers(0, 200))
def test_whatever_the_header_says_only_the_declared_errors_escape(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int
) -> None:
    whole = bytearray(a_busy_driver().to_bytes())
    whole[at : at + len(noise)] = noise
    path = tmp_path_factory.getbasetemp() / "noise.dat"
    path.write_bytes(whole)
    try:
        with CncFile.open(path) as cnc:
            list(cnc.counters)
            list(read_error_log(cnc.error_log))
    except (FileFormatError, DriverNotReadyError):
        pass


@given(noise=st.binary(min_size=512, max_size=512))
def test_any_metadata_record_can_be_read(noise: bytes) -> None:
    metadata = bytearray(noise + bytes(512))
    struct.pack_into("<i", metadata, 0, 1)
    reader = CountersReader(memoryview(metadata), memoryview(bytearray(256)))
    (record,) = list(reader)
    assert len(record.label) <= 380
    stream_key(record)
    channel_of(record)


def test_a_channel_longer_than_its_key_comes_from_the_label() -> None:
    cnc = FakeCnc()
    channel = "aeron:udp?endpoint=localhost:20121|alias=" + "x" * 100
    cnc.stream_counter(
        0, 4, "sub-pos", 5, registration_id=1, session_id=2, stream_id=3, channel=channel, suffix=" @9"
    )
    reader = CountersReader(memoryview(cnc.metadata), memoryview(cnc.values))
    key = stream_key(next(iter(reader)))
    assert key is not None
    assert (key.channel, key.session_id, key.stream_id) == (channel, 2, 3)


def test_streams_gather_their_counters(driver_directory: Path) -> None:
    with CncFile.open(driver_directory) as cnc:
        (stream,) = group_streams(cnc.counters)
    assert (stream.session_id, stream.stream_id) == (-7, 1001)
    assert (stream.room, stream.unsent, stream.sender_window, stream.missing) == (64_000, 40, 56_576, 960)
    assert [(reader.registration_id, stream.backlog(reader)) for reader in stream.readers] == [
        (32, 1024),
        (40, 8896),
    ]


@pytest.mark.parametrize(
    ("limit", "sender", "readers", "is_unconnected"),
    [
        (100, 100, 0, True),
        (100, 60, 0, False),
        (140, 100, 0, False),
        (100, None, 0, True),
        (100, None, 1, False),
        # Closed while the publisher was ahead of the reader that left.
        (60, None, 0, True),
    ],
)
def test_a_publisher_without_subscribers_is_told_from_one_that_waits_for_a_receiver(
    limit: int, sender: int | None, readers: int, is_unconnected: bool
) -> None:
    read = [Reader(number, 36, None, is_spy=False, is_tethered=True) for number in range(readers)]
    stream = StreamState(
        2, 3, "aeron:ipc", publisher_position=100, publisher_limit=limit, sender_position=sender, readers=read
    )
    assert stream.is_unconnected is is_unconnected


@pytest.mark.parametrize(
    ("spy_position", "held_back", "is_unconnected"),
    [
        (100, None, True),
        (36, None, False),
        (36, HeldBack("subscription 5", 1), False),
        (100, HeldBack("x", 1), False),
    ],
)
def test_a_publisher_without_subscribers_is_told_from_one_that_waits_for_a_spy(
    spy_position: int, held_back: HeldBack | None, is_unconnected: bool
) -> None:
    stream = StreamState(
        2,
        3,
        "aeron:udp?endpoint=localhost:1",
        publisher_position=100,
        publisher_limit=100,
        sender_position=100,
        publisher_held_back=held_back,
        readers=[Reader(5, spy_position, None, is_spy=True, is_tethered=True)],
    )
    assert stream.is_unconnected is is_unconnected
    assert stream.may_be_unconnected is (held_back is None)


@pytest.mark.parametrize(
    ("publisher", "reader"),
    [
        ("aeron:ipc", "aeron:ipc?tether=false|alias=monitor"),
        ("aeron:ipc?term-length=64k", "aeron:ipc"),
        ("aeron:udp?endpoint=localhost:20121|mtu=8k", "aeron:udp?reliable=true|endpoint=localhost:20121"),
        ("aeron:udp?endpoint=localhost:20121", "aeron-spy:aeron:udp?endpoint=localhost:20121"),
        ("aeron:udp?endpoint=localhost:20121", "aeron:udp?endpoint=127.0.0.1:20121"),
        (
            "aeron:udp?control=127.0.0.1:1|endpoint=127.0.0.1:2",
            "aeron:udp?control=localhost:1|endpoint=127.0.0.1:2",
        ),
    ],
)
def test_a_reader_with_other_parameters_is_on_its_publishers_stream(publisher: str, reader: str) -> None:
    cnc = FakeCnc()
    for counter_id, (kind, name, channel) in enumerate(
        [
            (4, "sub-pos", reader),
            (12, "pub-pos (sampled)", publisher),
            (4, "sub-pos", publisher),
            # Of a receiver that the same driver has.
            (5, "rcv-pos", reader.removeprefix("aeron-spy:")),
        ]
    ):
        cnc.stream_counter(
            counter_id,
            kind,
            name,
            1000 * counter_id,
            registration_id=counter_id,
            session_id=2,
            stream_id=3,
            channel=channel,
        )
    records = CountersReader(memoryview(cnc.metadata), memoryview(cnc.values))
    (stream,) = group_streams(records)
    assert stream.channel == publisher
    assert [stream.backlog(each) for each in stream.readers] == [1000, 0]


@pytest.mark.parametrize(
    ("opener", "other", "seen"),
    [
        (
            "aeron:udp?control=127.0.0.1:1|control-mode=dynamic",
            "aeron:udp?control-mode=dynamic|control=localhost:1",
            [3, 3],
        ),
        # Each has a transport of its own, though the texts are alike.
        ("aeron:udp?control-mode=manual", "aeron:udp?control-mode=manual", [3, None]),
        ("aeron:udp?control-mode=manual", "aeron:udp?endpoint=127.0.0.1:1", [3, None]),
        ("aeron:udp?control-mode=manual|tags=7,8", "aeron:udp?tags=7", [3, 3]),
        ("aeron:udp?control-mode=manual|tags=7", "aeron:udp?tags=77", [3, None]),
        ("aeron:udp?control-mode=manual|tags=,8", "aeron:udp?control-mode=manual|tags=,8", [3, None]),
    ],
)
def test_destinations_are_those_of_the_streams_transport(
    opener: str, other: str, seen: list[int | None]
) -> None:
    cnc = FakeCnc()
    for counter_id, channel in enumerate((opener, other)):
        cnc.stream_counter(
            counter_id,
            2,
            "snd-pos (sampled)",
            5,
            registration_id=70 + counter_id,
            session_id=counter_id,
            stream_id=3,
            channel=channel,
        )
    key = struct.pack("<i", len(opener)) + opener.encode()
    cnc.counter(2, 18, f"mdc-num-dest: {opener}", 3, key=key, registration_id=70)
    cnc.counter(3, 6, f"snd-channel: {opener} 0.0.0.0:7", 1, key=key, registration_id=70)
    shown = [
        (3, "10.0.0.1:5", ""),
        (3, "10.0.0.2:5", " of host:5"),
        (3, "", " of unknown:5"),
        (9, "10.0.0.4:5", ""),
    ]
    for counter_id, (status_id, address, name) in enumerate(shown, 4):
        label = f"snd-destination: {status_id} {address}{name}"
        key = struct.pack("<ii", status_id, len(address)) + address.encode()
        cnc.counter(counter_id, 2105, label, 1, key=key)
    records = CountersReader(memoryview(cnc.metadata), memoryview(cnc.values))
    streams = sorted(group_streams(records), key=lambda stream: stream.session_id)
    assert [stream.destination_count for stream in streams] == seen
    expected = [
        Destination("10.0.0.1:5", None),
        Destination("10.0.0.2:5", "host:5"),
        Destination(None, "unknown:5"),
    ]
    assert [stream.destinations for stream in streams] == [count and expected for count in seen]
    assert list(map(str, expected)) == ["10.0.0.1:5", "host:5 (10.0.0.2:5)", "unknown:5 (no address)"]


@pytest.mark.parametrize(
    ("channel", "seen"),
    [
        ("aeron:udp?control-mode=manual", ["10.0.0.1:5", "[::1]:6"]),
        # It says itself where it listens.
        ("aeron:udp?endpoint=10.0.0.1:5", None),
    ],
)
def test_sockets_are_those_of_the_streams_channel(channel: str, seen: list[str] | None) -> None:
    cnc = FakeCnc()
    for counter_id, kind, name, registration_id in [
        (0, 5, "rcv-hwm", 90),
        (1, 4, "sub-pos", 70),
        (2, 8, "rcv-pos", 90),
    ]:
        cnc.stream_counter(
            counter_id,
            kind,
            name,
            5,
            registration_id=registration_id,
            session_id=2,
            stream_id=3,
            channel=channel,
        )
    key = struct.pack("<i", len(channel)) + channel.encode()
    cnc.counter(3, 7, f"rcv-channel: {channel}", 1, key=key, registration_id=70)
    for counter_id, owner, address in [(4, 3, "10.0.0.1:5"), (5, 3, "[::1]:6"), (6, 8, "10.0.0.1:7")]:
        key = struct.pack("<ii", owner, len(address)) + address.encode()
        cnc.counter(counter_id, 14, f"rcv-local-sockaddr: {owner} {address}", 1, key=key, registration_id=70)
    records = CountersReader(memoryview(cnc.metadata), memoryview(cnc.values))
    (stream,) = group_streams(records)
    assert stream.receive_addresses == seen
    assert stream.paths is None


def test_paths_are_those_of_the_subscription_with_what_each_is() -> None:
    cnc = FakeCnc()
    manual = "aeron:udp?control-mode=manual"
    for counter_id, kind, name, channel, registration_id in [
        (0, 4, "sub-pos", manual, 70),
        (1, 8, "rcv-pos", manual, 90),
        # One that another subscription reads.
        (2, 4, "sub-pos", "aeron:udp?endpoint=10.0.0.1:5", 71),
    ]:
        cnc.stream_counter(
            counter_id,
            kind,
            name,
            5,
            registration_id=registration_id,
            session_id=2,
            stream_id=3,
            channel=channel,
        )
    key = struct.pack("<i", len(manual)) + manual.encode()
    cnc.counter(3, 7, f"rcv-channel: {manual}", 1, key=key, registration_id=70)
    shown = [
        (3, "10.0.0.1:5", "aeron:udp?endpoint=line:5|alias=one of two", 1),
        (3, "0.0.0.0:6", "aeron:udp?interface=10.0.0.1|endpoint=224.0.1.1:6", 0),
        (3, "[::]:6", "aeron:udp?endpoint=[ff02::1]:6", 1),
        (3, "", "aeron:ipc?alias=x", 0),
        (3, "", "aeron-spy:aeron:udp?endpoint=224.0.1.1:6", 1),
        (9, "10.0.0.1:7", "aeron:udp?endpoint=10.0.0.1:7", 1),
    ]
    for counter_id, (owner, address, channel, value) in enumerate(shown, 4):
        key = struct.pack("<ii", owner, len(address)) + address.encode()
        label = f"rcv-destination: {owner} {address} of {channel}"
        cnc.counter(counter_id, 2107, label, value, key=key, registration_id=80 + counter_id)
    one, other = group_streams(CountersReader(memoryview(cnc.metadata), memoryview(cnc.values)))
    assert other.paths is None or one.paths is None
    paths = one.paths or other.paths or []
    assert [(path.kind, path.address, path.state) for path in paths] == [
        ("udp", "10.0.0.1:5", "live"),
        ("multicast", "0.0.0.0:6", "silent"),
        ("multicast", "[::]:6", "live"),
        ("ipc", None, "silent"),
        ("spy", None, "live"),
    ]
    assert [path.channel for path in paths] == [channel for owner, _, channel, _ in shown if owner == 3]


@pytest.mark.parametrize(
    ("type_id", "name", "since_ms", "by", "seen"),
    [
        (2103, "pub-held", 5, "subscription 17 of client 3", ("subscription 17 of client 3", 5, 3)),
        (2103, "pub-held", 5, "receiver at [::1]:6", ("receiver at [::1]:6", 5, None)),
        (2103, "pub-held", 0, "the sender", None),
        (2104, "rcv-held", 5, "subscription 17 of client 3", ("subscription 17 of client 3", 5, 3)),
    ],
)
def test_a_stream_says_who_holds_it_back_unless_none_does(
    type_id: int, name: str, since_ms: int, by: str, seen: tuple[str, int, int | None] | None
) -> None:
    cnc = FakeCnc()
    channel = "aeron:udp?endpoint=localhost:20121"
    cnc.stream_counter(
        0,
        type_id,
        name,
        since_ms,
        registration_id=1,
        session_id=2,
        stream_id=3,
        channel=channel,
        suffix=f" by {by}",
    )
    records = CountersReader(memoryview(cnc.metadata), memoryview(cnc.values))
    (stream,) = group_streams(records)
    assert stream.channel == channel
    held = stream.publisher_held_back if type_id == 2103 else stream.receiver_held_back
    assert (held and (held.by, held.since_ms, held.client_id)) == seen


@pytest.mark.parametrize(
    ("type_id", "name", "since_ms", "seen"),
    [
        (2109, "snd-unrepaired", 5, (Unrepaired(8192, 5), None)),
        (2110, "rcv-unrepaired", 5, (None, Unrepaired(8192, 5))),
        (2110, "rcv-unrepaired", 0, (None, None)),
    ],
)
def test_a_stream_names_its_mtu_while_repairs_do_not_arrive(
    type_id: int, name: str, since_ms: int, seen: tuple[Unrepaired | None, Unrepaired | None]
) -> None:
    cnc = FakeCnc()
    channel = "aeron:udp?endpoint=localhost:20121|mtu=8192"
    cnc.stream_counter(
        0,
        type_id,
        name,
        since_ms,
        registration_id=1,
        session_id=2,
        stream_id=3,
        channel=channel,
        suffix=" mtu=8192",
    )
    records = CountersReader(memoryview(cnc.metadata), memoryview(cnc.values))
    (stream,) = group_streams(records)
    assert stream.channel == channel
    assert (stream.publisher_unrepaired, stream.receiver_unrepaired) == seen


def test_streams_of_other_endpoints_stay_apart() -> None:
    cnc = FakeCnc()
    for counter_id, port in enumerate((20121, 20122)):
        channel = f"aeron:udp?endpoint=localhost:{port}"
        cnc.stream_counter(
            counter_id, 4, "sub-pos", 5, registration_id=1, session_id=2, stream_id=3, channel=channel
        )
    records = CountersReader(memoryview(cnc.metadata), memoryview(cnc.values))
    assert len(group_streams(records)) == 2


@pytest.mark.parametrize(
    ("conditions", "ids"),
    [
        ({"type_ids": frozenset({4})}, [8, 10]),
        ({"stream_ids": frozenset({1001})}, [2, 3, 4, 5, 6, 7, 8, 10]),
        ({"stream_ids": frozenset({1})}, []),
        ({"session_ids": frozenset({-7}), "type_ids": frozenset({1, 2})}, [3, 4]),
        ({"channel": re.compile("20121")}, [2, 3, 4, 5, 6, 7, 8, 10, 11]),
        ({"label": re.compile("(?i)bytes")}, [0]),
        ({}, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12]),
    ],
)
def test_filters(driver_directory: Path, conditions: dict[str, object], ids: list[int]) -> None:
    with CncFile.open(driver_directory) as cnc:
        chosen = CounterFilter(**conditions).apply(cnc.counters)  # type: ignore[arg-type]
    assert [record.counter_id for record in chosen] == ids


def test_types_go_by_name_or_number() -> None:
    assert (type_id_of("sub-pos"), type_id_of("4"), type_id_of("1007")) == (4, 4, 1007)
    with pytest.raises(ValueError, match="pub-lmt"):
        type_id_of("subpos")


def test_readings_follow_the_type(driver_directory: Path) -> None:
    with CncFile.open(driver_directory) as cnc:
        readings = {record.counter_id: reading_of(record) for record in cnc.counters}
    assert readings[0] is Reading.BYTES
    assert readings[1] is Reading.COUNT
    assert readings[11] is Reading.CHANNEL_STATUS
    assert readings[12] is Reading.EPOCH_MS


@pytest.mark.parametrize(
    "type_name", ["pub-held", "rcv-held", "rcv-drops", "snd-unrepaired", "rcv-unrepaired"]
)
def test_a_moment_that_is_zero_is_none(type_name: str) -> None:
    """Of a publisher that was held back and is free again."""
    record = CounterRecord(1, type_id_of(type_name), f"{type_name}: by it", 0, 31, -1, 0, bytes(112))
    assert read_value(record, 1_700_000_000_250) == ""
    since = dataclasses.replace(record, value=1_700_000_000_000)
    assert read_value(since, 1_700_000_000_250) == "250 ms ago"


def test_errors_are_read_and_old_ones_can_be_left_out(driver_directory: Path) -> None:
    with CncFile.open(driver_directory) as cnc:
        (entry,) = read_error_log(cnc.error_log)
        recent = list(read_error_log(cnc.error_log, since_ms=1_699_000_100_001))
    assert (entry.observation_count, entry.text.splitlines()[0]) == (3, "(-1) io.aeron.Something: it broke")
    assert recent == []


@given(st.binary(max_size=ERRORS))
def test_any_bytes_can_be_read_as_an_error_log(noise: bytes) -> None:
    assert len(list(read_error_log(noise))) <= len(noise) // 24


def test_a_path_is_no_error_log(tmp_path: Path) -> None:
    for path in (tmp_path, str(tmp_path)):
        with pytest.raises(TypeError, match=r"log=.*: must be bytes, such as CncFile\.error_log"):
            read_error_log(path)  # type: ignore[arg-type]


def test_losses_are_read_past_padding(driver_directory: Path) -> None:
    first, second = read_loss_report(driver_directory)
    assert (first.channel, first.source, first.total_bytes_lost) == (
        "aeron:udp?endpoint=a:1",
        "10.0.0.1:9",
        1408,
    )
    assert (second.channel, second.source, second.session_id) == ("aeron:udp?endpoint=b:22", "10.0.0.2:90", 9)


def test_a_loss_entry_that_leaves_the_file_is_refused(tmp_path: Path) -> None:
    entry = bytearray(loss_entry(1, 2, 3, 4, 5, 6, "aeron:udp?endpoint=a:1", "b"))
    struct.pack_into("<i", entry, 40, 1 << 30)
    (tmp_path / "loss-report.dat").write_bytes(entry)
    with pytest.raises(FileFormatError, match=f"text length={1 << 30} at offset 40"):
        read_loss_report(tmp_path)


def test_a_missing_loss_report_is_named(tmp_path: Path) -> None:
    with pytest.raises(DriverFileMissingError, match=r"loss-report\.dat does not exist"):
        read_loss_report(tmp_path)


def test_what_is_no_loss_report_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("abc")
    with pytest.raises(FileFormatError, match=r"notes\.txt: length=3; a loss report has at least 40 bytes"):
        read_loss_report(file)
