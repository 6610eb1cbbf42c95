"""Segments that leave and join recordings, by the requests of a client: done, or refused with nothing changed."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive, ErrorCode, RecordingSignal, extension_channel
from headrace.archive.aio import AsyncArchive
from tests.helpers import await_true

pytestmark = pytest.mark.system

CHANNEL = "aeron:ipc?term-length=64k"
SEGMENT = 64 * 1024
# So many messages, each with its header, fill a segment file to its last byte.
FRAME = 1024
PER_SEGMENT = SEGMENT // FRAME


def messages(first: int, count: int) -> list[bytes]:
    """Messages that say which they are."""
    return [index.to_bytes(4, "little") * ((FRAME - 32) // 4) for index in range(first, first + count)]


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    """An archive with segment files of one term, in which nothing goes wrong."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "archive", segment_file_length=SEGMENT
    ) as archiving:
        yield archiving
        assert archiving.archive.failure is None
        assert archiving.archive.error_count == 0


@pytest.fixture
def archive(archiving: headrace.ArchivingMediaDriver) -> Iterator[Archive]:
    """A session with it."""
    with archiving.connect_archive() as archive:
        yield archive


@pytest.fixture
def directory(archiving: headrace.ArchivingMediaDriver) -> Path:
    """Where its files are."""
    return Path(archiving.archive.config.archive_directory)


def record(archive: Archive, count: int, first: int = 0, channel: str = CHANNEL, stream_id: int = 7) -> int:
    """Record messages to the end; gives the recording's id."""
    with archive.add_recorded_publication(channel, stream_id) as publication:
        for message in messages(first, count):
            publication.offer_blocking(message)
    return archive.await_signal(RecordingSignal.STOP).recording_id


def record_after(archive: Archive, recording_id: int, count: int, first: int) -> int:
    """A recording that begins where another ends."""
    found = archive.find_recording(recording_id)
    assert found is not None
    return record(archive, count, first, extension_channel(CHANNEL, found))


def replayed(archive: Archive, recording_id: int) -> list[bytes]:
    """All that a replay gives."""
    with archive.replay(recording_id, stream_id=70) as replay:
        return [bytes(message.payload) for message in replay]


def bases(directory: Path, recording_id: int) -> list[int]:
    """Where the segment files begin that are there."""
    return sorted(int(path.stem.partition("-")[2]) for path in directory.glob(f"{recording_id}-*.rec"))


def notes(directory: Path) -> list[str]:
    """What was begun, and is not finished."""
    return [path.name for path in directory.glob("*.begun")]


def await_deleted(archive: Archive, recording_id: int) -> None:
    """Until the archive says that the files are gone."""
    assert archive.await_signal(RecordingSignal.DELETE).recording_id == recording_id


def test_detached_files_stay_and_come_back(archive: Archive, directory: Path, tmp_path: Path) -> None:
    """They may be moved away meanwhile; then they are replayed as before."""
    recording_id = record(archive, 3 * PER_SEGMENT + 5)
    archive.detach_segments(recording_id, 2 * SEGMENT)
    assert archive.start_position(recording_id) == 2 * SEGMENT
    assert replayed(archive, recording_id) == messages(2 * PER_SEGMENT, PER_SEGMENT + 5)
    assert bases(directory, recording_id) == [0, SEGMENT, 2 * SEGMENT, 3 * SEGMENT]
    for base in (0, SEGMENT):
        shutil.move(directory / f"{recording_id}-{base}.rec", tmp_path)
    assert archive.attach_segments(recording_id) == 0
    for base in (0, SEGMENT):
        shutil.move(tmp_path / f"{recording_id}-{base}.rec", directory)
    assert archive.attach_segments(recording_id) == 2
    assert archive.start_position(recording_id) == 0
    assert replayed(archive, recording_id) == messages(0, 3 * PER_SEGMENT + 5)


def test_detached_files_are_deleted(archive: Archive, directory: Path) -> None:
    """All of them, and none else."""
    recording_id = record(archive, 3 * PER_SEGMENT)
    archive.detach_segments(recording_id, 2 * SEGMENT)
    assert archive.delete_detached_segments(recording_id) == 2
    await_deleted(archive, recording_id)
    assert bases(directory, recording_id) == [2 * SEGMENT, 3 * SEGMENT]
    assert archive.delete_detached_segments(recording_id) == 0
    await_deleted(archive, recording_id)
    assert archive.attach_segments(recording_id) == 0
    assert replayed(archive, recording_id) == messages(2 * PER_SEGMENT, PER_SEGMENT)
    assert notes(directory) == []


def test_an_active_recording_loses_its_oldest_files_and_goes_on(archive: Archive, directory: Path) -> None:
    """A replay of the rest follows it meanwhile."""
    with archive.add_recorded_publication(CHANNEL, 7) as publication:
        for message in messages(0, 3 * PER_SEGMENT + 1):
            publication.offer_blocking(message)
        (found,) = archive.list_recordings()
        recording_id = found.recording_id
        await_true(lambda: archive.recording_position(recording_id) == publication.position)
        with archive.replay(recording_id, position=2 * SEGMENT, stream_id=70) as replay:
            assert archive.purge_segments(recording_id, 2 * SEGMENT) == 2
            await_deleted(archive, recording_id)
            for message in messages(3 * PER_SEGMENT + 1, PER_SEGMENT):
                publication.offer_blocking(message)
            for wanted in messages(2 * PER_SEGMENT, 2 * PER_SEGMENT + 1):
                assert bytes(next(replay).payload) == wanted
        with pytest.raises(headrace.ArchiveError) as refusal:
            archive.purge_segments(recording_id, 5 * SEGMENT)
        assert "is after the last segment file for recording 0, which begins at 262144" in str(refusal.value)
    archive.await_signal(RecordingSignal.STOP)
    assert bases(directory, recording_id) == [2 * SEGMENT, 3 * SEGMENT, 4 * SEGMENT]
    assert replayed(archive, recording_id) == messages(2 * PER_SEGMENT, 2 * PER_SEGMENT + 1)


def test_all_but_the_end_may_go_and_the_recording_goes_on(archive: Archive, directory: Path) -> None:
    """To where a file would begin: what is left is an empty recording that can be extended."""
    recording_id = record(archive, 2 * PER_SEGMENT)
    assert archive.purge_segments(recording_id, 2 * SEGMENT) == 2
    await_deleted(archive, recording_id)
    assert (archive.start_position(recording_id), archive.stop_position(recording_id)) == (2 * SEGMENT,) * 2
    found = archive.find_recording(recording_id)
    assert found is not None
    channel = extension_channel(CHANNEL, found)
    with archive.client.add_exclusive_publication(channel, 7) as publication:
        archive.extend_recording(recording_id, CHANNEL, 7, auto_stop=True)
        assert publication.wait_until_connected(10)
        for message in messages(0, 3):
            publication.offer_blocking(message)
    archive.await_signal(RecordingSignal.STOP)
    assert replayed(archive, recording_id) == messages(0, 3)
    assert bases(directory, recording_id) == [2 * SEGMENT]


def test_a_replay_of_what_is_to_go_is_in_the_way(archive: Archive, directory: Path) -> None:
    """It reads on unharmed; one of what stays is not in the way, and what has gone is not replayed any more."""
    recording_id = record(archive, 3 * PER_SEGMENT)
    other = record_after(archive, recording_id, 1, 3 * PER_SEGMENT)
    replay = archive.replay(recording_id, stream_id=70, channel="aeron:ipc?term-length=64k")
    for request in (archive.detach_segments, archive.purge_segments):
        with pytest.raises(headrace.ArchiveError, match="a replay reads a segment file before") as refusal:
            request(recording_id, 2 * SEGMENT)
        assert refusal.value.code == ErrorCode.GENERIC
    with pytest.raises(headrace.ArchiveError, match="cannot migrate recording with active replay 0"):
        archive.migrate_segments(recording_id, other)
    assert [bytes(message.payload) for message in replay] == messages(0, 3 * PER_SEGMENT)
    replay.close()
    with archive.replay(recording_id, position=2 * SEGMENT, stream_id=71) as later:
        await_true(lambda: _purged(archive, recording_id))
        assert [bytes(message.payload) for message in later] == messages(2 * PER_SEGMENT, PER_SEGMENT)
    with pytest.raises(headrace.ArchiveError) as refusal:
        archive.replay(recording_id, position=SEGMENT)
    assert refusal.value.code == ErrorCode.INVALID_POSITION
    assert bases(directory, recording_id) == [2 * SEGMENT, 3 * SEGMENT]


def _purged(archive: Archive, recording_id: int) -> bool:
    """Whether a purge was carried out: the archive may not have seen that the replay is over."""
    try:
        archive.purge_segments(recording_id, 2 * SEGMENT)
    except headrace.ArchiveError as refusal:
        if "a replay reads" not in str(refusal):
            raise
        return False
    await_deleted(archive, recording_id)
    return True


def _purged_whole(archive: Archive, recording_id: int) -> bool:
    """Whether a purge was carried out: what a migration left may still be being deleted."""
    try:
        archive.purge_recording(recording_id)
    except headrace.ArchiveError as refusal:
        if "another delete operation in progress" not in str(refusal):
            raise
        return False
    return True


@pytest.mark.parametrize("is_active", [False, True])
def test_a_recording_becomes_the_beginning_of_another(
    archive: Archive, directory: Path, is_active: bool
) -> None:
    """Which may be active; the source is empty then, and is extended like any other."""
    source = record(archive, 2 * PER_SEGMENT)
    found = archive.find_recording(source)
    assert found is not None
    with archive.add_recorded_publication(extension_channel(CHANNEL, found), 7) as publication:
        for message in messages(2 * PER_SEGMENT, PER_SEGMENT + 3):
            publication.offer_blocking(message)
        destination = archive.await_signal(RecordingSignal.START).recording_id
        while destination == source:
            destination = archive.await_signal(RecordingSignal.START).recording_id
        if is_active:
            assert archive.migrate_segments(source, destination) == 2
    archive.await_signal(RecordingSignal.STOP)
    if not is_active:
        assert archive.migrate_segments(source, destination) == 2
    await_deleted(archive, source)
    assert replayed(archive, destination) == messages(0, 3 * PER_SEGMENT + 3)
    assert bases(directory, source) == []
    assert (archive.start_position(source), archive.stop_position(source)) == (0, 0)
    assert bases(directory, destination) == [0, SEGMENT, 2 * SEGMENT, 3 * SEGMENT]
    assert notes(directory) == []


def test_a_recording_becomes_the_end_of_another(archive: Archive, directory: Path) -> None:
    """Once the empty last file is gone from where the first file of the other is to be."""
    destination = record(archive, PER_SEGMENT)
    source = record_after(archive, destination, PER_SEGMENT + 1, PER_SEGMENT)
    with pytest.raises(
        headrace.ArchiveError, match=r"is there already: .*0-65536\.rec.*truncate at the stop"
    ):
        archive.migrate_segments(source, destination)
    assert archive.truncate_recording(destination, SEGMENT) == 1
    await_deleted(archive, destination)
    assert archive.migrate_segments(source, destination) == 2
    await_deleted(archive, source)
    assert replayed(archive, destination) == messages(0, 2 * PER_SEGMENT + 1)
    assert bases(directory, source) == []


def test_a_migration_leaves_no_file_of_the_source_when_it_says_that_it_has_ended(
    archive: Archive, directory: Path
) -> None:
    """Nor those that older archives had renamed to be deleted; those of other recordings stay."""
    source = record(archive, PER_SEGMENT)
    destination = record_after(archive, source, 3, PER_SEGMENT)
    others = [f"{destination}-0.rec.del", f"{source}{source}1-0.rec.del"]
    for name in (f"{source}-0.rec.del", f"{source}-{SEGMENT}.rec.del", *others):
        (directory / name).touch()
    archive.take_signals()
    assert archive.migrate_segments(source, destination) == 1
    await_deleted(archive, source)
    assert [path.name for path in directory.glob(f"{source}-*")] == []
    assert sorted(path.name for path in directory.glob("*.del")) == sorted(others)
    assert notes(directory) == []


def test_the_start_after_a_migration_finds_the_same(tmp_path: Path) -> None:
    """Nothing of it was only in memory."""
    settings = {"archive_directory": tmp_path / "archive", "segment_file_length": SEGMENT}
    with (
        headrace.ArchivingMediaDriver.embedded(**settings) as archiving,  # type: ignore[arg-type]
        archiving.connect_archive() as archive,
    ):
        source = record(archive, PER_SEGMENT)
        destination = record_after(archive, source, 3, PER_SEGMENT)
        assert archive.migrate_segments(source, destination) == 1
        await_true(lambda: _purged_whole(archive, source))
    with (
        headrace.ArchivingMediaDriver.embedded(**settings) as archiving,  # type: ignore[arg-type]
        archiving.connect_archive() as archive,
    ):
        assert [found.recording_id for found in archive.list_recordings()] == [destination]
        assert replayed(archive, destination) == messages(0, PER_SEGMENT + 3)


REFUSALS: dict[str, tuple[Callable[[Archive], object], ErrorCode, str]] = {
    "detach unknown": (lambda archive: archive.detach_segments(4711, 0), ErrorCode.UNKNOWN_RECORDING, "4711"),
    "purge unknown": (lambda archive: archive.purge_segments(4711, 0), ErrorCode.UNKNOWN_RECORDING, "4711"),
    "delete unknown": (
        lambda archive: archive.delete_detached_segments(-1),
        ErrorCode.UNKNOWN_RECORDING,
        "recording id: -1",
    ),
    "attach unknown": (lambda archive: archive.attach_segments(4711), ErrorCode.UNKNOWN_RECORDING, "4711"),
    "migrate unknown": (
        lambda archive: archive.migrate_segments(0, 4711),
        ErrorCode.UNKNOWN_RECORDING,
        "4711",
    ),
    "migrate from unknown": (
        lambda archive: archive.migrate_segments(-7, 0),
        ErrorCode.UNKNOWN_RECORDING,
        "recording id: -7",
    ),
    "off the border": (
        lambda archive: archive.detach_segments(0, SEGMENT + 32),
        ErrorCode.GENERIC,
        "newStartPosition=65568 is not where a segment file begins for recording 0: that begins at 65536",
    ),
    "odd": (
        lambda archive: archive.purge_segments(0, SEGMENT + 1),
        ErrorCode.GENERIC,
        "that begins at 65536",
    ),
    "the first file": (
        lambda archive: archive.purge_segments(0, 0),
        ErrorCode.GENERIC,
        "newStartPosition=0 is in the first segment file for recording 0: the next begins at 65536",
    ),
    "below 0": (
        lambda archive: archive.detach_segments(0, -SEGMENT),
        ErrorCode.GENERIC,
        "newStartPosition=-65536 is in the first segment file",
    ),
    "after the end": (
        lambda archive: archive.purge_segments(0, 4 * SEGMENT),
        ErrorCode.GENERIC,
        "newStartPosition=262144 is after the last segment file for recording 0, which begins at 131072",
    ),
    "far after the end": (
        lambda archive: archive.detach_segments(0, (1 << 62)),
        ErrorCode.GENERIC,
        "is after the last segment file",
    ),
    "to itself": (
        lambda archive: archive.migrate_segments(0, 0),
        ErrorCode.GENERIC,
        "cannot migrate recording 0 to itself",
    ),
    "active source": (
        lambda archive: archive.migrate_segments(4, 0),
        ErrorCode.GENERIC,
        "cannot migrate active source recording 4: stop it first",
    ),
    "another stream": (
        lambda archive: archive.migrate_segments(0, 1),
        ErrorCode.GENERIC,
        "stream_id of source recording 0 and destination recording 1 differ: 7 and 8",
    ),
    "another term length": (
        lambda archive: archive.migrate_segments(2, 0),
        ErrorCode.GENERIC,
        "segment_file_length of source recording 2 and destination recording 0 differ: 131072 and 65536",
    ),
    "no join": (
        lambda archive: archive.migrate_segments(0, 3),
        ErrorCode.GENERIC,
        "do not join: start=0 stop=131072 and start=0 stop=1024",
    ),
    "a join within a file": (
        lambda archive: archive.migrate_segments(5, 3),
        ErrorCode.GENERIC,
        "no segment file of recording 5 begins at the joining position=1024: the one with it begins at 0",
    ),
}


def test_what_cannot_be_done_is_refused_and_changes_nothing(archive: Archive, directory: Path) -> None:
    """With the code of the protocol, the value and the rule; recordings and files are what they were."""
    terms = f"{CHANNEL}|init-term-id=5|term-id=5|term-offset=0"
    record(archive, 2 * PER_SEGMENT, channel=terms)
    record(archive, 1, stream_id=8, channel=terms)
    record(archive, 1, channel=terms.replace("64k", "128k"))
    record(archive, 1, channel=terms)
    with archive.add_recorded_publication(CHANNEL, 9):
        found = archive.find_recording(3)
        assert found is not None
        record(archive, 1, 1, extension_channel(CHANNEL, found))
        before = [one.replace(correlation_id=0) for one in archive.list_recordings()]
        files = {path.name: path.read_bytes() for path in directory.glob("*.rec")}
        for case, (request, code, text) in REFUSALS.items():
            with pytest.raises(headrace.ArchiveError) as refusal:
                request(archive)
            assert (case, refusal.value.code) == (case, code)
            assert text in str(refusal.value), case
        assert [one.replace(correlation_id=0) for one in archive.list_recordings()] == before
        assert {path.name: path.read_bytes() for path in directory.glob("*.rec")} == files
        assert notes(directory) == []


def _shorter(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4096])


def _without_end(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-FRAME] + bytes(FRAME))


def _with_byte(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "a shorter file": (_shorter, "has length=61440, not segment_file_length=65536"),
    "a file without its end": (_without_end, "frames are missing at the end of"),
    "an empty file": (
        lambda path: path.write_bytes(bytes(SEGMENT)),
        "does not have the term and stream_id=7",
    ),
    "another stream": (lambda path: _with_byte(path, 16), "does not have the term and stream_id=7"),
    "another term": (lambda path: _with_byte(path, 20), "does not have the term and stream_id=7"),
    "another offset": (lambda path: _with_byte(path, 9), "does not have the term and stream_id=7"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_file_that_is_not_of_the_recording_is_not_attached(
    archive: Archive, directory: Path, case: str
) -> None:
    """What follows it is; the file stays as it is."""
    spoil, text = FOREIGN[case]
    recording_id = record(archive, 3 * PER_SEGMENT)
    archive.detach_segments(recording_id, 2 * SEGMENT)
    path = directory / f"{recording_id}-0.rec"
    spoil(path)
    data = path.read_bytes()
    with pytest.raises(headrace.ArchiveError) as refusal:
        archive.attach_segments(recording_id)
    assert refusal.value.code == ErrorCode.GENERIC
    assert "cannot attach segments to recording 0, 1 were: " in str(refusal.value)
    assert text in str(refusal.value)
    assert path.read_bytes() == data
    assert archive.start_position(recording_id) == SEGMENT
    assert replayed(archive, recording_id) == messages(PER_SEGMENT, 2 * PER_SEGMENT)


def test_a_recording_that_began_within_a_file_begins_there_again(archive: Archive, directory: Path) -> None:
    """After zeros: the file that is attached last is the first of the recording."""
    before = record(archive, 5)
    recording_id = record_after(archive, before, 2 * PER_SEGMENT, 5)
    start = 5 * FRAME
    assert archive.start_position(recording_id) == start
    archive.detach_segments(recording_id, 2 * SEGMENT)
    assert archive.attach_segments(recording_id) == 2
    assert archive.start_position(recording_id) == start
    assert archive.attach_segments(recording_id) == 0
    assert replayed(archive, recording_id) == messages(5, 2 * PER_SEGMENT)


def test_the_same_from_asyncio(archiving: headrace.ArchivingMediaDriver, archive: Archive) -> None:
    """Each request, awaited."""
    recording_id = record(archive, 3 * PER_SEGMENT)
    other = record_after(archive, recording_id, 1, 3 * PER_SEGMENT)

    async def play() -> list[int]:
        async with await AsyncArchive.connect(archiving.connect()) as session:
            await session.detach_segments(recording_id, SEGMENT)
            counts = [await session.attach_segments(recording_id)]
            counts.append(await session.purge_segments(recording_id, SEGMENT))
            await session.await_signal(RecordingSignal.DELETE)
            counts.append(await session.delete_detached_segments(recording_id))
            await session.await_signal(RecordingSignal.DELETE)
            counts.append(await session.migrate_segments(recording_id, other))
            return counts

    assert asyncio.run(play()) == [1, 1, 0, 2]
    assert replayed(archive, other) == messages(PER_SEGMENT, 2 * PER_SEGMENT + 1)
