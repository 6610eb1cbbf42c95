"""Named streams: recorded whenever the archive runs, and read by name across publishers and restarts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.archive import (
    Archive,
    ArchiveError,
    ArchiveServer,
    ArchiveTimeoutError,
    Place,
    Retention,
    StreamFollow,
    extension_channel,
)
from headrace.archive.files.declarations import declared_streams
from headrace.archive.protocol.named_stream import NamedStream
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

CHANNEL, STREAM = "aeron:ipc?term-length=64k", 1001


@pytest.fixture
def driver() -> Iterator[headrace.MediaDriver]:
    """A driver for archive and programs."""
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        yield driver


@contextlib.contextmanager
def running(
    driver: headrace.MediaDriver, place: Path, client: headrace.Client | None = None
) -> Iterator[Archive]:
    """An archive on a directory, and a session with it, of a client that may outlive it."""
    with (
        ArchiveServer(
            driver=driver, archive_directory=place, control_channel_enabled=False, threading_mode="SHARED"
        ),
        Archive.connect(client, driver=None if client else driver) as archive,
    ):
        yield archive


def published(client: headrace.Client, texts: list[str], channel: str = CHANNEL) -> None:
    """Send messages, which a recording takes."""
    added = []

    def is_added() -> bool:
        """Whether the driver takes it: one of the same session may still be closing."""
        with contextlib.suppress(headrace.RegistrationError):
            added.append(client.add_exclusive_publication(channel, STREAM))
        return bool(added)

    await_true(is_added)
    with added[0] as publication:
        for text in texts:
            publication.offer_blocking(text.encode(), timeout_s=TIMEOUT_S)
        end = publication.position
        session_id = publication.session_id
        with Archive.connect(client) as archive:

            def is_recorded() -> bool:
                found = archive.find_last_matching_recording("", STREAM, session_id)
                return found is not None and archive.max_recorded_position(found) == end

            await_true(is_recorded)


def taken(follow: StreamFollow, count: int) -> list[str]:
    """The next messages."""
    messages = []
    for _ in range(count):
        message = follow.receive(TIMEOUT_S)
        assert message is not None, f"{messages}, waiting for {follow.waiting_for}"
        messages.append(message.payload.decode())
    return messages


def test_a_declared_stream_is_recorded_after_each_restart(
    driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    with driver.connect() as client:
        with running(driver, tmp_path) as archive:
            archive.declare("trades", CHANNEL, STREAM)
            published(client, ["a", "b"])
        with running(driver, tmp_path) as archive:
            assert [one.name for one in archive.streams()] == ["trades"]
            published(client, ["c"])
            with archive.follow("trades", start="earliest") as follow:
                assert taken(follow, 3) == ["a", "b", "c"]
                published(client, ["d"])
                assert taken(follow, 1) == ["d"]
            assert len(archive.list_recordings()) == 3


def test_a_reader_lives_through_restarts_of_archive_and_publisher(
    driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    with driver.connect() as client, contextlib.ExitStack() as stack:
        with running(driver, tmp_path, client) as archive:
            archive.declare("trades", CHANNEL, STREAM)
            follow = archive.follow("trades", start="earliest")
            stack.enter_context(follow)
            published(client, ["a"])
            assert taken(follow, 1) == ["a"]
        with running(driver, tmp_path, client) as archive:
            published(client, ["b"])
            assert taken(follow, 1) == ["b"]
            await_true(lambda: follow.poll_message() is None and follow.waiting_for)
            assert "a publisher" in str(follow.waiting_for)


def test_a_publisher_that_goes_on_extends_its_recording(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with (
        driver.connect() as client,
        client.add_exclusive_publication(CHANNEL, STREAM) as publication,
    ):
        with running(driver, tmp_path) as archive:
            archive.declare("trades", CHANNEL, STREAM)
            publication.offer_blocking(b"a", timeout_s=TIMEOUT_S)
            await_true(archive.list_recordings)
            await_true(lambda: archive.max_recorded_position(0) == publication.position)
        with running(driver, tmp_path) as archive:
            publication.offer_blocking(b"b", timeout_s=TIMEOUT_S)
            await_true(lambda: archive.max_recorded_position(0) == publication.position)
            with archive.follow("trades", start="earliest") as follow:
                assert taken(follow, 2) == ["a", "b"]
            assert len(archive.list_recordings()) == 1


def test_a_place_misses_nothing_and_repeats_nothing(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with driver.connect() as client, running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        published(client, ["a", "b"])
        with archive.follow("trades", start="earliest") as follow:
            assert taken(follow, 1) == ["a"]
            assert follow.place is not None
            text = follow.place.to_json()
        published(client, ["c"])
        with archive.follow("trades", start=Place.from_json(text)) as follow:
            assert taken(follow, 2) == ["b", "c"]
            end = follow.place
        assert end is not None
        published(client, ["d"])
        # One that is extended is read from where it was.
        stopped = archive.list_recordings()[1]
        await_true(lambda: not archive.list_recordings()[1].is_active)
        stopped = archive.list_recordings()[1]
        again = extension_channel(f"{CHANNEL}|session-id={stopped.session_id}", stopped)
        published(client, ["e"], again)
        assert len(archive.list_recordings()) == 3
        with archive.follow("trades", start=end) as follow:
            assert sorted(taken(follow, 2)) == ["d", "e"]
            await_true(lambda: follow.poll_message() is None and follow.waiting_for)


def test_a_place_with_a_hole_is_kept_until_the_archive_has_answered(
    driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    with driver.connect() as client, running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        for text in ("a", "b", "c"):
            published(client, [text])
        hole = Place(0, {0: 64, 2: 64})
        with archive.follow("trades", start=hole) as follow:
            assert follow.place == hole
            assert taken(follow, 1) == ["b"]
            await_true(lambda: follow.poll_message() is None and follow.waiting_for)


def test_latest_begins_with_what_is_recorded_from_then_on(
    driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    with driver.connect() as client, running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        published(client, ["a"])
        with archive.follow("trades") as follow:
            await_true(lambda: follow.poll_message() is None and follow.place is not None)
            published(client, ["b"])
            assert taken(follow, 1) == ["b"]


def test_publishers_side_by_side_are_read_side_by_side(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with driver.connect() as client, running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        with (
            client.add_exclusive_publication(CHANNEL, STREAM) as first,
            client.add_exclusive_publication(CHANNEL, STREAM) as second,
            archive.follow("trades", start="earliest") as follow,
        ):
            seen = []
            for number in range(5):
                for publication in (first, second):
                    publication.offer_blocking(
                        b"%d %d" % (publication.session_id, number), timeout_s=TIMEOUT_S
                    )
                seen += taken(follow, 2)
            await_true(lambda: follow.poll_message() is None and follow.is_live)
        for publication in (first, second):
            mine = [text for text in seen if text.startswith(f"{publication.session_id} ")]
            assert [int(text.split()[1]) for text in mine] == list(range(5))


def test_a_client_cannot_record_it_twice_or_stop_it(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        await_true(archive.list_recording_subscriptions)
        with pytest.raises(ArchiveError, match="as stream trades: publish with add_publication"):
            archive.add_recorded_publication(CHANNEL, STREAM)
        with pytest.raises(ArchiveError, match="stream trades is declared"):
            archive.stop_recording(CHANNEL, STREAM)
        with pytest.raises(ArchiveError, match="is declared as trades"):
            archive.declare("more", CHANNEL, STREAM)
        assert archive.undeclare("trades")
        assert not archive.undeclare("trades")
        await_true(lambda: not archive.list_recording_subscriptions())
        archive.add_recorded_publication(CHANNEL, STREAM).close()


def test_a_stream_that_moves_keeps_its_beginning(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with driver.connect() as client, running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        published(client, ["a"])
        archive.declare("trades", "aeron:udp?endpoint=127.0.0.1:0|alias=x|term-length=64k", STREAM)
        with archive.follow("trades", start="earliest") as follow:
            assert taken(follow, 1) == ["a"]


def test_retention_of_a_stream_is_that_of_each_recording(
    driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    with driver.connect() as client, running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        published(client, ["a"])
        archive.declare("trades", CHANNEL, STREAM, retention=Retention(hours=24))
        published(client, ["b"])
        kept = [one.retention for one in archive.list_recordings()]
        assert kept == [Retention(hours=24, ended_hours=24)] * 2
        assert archive.streams() == [NamedStream("trades", CHANNEL, STREAM, retention=Retention(hours=24))]
    from headrace.archive import DirectoryStorage

    assert declared_streams(DirectoryStorage(tmp_path))["trades"].retention == Retention(hours=24)


def test_an_unknown_stream_is_an_error(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with (
        running(driver, tmp_path) as archive,
        archive.follow("trades") as follow,
        pytest.raises(ArchiveError, match="no stream is declared as trades"),
    ):
        follow.receive(TIMEOUT_S)


def test_a_publisher_goes_on_where_it_stopped(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        with archive.add_publication("trades") as trades:
            assert (trades.resumed_position, trades.last_message) == (None, None)
            for number in range(3):
                end = trades.publish(b"%d" % number, timeout_s=TIMEOUT_S)
    with running(driver, tmp_path) as archive:
        with archive.add_publication("trades", timeout_s=TIMEOUT_S) as trades:
            assert (trades.resumed_position, trades.last_message) == (end, b"2")
            trades.publish(b"3", timeout_s=TIMEOUT_S)
        with archive.follow("trades", start="earliest") as follow:
            assert taken(follow, 4) == ["0", "1", "2", "3"]
        assert len(archive.list_recordings()) == 1


def test_one_publisher_runs_once(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        with (
            archive.add_publication("trades", publisher="a"),
            archive.add_publication("trades", publisher="b"),
            pytest.raises(ArchiveTimeoutError, match="publisher 'a' of trades: recording 0 of it goes on"),
        ):
            archive.add_publication("trades", publisher="a", timeout_s=0)


def test_a_stream_is_read_as_columns(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with driver.connect() as client, running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        assert len(archive.read("trades")) == 0
        assert archive.read("trades").to_arrow().num_rows == 0
        published(client, ["aa", "bb"])
        published(client, ["cc"])
        data = archive.read("trades")
        assert list(data) == [b"aa", b"bb", b"cc"]
        table = data.to_arrow()
        assert table["payload"].to_pylist() == [b"aa", b"bb", b"cc"]
        assert table["recording_id"].to_pylist() == [0, 0, 1]
        assert data.to_numpy("S2").tolist() == [b"aa", b"bb", b"cc"]
        assert data.to_polars()["payload"].to_list() == [b"aa", b"bb", b"cc"]
        assert data.to_pandas()["position"].tolist() == [64, 128, 64]
