"""The event log as programs read it."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import pytest

import headrace
from headrace import _core
from headrace.event_log import EVENT_FILE, Event, EventFilter, EventReader, read_events
from headrace.tools import DriverFileMissingError, FileFormatError


def append(
    log: _core.EventLog, id: int, *, kind: str = "image", time_ns: int = 5, stream_id: int = 1001
) -> None:
    assert log.append(
        time_ns,
        kind,
        id,
        "Active",
        "Draining",
        "silent",
        parent_id=7,
        stream_id=stream_id,
        detail="aeron:ipc",
    )


def ids(events: list[Event]) -> list[int]:
    return [event.id for event in events]


def test_an_event_comes_back_as_it_was_written(tmp_path: Path) -> None:
    append(_core.EventLog(tmp_path, 8, 1), 3)
    (event,) = read_events(tmp_path)
    assert event == Event(1, 5, "image", 3, 7, 1001, None, "Active", "Draining", "silent", "aeron:ipc", False)
    assert read_events(tmp_path / EVENT_FILE) == [event]


def test_a_reader_gives_each_event_once_and_counts_what_it_missed(tmp_path: Path) -> None:
    log = _core.EventLog(tmp_path, 4, 1)
    with EventReader(tmp_path) as reader:
        append(log, 1)
        assert ids(reader.poll()) == [1]
        assert reader.poll() == []
        for number in range(2, 10):
            append(log, number)
        assert ids(reader.poll()) == [6, 7, 8, 9]
        assert (reader.lost_count, reader.limit, reader.pid) == (4, 4, os.getpid())
        assert reader.dropped_count == 0


def test_conditions_must_all_hold(tmp_path: Path) -> None:
    log = _core.EventLog(tmp_path, 8, 1)
    append(log, 1)
    append(log, 2, kind="client")
    append(log, 3, stream_id=5, time_ns=9)
    log.append(5, "recording", 4, "Recording", "Inactive", "failed", is_fault=True)
    conditions = {
        EventFilter(kinds=("image",)): [1, 3],
        EventFilter(kinds=("image",), stream_ids=(5,)): [3],
        EventFilter(ids=(7,)): [1, 2, 3],
        EventFilter(ids=(2,)): [2],
        EventFilter(session_ids=(1,)): [],
        EventFilter(since_ns=6): [3],
        EventFilter(faults_only=True): [4],
    }
    for condition, expected in conditions.items():
        assert ids(read_events(tmp_path, condition)) == expected, condition


@pytest.mark.parametrize("kinds", [["imag"], "image"])
def test_an_unknown_kind_is_refused_with_those_there_are(kinds: Collection[str]) -> None:
    with pytest.raises(headrace.ConfigError, match=r"kinds='im?a?g?': must be of driver, client"):
        EventFilter(kinds=kinds)


def test_a_reader_goes_on_with_the_events_of_the_next_life(tmp_path: Path) -> None:
    first = _core.EventLog(tmp_path, 4, 1)
    with EventReader(tmp_path) as reader:
        append(first, 1)
        second = _core.EventLog(tmp_path, 4, 2)
        append(second, 2)
        append(second, 3)
        assert ids(reader.poll()) == [1, 2, 3]
        assert reader.poll() == []


def test_what_a_removed_directory_had_stays_readable(tmp_path: Path) -> None:
    log = _core.EventLog(tmp_path, 4, 1)
    with EventReader(tmp_path) as reader:
        append(log, 1)
        (tmp_path / EVENT_FILE).unlink()
        assert ids(reader.poll()) == [1]
    with pytest.raises(ValueError, match="is closed"):
        reader.poll()


def test_a_directory_without_events_and_a_damaged_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(DriverFileMissingError, match="no event log"):
        EventReader(tmp_path)
    (tmp_path / EVENT_FILE).write_bytes(b"\2" + b"\0" * 1000)
    with pytest.raises(FileFormatError, match="version=2, and this reader knows version 1"):
        read_events(tmp_path)


def test_a_file_that_another_program_cuts_short_is_an_error(tmp_path: Path) -> None:
    """Reading it through a map would end the process by a signal."""
    log = _core.EventLog(tmp_path, 64, 1)
    for number in range(1, 40):
        append(log, number)
    # A reader of a copy: the log's own process keeps its file whole.
    copy = tmp_path / "copy.dat"
    copy.write_bytes((tmp_path / EVENT_FILE).read_bytes())
    with EventReader(copy) as reader:
        for length in (5000, 0):
            os.truncate(copy, length)
            with pytest.raises(FileFormatError, match="cut short"):
                reader.poll()
