"""Groups of consumers: who reads what, what is remembered, and what happens when one dies."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive, ArchiveError, Consumer, ConsumerState, Record
from headrace.archive.server import groups
from tests.archive.test_named_streams import CHANNEL, STREAM, driver, published, running
from tests.helpers import TIMEOUT_S, await_true

__all__ = ["driver"]

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that is not heard is given up soon; those that live send each second."""
    monkeypatch.setattr(groups, "MEMBER_TIMEOUT_NS", 3_000_000_000)


def taken(consumer: Consumer, count: int) -> list[str]:
    """The payloads of the next records."""
    found = []
    for _ in range(count):
        record = consumer.receive(TIMEOUT_S)
        assert record is not None, f"{found}, waiting for {consumer.waiting_for}"
        found.append(record.payload.decode())
    return found


def all_of(consumers: list[Consumer], count: int) -> list[list[Record]]:
    """What each gets, until all have that many together."""
    found: list[list[Record]] = [[] for _ in consumers]

    def look() -> bool:
        for consumer, records in zip(consumers, found, strict=True):
            record = consumer.poll_record()
            if record is not None:
                records.append(record)
        return sum(map(len, found)) >= count

    await_true(look)
    return found


@pytest.fixture
def archive(driver: headrace.MediaDriver, tmp_path: Path) -> Iterator[Archive]:
    """A session with an archive that has a stream."""
    with running(driver, tmp_path) as archive:
        archive.declare("trades", CHANNEL, STREAM)
        archive.declare("keyed", CHANNEL, STREAM + 1, keys=True)
        yield archive


def test_a_group_goes_on_where_it_was(driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with driver.connect() as client:
        with running(driver, tmp_path, client) as archive:
            archive.declare("trades", CHANNEL, STREAM)
            published(client, ["a", "b", "c"])
            with archive.consumer("trades", "risk") as consumer:
                assert taken(consumer, 2) == ["a", "b"]
                consumer.commit(TIMEOUT_S)
            assert [one.name for one in archive.groups("trades")] == ["risk"]
        with running(driver, tmp_path, client) as archive:
            with archive.consumer("trades", "risk") as consumer:
                assert taken(consumer, 1) == ["c"]
            with archive.consumer("trades", "other") as consumer:
                assert taken(consumer, 3) == ["a", "b", "c"]


def test_what_is_given_and_not_asked_after_is_read_again(archive: Archive) -> None:
    published(archive.client, ["a", "b"])
    with archive.consumer("trades", "risk") as consumer:
        assert taken(consumer, 2) == ["a", "b"]
    with archive.consumer("trades", "risk") as consumer:
        assert taken(consumer, 1) == ["b"]


def test_members_share_the_recordings(archive: Archive) -> None:
    with (
        archive.consumer("trades", "risk", member="first") as first,
        archive.consumer("trades", "risk", member="second") as second,
    ):
        members = [first, second]
        await_true(
            lambda: (
                [one.poll_record() for one in members] == [None] * 2
                and all(one.state is ConsumerState.READING for one in members)
            )
        )
        for number in range(6):
            published(archive.client, [str(number)])
        found = all_of(members, 6)
        assert sorted(one.payload for records in found for one in records) == [
            b"%d" % one for one in range(6)
        ]
        assert {one.recording_id % 2 for one in found[0]} == {0}
        assert {one.recording_id % 2 for one in found[1]} == {1}
        await_true(lambda: archive.groups("trades")[0].members == ("first", "second"))


def test_another_member_takes_over_what_a_dead_one_had_not_committed(archive: Archive) -> None:
    published(archive.client, ["a", "b", "c"])
    with (
        archive.consumer("trades", "risk", member="alive") as alive,
        contextlib.closing(archive.consumer("trades", "risk", member="dead", commit_interval_s=None)) as dead,
    ):
        seen: list[str] = []

        def look() -> bool:
            for consumer in (alive, dead):
                record = consumer.poll_record()
                if record is not None:
                    seen.append(record.payload.decode())
            return len(seen) >= 3

        await_true(look)
        published(archive.client, ["d"])
        published(archive.client, ["e"])
        # It is never asked again. What it had and did not commit comes once more.
        await_true(lambda: _note(seen, alive) and set(seen) >= set("abcde"), 40)
        assert all(count <= 2 for count in Counter(seen).values())


def _note(seen: list[str], consumer: Consumer) -> bool:
    record = consumer.poll_record()
    if record is not None:
        seen.append(record.payload.decode())
    return True


def test_a_late_member_cannot_commit(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    published(archive.client, ["a"])
    consumer = archive.consumer("trades", "risk", commit_interval_s=None)
    assert taken(consumer, 1) == ["a"]
    monkeypatch.setattr(groups, "MEMBER_TIMEOUT_NS", 0)
    await_true(lambda: archive.groups("trades")[0].members == ())
    monkeypatch.undo()
    with pytest.raises(ArchiveError, match="is late"):
        consumer.commit(TIMEOUT_S)
    assert taken(consumer, 1) == ["a"]
    consumer.close()


def test_a_key_is_read_by_one_member_in_order(archive: Archive) -> None:
    keys = [b"key %d" % number for number in range(20)]
    with archive.add_publication("keyed") as publication:
        for number in range(100):
            publication.send(b"%d" % number, key=keys[number % 20], timeout_s=TIMEOUT_S)
        assert publication.next_number == 100
        with (
            archive.consumer("keyed", "risk", share="keys", member="first") as first,
            archive.consumer("keyed", "risk", share="keys", member="second") as second,
        ):
            found = all_of([first, second], 100)
            by_key: dict[bytes, list[int]] = {}
            for one in (one for records in found for one in records):
                by_key.setdefault(one.key, []).append(one.number)
            for numbers in by_key.values():
                assert sorted(set(numbers)) == numbers or len(set(numbers)) == 5
            assert sorted({one for numbers in by_key.values() for one in numbers}) == list(range(100))
    with archive.add_publication("keyed", timeout_s=TIMEOUT_S) as publication:
        assert publication.next_number == 100


def test_double_numbers_are_passed_over_and_missing_ones_are_counted(archive: Archive) -> None:
    from headrace.archive import Envelope

    with archive.add_publication("keyed") as publication:
        for number in (0, 1, 1, 2, 5):
            publication.publish(Envelope(b"%d" % number, number=number).encode(), timeout_s=TIMEOUT_S)
        with archive.consumer("keyed", "risk") as consumer:
            assert taken(consumer, 4) == ["0", "1", "2", "5"]
            assert (consumer.duplicate_count, consumer.missing_count) == (1, 2)


def test_wrong_consumers_are_refused(archive: Archive) -> None:
    with pytest.raises(ArchiveError, match="no stream is declared as nothing"):
        archive.consumer("nothing", "risk")
    with pytest.raises(headrace.ConfigError, match="declare trades with keys=True"):
        archive.consumer("trades", "risk", share="keys")
    with pytest.raises(headrace.ConfigError, match="must be 1 to 100 letters"):
        archive.consumer("trades", "a group")
    with (
        archive.consumer("keyed", "risk") as first,
        archive.consumer("keyed", "risk", share="keys") as second,
    ):
        await_true(lambda: first.poll_record() is None and first.state is ConsumerState.READING)
        with pytest.raises(ArchiveError, match="shares recordings, and member"):
            second.receive(TIMEOUT_S)


def test_a_table_has_the_latest_value_of_each_key(archive: Archive) -> None:
    with archive.add_publication("keyed") as publication:
        for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), (b"c", b"")):
            publication.send(value, key=key, timeout_s=TIMEOUT_S)
        changes: list[tuple[bytes, bytes | None]] = []
        with archive.table("keyed", on_change=lambda key, value: changes.append((key, value))) as table:
            table.wait_until_current(TIMEOUT_S)
            assert dict(table) == {b"a": b"3", b"b": b"2"}
            publication.send(b"5", key=b"b", timeout_s=TIMEOUT_S)
            await_true(table.refresh)
            assert table[b"b"] == b"5"
            assert changes[-2:] == [(b"c", None), (b"b", b"5")]


def test_a_table_of_messages_without_envelopes_needs_an_entry(archive: Archive) -> None:
    published(archive.client, ["a=1", "b=2", "a=3"])
    with pytest.raises(headrace.ConfigError, match="or give an entry"):
        archive.table("trades")
    with archive.table("trades", lambda data: tuple(data.split(b"="))) as table:  # type: ignore[arg-type,return-value]
        table.wait_until_current(TIMEOUT_S)
        assert dict(table) == {b"a": b"3", b"b": b"2"}
