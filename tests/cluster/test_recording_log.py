"""The recording log of a member: what it holds after each change, after a kill in each, and when it is damaged."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace._agent.storage import DirectoryStorage
from headrace.cluster.errors import ClusterFileError
from headrace.cluster.files.recording_log import RECORDING_LOG_NAME, RecordingLog
from headrace.cluster.files.recording_log_entries import ENDPOINT_LENGTH_MAX, Entry, EntryType

LOG_ID = 7
TIME = 1_000


def opened(directory: Path, *, read_only: bool = False) -> RecordingLog:
    return RecordingLog(DirectoryStorage(directory), read_only=read_only)


def snapshot(
    recording_id: int, term: int, base: int, position: int, service_id: int = -1, endpoint: str | None = None
) -> Entry:
    return Entry(
        recording_id=recording_id,
        leadership_term_id=term,
        term_base_log_position=base,
        log_position=position,
        timestamp=TIME,
        service_id=service_id,
        type=EntryType.SNAPSHOT if endpoint is None else EntryType.STANDBY_SNAPSHOT,
        archive_endpoint=endpoint,
    )


def add_snapshot(log: RecordingLog, first_id: int, term: int, base: int, position: int) -> None:
    """Of two services and the consensus module, as a member appends them."""
    for number, service_id in enumerate((1, 0, -1)):
        log.append_snapshot(snapshot(first_id + number, term, base, position, service_id))


def shown(log: RecordingLog) -> list[tuple[int, ...]]:
    return [
        (one.type, one.leadership_term_id, one.log_position, one.service_id, one.is_valid, one.recording_id)
        for one in log
    ]


def test_terms_end_where_the_next_begins(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        log.append_term(LOG_ID, 2, 4096, TIME)
        log.append_term(LOG_ID, 1, 1024, TIME)
        assert [one.log_position for one in log] == [1024, 4096, -1]
        log.commit_log_position(2, 8192)
        assert (log.log_recording_id, log.last_term) == (LOG_ID, log.term(2))
    with opened(tmp_path, read_only=True) as log:
        assert [(one.leadership_term_id, one.log_position) for one in log] == [
            (0, 1024),
            (1, 4096),
            (2, 8192),
        ]


def test_a_snapshot_is_that_of_the_module_and_of_each_service(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        add_snapshot(log, 10, 0, 0, 640)
        add_snapshot(log, 20, 0, 0, 1280)
    with opened(tmp_path, read_only=True) as log:
        assert [(one.recording_id, one.service_id) for one in log.latest_snapshot(2)] == [
            (22, -1),
            (21, 0),
            (20, 1),
        ]
        with pytest.raises(
            ClusterFileError, match=r"snapshot missing for service: .*has 6 of service_count=7"
        ):
            log.latest_snapshot(7)


def test_a_backup_copies_the_whole_snapshot_up_to_a_position(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        add_snapshot(log, 10, 0, 0, 640)
        add_snapshot(log, 20, 0, 0, 1280)
        # A kill left the parts of the services alone.
        for number, service_id in enumerate((1, 0)):
            log.append_snapshot(snapshot(30 + number, 0, 0, 1920, service_id))
        for position, first_id in ((1 << 62, 20), (1280, 20), (1279, 10), (0, 10)):
            found = [(one.recording_id, one.service_id) for one in log.snapshot_up_to(position, 2)]
            assert found == [(first_id, 1), (first_id + 1, 0), (first_id + 2, -1)]
        assert log.snapshot_up_to(1 << 62, 3) == []


def test_an_invalid_snapshot_is_not_used_and_comes_back_when_it_is_taken_again(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        add_snapshot(log, 10, 0, 0, 640)
        add_snapshot(log, 20, 0, 0, 1280)
        log.append_snapshot(snapshot(30, 0, 0, 1280, endpoint="standby:8010"))
        assert log.invalidate_latest_snapshot()
        assert [one.recording_id for one in log.latest_snapshot(2)] == [12, 11, 10]
        assert log.invalidate_latest_snapshot()
        assert not log.invalidate_latest_snapshot()
        assert log.latest_snapshot(2) == []
        count = len(log)
        add_snapshot(log, 40, 0, 0, 1280)
        restored = log.append_snapshot(snapshot(50, 0, 0, 1280, endpoint="standby:8010"))
        assert len(log) == count
        assert restored.archive_endpoint == "standby:8010"
    with opened(tmp_path, read_only=True) as log:
        assert [one.recording_id for one in log.latest_snapshot(2)] == [42, 41, 40]
        assert [one.is_valid for one in log if one.recording_id == 50] == [True]


def test_terms_that_were_not_seen_are_filled_in(tmp_path: Path) -> None:
    joined = Entry(
        recording_id=LOG_ID,
        leadership_term_id=3,
        term_base_log_position=4096,
        log_position=-1,
        timestamp=TIME,
        type=EntryType.TERM,
    )
    with opened(tmp_path) as log:
        log.ensure_coherent(LOG_ID, dataclasses.replace(joined, leadership_term_id=1), joined)
        assert [(one.leadership_term_id, one.term_base_log_position, one.log_position) for one in log] == [
            (1, 4096, 4096),
            (2, 4096, 4096),
            (3, 4096, -1),
        ]
        later = dataclasses.replace(
            joined, leadership_term_id=5, term_base_log_position=8192, log_position=9216
        )
        log.ensure_coherent(LOG_ID, None, later)
        assert [(one.term_base_log_position, one.log_position) for one in log][2:] == [
            (4096, 8192),
            (8192, 8192),
            (8192, 9216),
        ]
        log.ensure_coherent(LOG_ID, None, joined)
        assert len(log) == 5
        ahead = dataclasses.replace(later, leadership_term_id=6, term_base_log_position=-1, log_position=-1)
        log.ensure_coherent(LOG_ID, None, ahead)
        assert log.last_term is not None
        assert log.last_term.term_base_log_position == 9216
        with pytest.raises(ClusterFileError, match="term 6 has no end, and term 7 has no begin"):
            log.ensure_coherent(LOG_ID, None, dataclasses.replace(ahead, leadership_term_id=7))


def test_sorting_keeps_what_is_invalid_invalid(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 1, 1024, TIME)
        log.append_snapshot(snapshot(11, 1, 1024, 2048))
        log.append_term(LOG_ID, 0, 0, TIME)
        log.append_snapshot(snapshot(12, 0, 0, 512, endpoint="standby:8010"))
        log.invalidate_latest_snapshot()
        before = shown(log)
        assert log.sort()
        assert not log.sort()
        assert shown(log) == before
        assert [one.index for one in log] == [0, 1, 2, 3]
        log.append_term(LOG_ID, 2, 4096, TIME)
    with opened(tmp_path, read_only=True) as log:
        ended = (*before[2][:2], 4096, *before[2][3:])
        assert shown(log)[:4] == [*before[:2], ended, before[3]]
        assert len(log) == 5


def test_a_seed_is_the_latest_snapshot_at_position_0(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 4, 1024, TIME)
        add_snapshot(log, 10, 4, 1024, 2048)
        assert log.seed_from_latest_snapshot() == 3
        assert [(one.term_base_log_position, one.log_position) for one in log.latest_snapshot(2)] == [
            (0, 0)
        ] * 3
        assert log.last_term is None
    kept = (tmp_path / "recording.log.bak").read_bytes()
    assert len(kept) == 4 * 64


def test_without_a_snapshot_a_seed_is_no_file(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        assert log.seed_from_latest_snapshot() == 0
    assert not (tmp_path / RECORDING_LOG_NAME).exists()


@pytest.mark.parametrize("length", range(65))
def test_what_a_kill_leaves_of_an_appended_record_is_cut_off(tmp_path: Path, length: int) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        log.append_term(LOG_ID, 1, 1024, TIME)
    path = tmp_path / RECORDING_LOG_NAME
    path.write_bytes(path.read_bytes()[: 64 + length])
    with opened(tmp_path) as log:
        assert len(log) == (2 if length == 64 else 1)
        log.append_term(LOG_ID, 5, 2048, TIME)
    with opened(tmp_path, read_only=True) as log:
        assert [one.leadership_term_id for one in log] == ([0, 1, 5] if length == 64 else [0, 5])


def test_a_removed_record_counts_and_is_not_shown(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        log.append_term(LOG_ID, 1, 1024, TIME)
    data = bytearray((tmp_path / RECORDING_LOG_NAME).read_bytes())
    data[44:48] = b"\xff" * 4
    (tmp_path / RECORDING_LOG_NAME).write_bytes(data)
    with opened(tmp_path) as log:
        assert [one.index for one in log] == [1]
        assert log.sort()
        assert [one.index for one in log] == [0]


def with_type(kind: int) -> Callable[[bytearray], None]:
    return lambda data: data.__setitem__(slice(44, 48), kind.to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (with_type(3), r"record 0 at offset=0 has type=3, which is not 0, 1 or 2"),
        (
            lambda data: (with_type(2)(data), data.__setitem__(slice(48, 52), b"\xcd\x0f\0\0")),
            "endpoint of length=4045, above 4044",
        ),
        (lambda data: data.__setitem__(slice(0, 8), b"\xff" * 8), "recording_id=-1"),
        (lambda data: data.__setitem__(slice(0, 64), bytes(64)), "record 0 at offset=0 is empty, and others"),
        (lambda data: data.__setitem__(slice(0, 8), b"\1" + bytes(7)), "all terms are one recording"),
        (
            lambda data: data.__setitem__(slice(64 + 24, 64 + 32), b"\xfe" + b"\xff" * 7),
            "damaged: .* log_position=-2",
        ),
        (lambda data: data.__setitem__(slice(8, 16), b"\1" + bytes(7)), "leadership term 1 has two entries"),
    ],
)
def test_a_damaged_file_is_refused_by_name(
    tmp_path: Path, damage: Callable[[bytearray], None], said: str
) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        log.append_term(LOG_ID, 1, 1024, TIME)
    path = tmp_path / RECORDING_LOG_NAME
    data = bytearray(path.read_bytes())
    damage(data)
    path.write_bytes(data)
    for read_only in (True, False):
        with pytest.raises(ClusterFileError, match=said):
            opened(tmp_path, read_only=read_only)
    assert path.read_bytes() == data


def test_a_damaged_endpoint_is_sorted_byte_for_byte(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_snapshot(snapshot(11, 1, 1024, 2048, endpoint="standby:8010"))
        log.append_term(LOG_ID, 0, 0, TIME)
    path = tmp_path / RECORDING_LOG_NAME
    data = path.read_bytes().replace(b"standby", bytes([0xFF, 0x80, 0, 0x7F, 0xE9, 0x1B, 0xC3]))
    path.write_bytes(data)
    with opened(tmp_path) as log:
        assert log.sort()
    assert path.read_bytes() == data[-64:] + data[:-64]


@pytest.mark.parametrize("length", [1 << 29, 1 << 40])
def test_a_file_that_no_member_writes_is_not_read(tmp_path: Path, length: int) -> None:
    with (tmp_path / RECORDING_LOG_NAME).open("wb") as file:
        file.truncate(length)
    for read_only in (True, False):
        with pytest.raises(ClusterFileError, match=f"length={length} is above 268435456"):
            opened(tmp_path, read_only=read_only)
    assert (tmp_path / RECORDING_LOG_NAME).stat().st_size == length


def test_many_terms_cost_as_much_each_as_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0

    def look(entry: Entry, name: str) -> object:
        nonlocal counted
        counted += name in ("is_valid", "leadership_term_id")
        return object.__getattribute__(entry, name)

    costs = []
    monkeypatch.setattr(Entry, "__getattribute__", look, raising=False)
    for count in (100, 800):
        directory = tmp_path / str(count)
        directory.mkdir()
        counted = 0
        with opened(directory) as log:
            joined = Entry(
                recording_id=LOG_ID,
                leadership_term_id=count - 1,
                term_base_log_position=0,
                log_position=-1,
                timestamp=TIME,
                type=EntryType.TERM,
            )
            log.ensure_coherent(LOG_ID, dataclasses.replace(joined, leadership_term_id=0), joined)
            assert len(log) == count
        with opened(directory) as log:
            assert log.log_recording_id == LOG_ID
        costs.append(counted / count)
    assert costs[1] < 2 * costs[0]


def test_bad_entries_are_refused_and_change_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        before = (tmp_path / RECORDING_LOG_NAME).read_bytes()
        for wrong, said in (
            (lambda: log.append_term(8, 1, 0, TIME), "all terms are one recording"),
            (lambda: log.append_term(LOG_ID, 0, 0, TIME), "two entries"),
            (lambda: log.append_term(-1, 1, 0, TIME), "recording_id=-1"),
            (lambda: log.append_term(LOG_ID, 1, -1, TIME), "term_base_log_position=-1 is below 0"),
            (lambda: log.append_snapshot(snapshot(-1, 0, 0, 0)), "recording_id=-1"),
            (lambda: log.append_snapshot(snapshot(1, 0, 0, -1)), "log_position=-1 is below 0"),
            (
                lambda: log.append_snapshot(snapshot(1, 0, 0, 0, endpoint="e" * 4045)),
                "4045 characters, above",
            ),
            (lambda: log.append_snapshot(snapshot(1, 0, 0, 0, endpoint="\u00e9:1")), "is not ASCII"),
            (lambda: log.append_snapshot(dataclasses.replace(next(iter(log)))), "append_term adds terms"),
            (lambda: log.commit_log_position(9, 0), "unknown leadership_term_id=9"),
        ):
            with pytest.raises(ClusterFileError, match=said):
                wrong()
        assert (tmp_path / RECORDING_LOG_NAME).read_bytes() == before


def test_an_endpoint_of_each_length_comes_back(tmp_path: Path) -> None:
    lengths = [*range(1, 200), ENDPOINT_LENGTH_MAX]
    with opened(tmp_path) as log:
        for number, length in enumerate(lengths):
            log.append_snapshot(snapshot(number, 0, 0, number, endpoint="e" * length))
    with opened(tmp_path, read_only=True) as log:
        found = [one.archive_endpoint for one in log]
    assert found == ["e" * length for length in lengths]
    spans = itertools.pairwise(one.offset for one in log)
    assert all((after - before) % 64 == 0 for before, after in spans)
