"""Snapshots of a service: taken through the node's archive, loaded again, and refused when they are not whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from headrace.archive import Archive
from headrace.cluster.protocol.codes import ClusterTimeUnit, SnapshotMark
from headrace.cluster.protocol.messages import decode, encode
from headrace.cluster.protocol.snapshots import ClientSession, SnapshotMarker
from headrace.testing import World
from tests.cluster.scripted import TERM, Recorder, Rig, ScriptedModule

LOCAL = "aeron:ipc"


@pytest.fixture
def rig() -> Iterator[Rig]:
    with World(11) as world:
        yield Rig(world)


def archive(rig: Rig) -> Archive:
    return Archive.connect(client=rig.node.connect(), control_channel="aeron:ipc?term-length=64k")


def recorded(rig: Rig, messages: Iterable[bytes]) -> int:
    """A recording that a test made of messages."""
    client = rig.node.connect()
    asked = archive(rig)
    publication = client.add_exclusive_publication(LOCAL, 990)
    asked.start_recording(f"{LOCAL}?session-id={publication.session_id}", 990)
    rig.until(lambda: publication.is_connected)
    for message in messages:
        assert publication.offer(message) > 0
    end = publication.position
    publication.close()
    (recording,) = [one for one in asked.list_recordings() if one.stream_id == 990]
    rig.until(lambda: asked.stop_position(recording.recording_id) == end)
    return recording.recording_id


def content(rig: Rig, recording_id: int) -> list[bytes]:
    """The messages of a recording."""
    with archive(rig).replay(recording_id) as replay:
        return [message.payload for message in replay]


def marker(mark: SnapshotMark, **values: Any) -> bytes:
    fields: dict[str, Any] = {
        "type_id": 2,
        "log_position": 640,
        "leadership_term_id": TERM,
        "index": 0,
        "mark": mark,
        "time_unit": ClusterTimeUnit.NANOS,
        "app_version": 1,
    }
    return encode(SnapshotMarker(**fields | values))


SESSION = encode(
    ClientSession(
        cluster_session_id=5, response_stream_id=102, response_channel="aeron:ipc", encoded_principal=b"who"
    )
)
BEGIN, END = marker(SnapshotMark.BEGIN), marker(SnapshotMark.END)


def recovering(rig: Rig, recording_id: int, position: int = 640) -> ScriptedModule:
    return rig.module(term_id=TERM, position=position, timestamp=99, recordings=(recording_id,))


def test_a_snapshot_is_recorded_and_acknowledged_and_the_service_starts_from_it(rig: Rig) -> None:
    service = Recorder()
    module, container = rig.started(service)
    module.term()
    module.open(5)
    module.message(5, b"one", 11)
    module.message(5, b"two" * 1000, 12)
    position = module.snapshot(13)
    ack = module.acked()
    assert (ack.log_position, ack.timestamp) == (position, 13)
    assert ack.relevant_id >= 0
    # What comes after it is read once it is done.
    module.message(5, b"three", 14)
    rig.until(lambda: len(service.state) == 3)
    module.client.close()
    rig.until(lambda: container.is_closed)

    again = Recorder()
    module = rig.module(term_id=TERM, position=position, timestamp=13, recordings=(ack.relevant_id,))
    rig.container(again)
    ack = module.acked()
    assert (ack.log_position, ack.timestamp) == (position, 13)
    assert ack.relevant_id > 0
    assert again.calls == [("on_start", [b"one", b"two" * 1000])]
    cluster = again.cluster
    assert cluster is not None
    assert (cluster.time, cluster.log_position, cluster.leadership_term_id) == (13, position, TERM)
    assert [(one.id, one.principal) for one in cluster.sessions] == [(5, b"who")]
    assert rig.errors == []


def test_its_container_part_is_as_specified(rig: Rig) -> None:
    service = Recorder()
    module, _ = rig.started(service)
    module.term()
    module.open(7)
    module.open(5)
    position = module.snapshot()
    ack = module.acked()
    begin, first, second, end = map(decode, content(rig, ack.relevant_id))
    assert begin == SnapshotMarker(
        type_id=2,
        log_position=position,
        leadership_term_id=TERM,
        index=0,
        mark=SnapshotMark.BEGIN,
        time_unit=ClusterTimeUnit.MILLIS,
        app_version=1,
    )
    assert (first.cluster_session_id, second.cluster_session_id) == (5, 7)
    assert end.mark is SnapshotMark.END


def test_a_generator_is_asked_for_messages_as_they_are_recorded(rig: Rig) -> None:
    """A state that is larger than the snapshot's stream has room for."""

    class Large(Recorder):
        given = 0

        def on_take_snapshot(self) -> Iterable[bytes]:
            for number in range(3000):
                self.given = number
                yield number.to_bytes(4, "little") * 256

    service = Large()
    module, container = rig.started(service, snapshot_channel="aeron:ipc?alias=snapshot|term-length=64k")
    module.term()
    module.snapshot()
    rig.until(lambda: service.given > 0)
    assert service.given < 2999
    ack = module.acked()
    assert ack.relevant_id >= 0
    assert container._counters.max_snapshot.value > 0
    module.client.close()
    rig.until(lambda: container.is_closed)
    again = Recorder()
    module = recovering(rig, ack.relevant_id, ack.log_position)
    rig.container(again)
    assert module.acked().relevant_id > 0
    assert [int.from_bytes(one[:4], "little") for one in again.state] == list(range(3000))


def test_an_archive_that_is_lost_fails_the_snapshot_and_not_the_service(rig: Rig) -> None:
    class Large(Recorder):
        given = 0

        def on_take_snapshot(self) -> Iterable[bytes]:
            for self.given in range(100_000):
                yield bytes(1000)

    service = Large()
    module, container = rig.started(service, snapshot_channel="aeron:ipc?alias=snapshot|term-length=64k")
    module.term()
    module.snapshot()
    rig.until(lambda: service.given > 100)
    rig.archive.close()
    assert module.acked().relevant_id == -1
    assert rig.errors[0].startswith("service_id=0 has taken no snapshot: ")
    assert "on_take_snapshot" not in rig.errors[0]
    assert "the archive no longer records the snapshot, recording_id=0: it has ended, or was" in rig.errors[0]
    assert service.given < 99_999
    module.message(1, b"next")
    rig.until(lambda: service.state == [b"next"])
    assert container.failure is None


def test_a_flag_asks_standbys_alone(rig: Rig) -> None:
    service = Recorder()
    module, _ = rig.started(service)
    module.term()
    module.snapshot(flags=1)
    module.message(1, b"next")
    rig.until(lambda: service.state == [b"next"])
    assert "on_take_snapshot" not in service.names()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([b"x" * 9000], "length=9000, above max_message_length=8192"),
        (["text"], "on_take_snapshot returned a str: each message of a snapshot must be bytes"),
        (None, "TypeError"),
    ],
)
def test_a_snapshot_that_fails_is_told_and_the_service_goes_on(rig: Rig, given: Any, text: str) -> None:
    class Failing(Recorder):
        def on_take_snapshot(self) -> Iterable[bytes]:
            return given  # type: ignore[no-any-return]

    service = Failing()
    module, _ = rig.started(service, snapshot_channel="aeron:ipc?alias=snapshot|term-length=64k")
    module.term()
    module.snapshot()
    assert module.acked().relevant_id == -1
    assert "on_take_snapshot" in rig.errors[0]
    assert text in rig.errors[0]
    module.message(1, b"next")
    rig.until(lambda: service.state == [b"next"])


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([BEGIN, SESSION], "ends before its end marker"),
        ([SESSION, END], "it does not start with a begin marker"),
        ([END], "it has an end marker and no begin marker"),
        ([BEGIN, BEGIN, END], "it has two begin markers"),
        ([marker(SnapshotMark.BEGIN, type_id=1), END], "type_id=1, where 2 is expected"),
        ([marker(SnapshotMark.BEGIN, log_position=608), END], "log_position=608, and its entry"),
        ([BEGIN, marker(SnapshotMark.END, log_position=672)], "has log_position=672"),
        (
            [marker(SnapshotMark.BEGIN, leadership_term_id=TERM - 1), END],
            f"recording log has leadership_term_id={TERM}",
        ),
        ([BEGIN, b"nonsense of another schema", END], "the snapshot is damaged: schema_id="),
        ([BEGIN, SESSION[:10], END], "the snapshot is damaged"),
    ],
    ids=[
        "cut",
        "no-begin",
        "end-alone",
        "two-begins",
        "type",
        "older",
        "end-of-another",
        "term",
        "schema",
        "short",
    ],
)
def test_a_snapshot_that_is_damaged_ends_the_start(rig: Rig, messages: list[bytes], text: str) -> None:
    service = Recorder()
    module = recovering(rig, recorded(rig, messages))
    container = rig.container(service)
    ack = module.acked()
    assert (ack.log_position, ack.relevant_id) == (640, -1)
    rig.until(lambda: container.failure is not None)
    assert text in str(container.failure)
    assert "headrace cluster invalidate-latest-snapshot" in str(container.failure)
    assert service.calls == []


def test_a_snapshot_of_another_version_is_not_to_be_invalidated(rig: Rig) -> None:
    """The one before it is of the other version too, and the service that wrote both can go on."""
    module = recovering(rig, recorded(rig, [marker(SnapshotMark.BEGIN, app_version=2 << 16), END]))
    container = rig.container(Recorder())
    assert module.acked().relevant_id == -1
    rig.until(lambda: container.failure is not None)
    assert str(container.failure) == (
        "service_id=0 of cluster_id=0 cannot start at log_position=640: incompatible app_version: the snapshot has "
        "2.0.0, and the service 0.0.1: a service reads only its own major version; start the version that wrote it, "
        "or set app_version"
    )


def test_what_a_container_does_not_know_is_skipped(rig: Rig) -> None:
    later = bytearray(BEGIN)
    later[2:4] = (4000).to_bytes(2, "little")
    service = Recorder()
    module = recovering(rig, recorded(rig, [BEGIN, bytes(later), SESSION, END, b"mine", BEGIN]))
    rig.container(service)
    assert module.acked().relevant_id > 0
    assert service.state == [b"mine", BEGIN]
    cluster = service.cluster
    assert cluster is not None
    assert cluster.time_unit is ClusterTimeUnit.NANOS


def test_a_snapshot_without_a_recording_ends_the_start(rig: Rig) -> None:
    module = recovering(rig, 77)
    container = rig.container(Recorder())
    assert module.acked().relevant_id == -1
    rig.until(lambda: container.failure is not None)
    assert "77" in str(container.failure)
