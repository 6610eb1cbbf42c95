"""Every public method refuses an argument of a wrong type by its name, with its value and what it must be."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import os
import re
from collections.abc import Awaitable
from pathlib import Path

import pytest

import headrace
from headrace import aio, event_log
from headrace.archive.client.async_archive import AsyncArchive
from headrace.archive.files import ArchiveDirectory, repair
from headrace.client import Sequencer

pytestmark = pytest.mark.boundary


class Odd:
    """Of no type that a method takes."""

    def __repr__(self):
        return "<odd>"


# What the other arguments of a call are, of those that have no default.
RIGHT = {
    "channel": "aeron:ipc",
    "count": 1,
    "counter_id": 0,
    "data": b"x",
    "delta": 1,
    "descriptor": None,
    "directory": "/nowhere",
    "handler": lambda *_: None,
    "length": 8,
    "limit_bytes": 0,
    "limit_position": 0,
    "messages": [b"x"],
    "new_start_position": 0,
    "source_channel": "aeron:udp?endpoint=nowhere:8010",
    "source_id": 0,
    "source_recording_id": 0,
    "replication_id": 0,
    "destination_id": 1,
    "path": "/nowhere",
    "payload": b"x",
    "position": 0,
    "reason": "no",
    "recording_id": 0,
    "recording_ids": [],
    "reference_id": 0,
    "registration_id": 0,
    "replay_id": 0,
    "retention": None,
    "session_id": 0,
    "signal": headrace.archive.RecordingSignal.START,
    "source": "/nowhere",
    "storage": headrace.archive.DirectoryStorage("/nowhere", create=False),
    "stream_id": 10,
    "subscription_id": 0,
    "text": "<x/>",
    "type_id": 1001,
    "block": b"",
    "read": lambda *_: None,
    "within": 0,
    "deliver": lambda *_: None,
    "sessions": {},
    "place": headrace.client.LogPlace(),
    "timestamp": 0,
    "record": headrace.client.CounterRecord(0, 0, "", 0, 0, 0, 0, b""),
    "value": 0,
}
FRAMES = dict.fromkeys(("start_position", "initial_term_id", "stream_id"), 0) | dict.fromkeys(
    ("term_length", "segment_length"), 65_536
)
READER = {"frames": headrace.RecordedFrames(0, **FRAMES), "start": 0, "stop": 0, "limit": 0}

# A handler of a compiled language is an address; numpy and Arrow look at these themselves.
LEFT_OUT = {"columns.dtype", "poll_native.handler"}


def arguments_of(call):
    """Each argument with a call in which it alone is odd."""
    parameters = [
        one
        for one in inspect.signature(call).parameters.values()
        if one.kind is not one.VAR_KEYWORD and one.name not in ("self", "cls")
    ]
    for odd in parameters:
        if f"{call.__name__}.{odd.name}" in LEFT_OUT:
            continue
        args, kwargs = [], {}
        for one in parameters:
            if (one is not odd and one.default is not one.empty) or (
                one is not odd and one.kind is one.VAR_POSITIONAL
            ):
                if one.kind is one.POSITIONAL_ONLY:
                    args.append(one.default)
                continue
            value = Odd() if one is odd else (FRAMES | READER | RIGHT)[one.name]
            if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL):
                args.append(value)
            else:
                kwargs[one.name] = value
        yield odd.name, args, kwargs


def assert_refused(call, run=lambda awaitable: awaitable):
    count = 0
    for name, args, kwargs in arguments_of(call):
        try:
            result = call(*args, **kwargs)
            told = repr(run(result) if isinstance(result, Awaitable) else result)
        except (TypeError, headrace.ConfigError) as refusal:
            told = str(refusal)
        except Exception as error:
            told = repr(error)
        if not re.match(rf"{name}(\[0\])?=<odd>: must be .+", told):
            pytest.fail(f"{call.__qualname__} with {name}: {told}")
        count += 1
    return count


def assert_methods_refuse(subject, count_min, run=lambda awaitable: awaitable):
    count = 0
    for name in dir(subject):
        if not name.startswith("_") and not isinstance(inspect.getattr_static(subject, name), property):
            method = getattr(subject, name)
            if inspect.isroutine(method):
                count += assert_refused(method, run)
    assert count >= count_min


def test_a_client(media_client):
    assert_methods_refuse(media_client, 20)
    assert_methods_refuse(media_client.counters, 3)
    with media_client.add_counter(1001) as counter:
        assert_methods_refuse(counter, 2)


def test_a_reconnecting_client(media_driver):
    with headrace.connect(media_driver.directory, reconnect=True) as client:
        assert_methods_refuse(client, 8)


def test_publications(open_stream):
    with asyncio.Runner() as runner:
        assert_methods_refuse(open_stream()[0], 15, runner.run)
        assert_methods_refuse(open_stream(exclusive=True)[0], 18, runner.run)


def test_what_is_polled(open_stream):
    publication, subscription = open_stream(exclusive=True)
    publication.offer_blocking(b"x")
    RIGHT["sequencer"] = Sequencer(publication, 0)
    assert_methods_refuse(subscription, 15)
    assert_methods_refuse(subscription.images[0], 12)
    poller = headrace.Poller(subscription)
    assert_methods_refuse(poller, 5)


@pytest.mark.parametrize(
    "made",
    [
        headrace.ArchiveServer,
        headrace.ArchivingMediaDriver,
        headrace.IdleStrategy,
        headrace.MediaDriver,
        headrace.Message,
        headrace.MessageFilter,
        headrace.Poller,
        headrace.RecordedFrames,
        headrace.RecordingReader,
        headrace.connect,
        event_log.EventReader,
        event_log.read_events,
        event_log.EventFilter,
        ArchiveDirectory,
        repair,
        headrace.archive.Catalog,
        headrace.archive.DirectoryStorage,
        headrace.sbe.Schema.from_file,
        headrace.sbe.Schema.from_text,
        headrace.tools.CncFile.open,
        headrace.tools.read_loss_report,
        headrace.Archive.connect,
        headrace.archive.extension_channel,
    ],
)
def test_what_makes_something(made, tmp_path):
    assert assert_refused(made) >= 1


def test_an_archive(tmp_path):
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as driver,
        driver.connect_archive() as archive,
    ):
        assert_methods_refuse(archive, 40)
        assert_methods_refuse(driver, 3)
        with ArchiveDirectory(tmp_path / "archive") as directory:
            assert_methods_refuse(directory, 12)


def test_an_archive_of_asyncio(tmp_path):
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as driver,
        driver.connect() as client,
        asyncio.Runner() as runner,
    ):
        archive = runner.run(AsyncArchive.connect(client))
        assert_methods_refuse(archive, 40, runner.run)
        runner.run(archive.close())


def test_connecting_in_a_loop():
    with asyncio.Runner() as runner:
        assert assert_refused(aio.connect, runner.run) >= 1
        assert assert_refused(AsyncArchive.connect, runner.run) >= 5


def test_settings_of_an_archives_client():
    for field in dataclasses.fields(headrace.archive.ArchiveClientConfig):
        with pytest.raises(headrace.ConfigError, match=f"^{field.name}=<(odd|Odd, not shown)>: must be "):
            headrace.archive.ArchiveClientConfig(**{field.name: Odd()})


def test_a_directory_given_for_something_else_is_told_where_it_belongs(media_driver):
    with pytest.raises(
        TypeError, match=r"client='/dev/shm/x': must be a headrace\.Client or None.*directory="
    ):
        headrace.Archive.connect("/dev/shm/x")
    with pytest.raises(TypeError, match=r"directory=.*: must be a path.*driver="):
        headrace.connect(media_driver)


def test_a_class_given_for_an_instance_is_told_so():
    with pytest.raises(
        TypeError, match=r"must be a headrace\.Client or None; this is a class, give an instance"
    ):
        headrace.Archive.connect(headrace.Client)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda archive: archive.find_recording(2**63), "recording_id=9223372036854775808: must be a whole"),
        (lambda archive: archive.stop_recording("aeron:ipc", 2**31), "stream_id=2147483648: must be a whole"),
        (lambda archive: archive.list_recordings(stream_id=2**31), "stream_id=2147483648: must be a whole"),
        (
            lambda archive: archive.replay(0, limit_counter_id=2**31),
            "limit_counter_id=2147483648: must be a whole",
        ),
        (
            lambda archive: archive.start_replay(0, "aeron:ipc", 1, file_io_max_length=2**31),
            "file_io_max_length=2147483648: must be a whole",
        ),
        (
            lambda archive: archive.replicate(0, "aeron:ipc", destination_id=2**63),
            "destination_id=9223372036854775808: must be a whole",
        ),
        (
            lambda archive: archive.replicate(0, "aeron:ipc", session_id=2**31),
            "session_id=2147483648: must be a whole",
        ),
    ],
)
def test_numbers_that_are_too_long_for_a_request(tmp_path, ask, message):
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as driver,
        driver.connect_archive() as archive,
        pytest.raises(headrace.ConfigError, match=message),
    ):
        ask(archive)


def test_as_many_recordings_as_there_are_may_be_asked_for_with_any_number(tmp_path):
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as driver,
        driver.connect_archive() as archive,
    ):
        assert archive.list_recordings(count=2**62) == []


@pytest.mark.parametrize("timeout_s", [-1, -0.001, float("nan"), float("-inf")])
def test_time_outs_that_are_none(tmp_path, timeout_s):
    stop = headrace.archive.RecordingSignal.STOP
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=tmp_path / "archive", replication_channel="aeron:udp?endpoint=127.0.0.1:0"
        ) as driver,
        driver.connect_archive() as archive,
        archive.add_durable_publication("aeron:ipc", 1001) as publication,
        archive.follow(0) as follow,
    ):
        replication = archive.replicate(0, "aeron:ipc")
        for call in (
            lambda: archive.await_signal(stop, timeout_s=timeout_s),
            lambda: archive.follow(0, timeout_s=timeout_s),
            lambda: driver.connect_archive(message_timeout_s=timeout_s),
            lambda: follow.receive(timeout_s),
            lambda: publication.publish(b"", timeout_s=timeout_s),
            lambda: publication.wait_until_recorded(timeout_s=timeout_s),
            lambda: replication.wait(timeout_s),
            lambda: replication.wait_for(stop, timeout_s),
            lambda: replication.wait_for_position(0, timeout_s),
            lambda: asyncio.run(replication.wait_async(timeout_s)),
            lambda: asyncio.run(publication.publish_async(b"", timeout_s=timeout_s)),
        ):
            with pytest.raises(
                headrace.ConfigError, match=r"timeout_s=.*: must be a number of seconds of at least"
            ):
                call()
        assert publication.publication.position == 0, "nothing was sent"
        archive.stop_replication(replication.replication_id)


def test_text_that_utf_8_cannot_encode_is_refused_by_name(media_client: headrace.Client) -> None:
    """Half of a surrogate pair, such as a cut JSON text has."""
    half = "aeron:ipc?alias=\ud800"
    calls = [
        lambda: media_client.add_publication(half, 1),
        lambda: media_client.add_subscription(half, 1),
        lambda: media_client.request_exclusive_publication(half, 1),
        lambda: media_client.add_publication("aeron:ipc", 1).add_destination(half),
    ]
    for call in calls:
        with pytest.raises(
            headrace.ConfigError, match=r"^channel='aeron:ipc\?alias=.ud800': must be text that UTF-8"
        ):
            call()
    with pytest.raises(headrace.ConfigError, match=r"^label="):
        media_client.add_counter(1001, label="\udfff")


def test_settings_that_utf_8_cannot_encode_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = "\ud800"
    directory = str(tmp_path / "driver")
    calls = [
        ("directory", lambda: headrace.connect(cut)),
        ("client_name", lambda: headrace.connect(directory, client_name=cut)),
        ("directory", lambda: headrace.MediaDriver(directory=cut)),
        ("resolver_name", lambda: headrace.MediaDriver(directory=directory, resolver_name=cut)),
        ("aeron.dir", lambda: headrace.MediaDriver(properties={"aeron.dir": cut})),
    ]
    for name, call in calls:
        with pytest.raises(headrace.ConfigError, match=rf"^{name}='.ud800': must be text that UTF-8"):
            call()
    monkeypatch.setenv("AERON_DIR", os.fsdecode(b"/tmp/\xff"))
    for start in (headrace.connect, headrace.MediaDriver):
        with pytest.raises(headrace.ConfigError, match="must be text that UTF-8 can encode"):
            start()
