"""(k) The reference's codecs and recording log of a cluster, and ours: the same bytes, the same entries."""

import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benches.processes import JavaPeer

from headrace._agent.storage import DirectoryStorage
from headrace.cluster.files.mark_file import read_mark_fields
from headrace.cluster.files.node_state import NODE_STATE_NAME, CandidateTerm, NodeStateFile
from headrace.cluster.files.recording_log import RecordingLog
from headrace.cluster.files.recording_log_entries import Entry, EntryType
from headrace.cluster.protocol.messages import decode, encode, schema
from headrace.sbe._model import EnumType
from tests.cli.test_cluster_member import run as ours
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.interop

# Of the schema that the published codecs have; ours is the next.
VERSION = 16


def run(java: JavaPeer, *args: str, lines: str = "") -> list[str]:
    """What the program printed."""
    finished = subprocess.run(
        java.command("ClusterFiles", *args),
        input=lines,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout.splitlines()


def steps_of(body: Any, number: Iterator[int]) -> Iterator[str]:
    """A number, or a text, for each field of a message, and two entries for each of its groups."""
    for field in body.wire_fields:
        values = [value for _, value in field.type.values] if isinstance(field.type, EnumType) else range(200)
        if field.since <= VERSION:
            yield f"field {field.name} {values[next(number) % len(values)]}"
    for group in body.groups:
        yield f"group {group.name} 2"
        for _ in range(2):
            yield "next"
            yield from steps_of(group.body, number)
        yield "leave"
    for data in body.data:
        value = next(number)
        yield f"text {data.name} text-{value}" if data.encoding else f"data {data.name} {value:08x}"


def test_each_message_has_the_bytes_that_the_references_codecs_write(java: JavaPeer) -> None:
    """Each is written by them, read by us, and written again."""
    # Those from 120 on are ours alone.
    messages = [one for one in schema().model.messages if one.template_id < 120]
    lines: list[str] = []
    counter = itertools.count(1)
    for message in messages:
        lines += [f"message {message.name}", *steps_of(message.body, counter), "end"]
    written = run(java, "messages", lines="\n".join(lines) + "\n")
    assert len(written) == len(messages) == 54
    for message, text in zip(messages, written, strict=True):
        data = bytes.fromhex(text)
        assert int.from_bytes(data[6:8], "little") == VERSION
        decoded = decode(data)
        assert type(decoded).__name__ == message.name
        again = encode(decoded)
        newer = [field for field in message.body.wire_fields if field.since > VERSION]
        end = 8 + int.from_bytes(data[:2], "little")
        # The block is longer by what the schema has got since, and the header says so.
        longer = sum(field.type.primitive.size for field in newer)
        assert again[8:end] + again[end + longer :] == data[8:], message.name
        assert again[2:6] == data[2:6]
        assert int.from_bytes(again[:2], "little") == end - 8 + longer


def line_of(entry: Entry) -> str:
    """An entry as the program prints it."""
    kind = {EntryType.TERM: 0, EntryType.SNAPSHOT: 1, EntryType.STANDBY_SNAPSHOT: 2}[entry.type]
    values = (
        entry.recording_id,
        entry.leadership_term_id,
        entry.term_base_log_position,
        entry.log_position,
        entry.timestamp,
        entry.service_id,
        kind,
        str(entry.is_valid).lower(),
        entry.index,
        entry.archive_endpoint or "null",
    )
    return " ".join(map(str, values))


def make(log: RecordingLog) -> None:
    """The same as the program makes."""
    snapshot = {"term_base_log_position": 0, "type": EntryType.SNAPSHOT, "leadership_term_id": 0}
    log.append_term(7, 0, 0, 100)
    log.append_snapshot(Entry(recording_id=8, log_position=640, timestamp=101, service_id=0, **snapshot))
    log.append_snapshot(Entry(recording_id=9, log_position=640, timestamp=101, **snapshot))
    log.append_term(7, 1, 1024, 102)
    snapshot |= {"leadership_term_id": 1, "term_base_log_position": 1024, "log_position": 2048}
    log.append_snapshot(Entry(recording_id=10, timestamp=103, service_id=0, **snapshot))
    log.append_snapshot(Entry(recording_id=11, timestamp=103, **snapshot))
    snapshot |= {"type": EntryType.STANDBY_SNAPSHOT, "archive_endpoint": "localhost:8010"}
    log.append_snapshot(Entry(recording_id=12, timestamp=104, **snapshot))
    log.invalidate_latest_snapshot()


def test_recording_logs_of_both_have_the_same_entries_for_both(java: JavaPeer, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    printed = run(java, "make", str(theirs))
    with RecordingLog(DirectoryStorage(theirs), read_only=True) as log:
        assert [line_of(entry) for entry in log] == printed
    with RecordingLog(DirectoryStorage(ours)) as log:
        make(log)
        entries = [line_of(entry) for entry in log]
    assert entries == printed
    assert run(java, "entries", str(ours)) == printed


def test_a_snapshot_that_either_invalidates_is_invalid_for_the_other(java: JavaPeer, tmp_path: Path) -> None:
    run(java, "make", str(tmp_path))
    with RecordingLog(DirectoryStorage(tmp_path)) as log:
        assert log.invalidate_latest_snapshot()
        entries = [line_of(entry) for entry in log]
        assert log.latest_snapshot(1) == []
    assert run(java, "entries", str(tmp_path)) == entries


def test_our_commands_read_and_change_a_recording_log_of_the_reference(
    java: JavaPeer, tmp_path: Path
) -> None:
    printed = run(java, "make", str(tmp_path))
    listed = [json.loads(line) for line in ours("recording-log", tmp_path, "--json").stdout.splitlines()]
    assert [f"{one['recording_id']} {one['leadership_term_id']}" for one in listed] == [
        " ".join(line.split()[:2]) for line in printed
    ]
    assert [one["is_valid"] for one in listed] == [line.split()[7] == "true" for line in printed]
    ours("sort", tmp_path)
    ours("invalidate-latest-snapshot", tmp_path, "--yes")
    entries = [line.split() for line in run(java, "entries", str(tmp_path))]
    # Whatever one invalidates, the other does not bring back.
    assert [int(one[0]) for one in entries if one[7] == "true"] == [7, 7]
    assert "no snapshot" in ours("invalidate-latest-snapshot", tmp_path, "--yes", status=255).stderr


def test_a_vote_that_either_noted_is_known_to_the_other(java: JavaPeer, tmp_path: Path) -> None:
    storage = DirectoryStorage(tmp_path)
    assert run(java, "vote", str(tmp_path), "4") == ["4 1700000000000 640"]
    with NodeStateFile(storage) as state:
        assert state.candidate_term == CandidateTerm(4, 1_700_000_000_000, 640)
        state.vote(CandidateTerm(5, 1_700_000_000_001, 1280))
    assert run(java, "votes", str(tmp_path)) == ["5 1700000000001 1280"]
    (tmp_path / NODE_STATE_NAME).unlink()
    with NodeStateFile(storage) as state:
        state.vote(CandidateTerm(6, 7, 8))
    assert run(java, "votes", str(tmp_path)) == ["6 7 8"]


def test_the_mark_file_of_the_reference_says_the_same_to_us(java: JavaPeer, tmp_path: Path) -> None:
    run(java, "mark", str(tmp_path))
    mark = read_mark_fields(DirectoryStorage(tmp_path))
    assert mark is not None
    assert (mark.component, mark.member_id, mark.service_id, mark.cluster_id) == (
        "CONSENSUS_MODULE",
        2,
        -1,
        7,
    )
    assert (mark.archive_stream_id, mark.service_stream_id, mark.consensus_module_stream_id) == (10, 104, 105)
    assert (mark.ingress_stream_id, mark.header_length, mark.error_buffer_length) == (101, 8192, 1 << 20)
    assert mark.activity_timestamp == 1_700_000_000_123
    assert mark.pid > 0
    assert (mark.aeron_directory, mark.control_channel, mark.ingress_channel) == (
        "/dev/shm/aeron",
        "aeron:ipc",
        "aeron:udp",
    )
    assert (mark.service_name, mark.authenticator, mark.services_cluster_directory) == (
        "",
        "some.Supplier",
        "/services",
    )
