"""Arguments that are refused by name: those of the core, and those whose mistakes nothing else would show."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import Awaitable
from pathlib import Path

import pytest

import headrace
from headrace.archive.client.async_archive import AsyncArchive
from headrace.client import Sequencer, SessionStreams

pytestmark = pytest.mark.boundary


class Odd:
    """Of no type that a method takes."""

    def __repr__(self):
        return "<odd>"


# What the other arguments of a call are, of those that have no default.
RIGHT = {
    "count": 1,
    "data": b"x",
    "handler": lambda *_: None,
    "length": 8,
    "limit_bytes": 0,
    "limit_position": 0,
    "messages": [b"x"],
    "payload": b"x",
    "recording_id": 0,
    "source": "/nowhere",
    "stream_id": 10,
    "read": lambda *_: None,
    "within": 0,
    "deliver": lambda *_: None,
    "sessions": {},
    "place": headrace.client.LogPlace(),
    "timestamp": 0,
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


def test_streams_of_a_session(open_stream):
    _, subscription = open_stream()
    values = {"egress": subscription, "cluster_session_id": 1, "leadership_term_id": 0, "make": tuple}
    values |= {"length_max": None, "keep_alive_interval_ns": 0}
    RIGHT.update(values, image=None)
    assert assert_refused(SessionStreams) == len(values)
    streams = SessionStreams(**values)
    assert_refused(streams.follow)
    with pytest.raises(TypeError, match="publication=3: must be a Publication or None"):
        streams.publication = 3
    with pytest.raises(TypeError, match="accept=3: must be callable"):
        streams.poll(print, 1, 3, None)


@pytest.mark.parametrize(
    "made",
    [
        headrace.IdleStrategy,
        headrace.Message,
        headrace.MessageFilter,
        headrace.Poller,
        headrace.RecordedFrames,
        headrace.RecordingReader,
    ],
)
def test_what_makes_something(made):
    assert assert_refused(made) >= 1


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda archive: archive.find_recording(2**63), "recording_id: 9223372036854775808"),
        (lambda archive: archive.stop_recording("aeron:ipc", 2**31), "stream_id: 2147483648"),
        (lambda archive: archive.list_recordings(stream_id=2**31), "stream_id: 2147483648"),
        (
            lambda archive: archive.replay(0, limit_counter_id=2**31),
            "limit_counter_id: 2147483648",
        ),
        (
            lambda archive: archive.start_replay(0, "aeron:ipc", 1, file_io_max_length=2**31),
            "file_io_max_length: 2147483648",
        ),
        (
            lambda archive: archive.replicate(0, "aeron:ipc", destination_id=2**63),
            "dst_recording_id: 9223372036854775808",
        ),
        (
            lambda archive: archive.replicate(0, "aeron:ipc", session_id=2**31),
            "session_id: 2147483648",
        ),
    ],
)
def test_numbers_that_are_too_long_for_a_request(tmp_path, ask, message):
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as driver,
        driver.connect_archive() as archive,
        pytest.raises(headrace.sbe.EncodeError, match=message),
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


@pytest.mark.parametrize("timeout_s", [-1, float("nan")])
def test_time_outs_of_requests_that_are_none(media_client, timeout_s):
    refused = pytest.raises(
        headrace.ConfigError, match=r"^timeout_s=.*: must be a number of seconds of at least"
    )
    with refused:
        headrace.Requester(media_client, "aeron:ipc", 40, timeout_s=timeout_s)
    with headrace.Requester(media_client, "aeron:ipc", 40) as requester, refused:
        requester.request(b"", timeout_s)
    with headrace.Requester(media_client, "aeron:ipc", 40) as requester, refused:
        asyncio.run(requester.request_async(b"", timeout_s))


@pytest.mark.parametrize("name", ["on_signal", "on_error"])
def test_handlers_that_cannot_be_called_are_refused_before_anything_happens(media_client, name):
    with pytest.raises(TypeError, match=f"^{name}=3: must be callable"):
        headrace.Archive.connect(media_client, **{name: 3})
    with pytest.raises(TypeError, match=f"^{name}=3: must be callable"):
        asyncio.run(AsyncArchive.connect(media_client, **{name: 3}))


def test_part_of_a_byte_is_no_retention():
    with pytest.raises(headrace.ConfigError, match=r"bytes=1\.5: must be from 1"):
        headrace.archive.Retention(bytes=1.5)


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
