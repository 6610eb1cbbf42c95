"""The mark file of a cluster's parts: who may take it, and what it says afterwards."""

from __future__ import annotations

import dataclasses
import os
import struct
from pathlib import Path

import pytest

from headrace._agent.storage import DirectoryStorage
from headrace.cluster.errors import ClusterFileError
from headrace.cluster.files.mark_file import (
    UNKNOWN_LOG,
    ClusterComponentType,
    ClusterMarkFile,
    LogIdentity,
    MarkFields,
    read_mark_fields,
    service_mark_name,
)

NOW_MS = 1_700_000_000_000
NAME = service_mark_name(0)
FIELDS = MarkFields(
    version=0,
    component_type=ClusterComponentType.CONTAINER,
    activity_timestamp=0,
    start_timestamp=0,
    pid=os.getpid(),
    candidate_term_id=-1,
    archive_stream_id=10,
    service_stream_id=104,
    consensus_module_stream_id=105,
    ingress_stream_id=-1,
    member_id=-1,
    service_id=0,
    header_length=0,
    error_buffer_length=1 << 20,
    cluster_id=7,
    aeron_directory="/dev/shm/aeron",
    control_channel="aeron:ipc?term-length=128k",
    ingress_channel="",
    service_name="counter",
    authenticator="",
    services_cluster_directory="",
)


def taken(
    path: Path, now_ms: int = NOW_MS, elsewhere: Path | None = None, **values: object
) -> ClusterMarkFile:
    fields = dataclasses.replace(FIELDS, **values)  # type: ignore[arg-type]
    return ClusterMarkFile(DirectoryStorage(path), NAME, fields, now_ms, elsewhere=elsewhere)


def said(path: Path) -> MarkFields:
    fields = read_mark_fields(DirectoryStorage(path), NAME)
    assert fields is not None
    return fields


def test_it_is_ready_at_the_end_and_says_what_runs(tmp_path: Path) -> None:
    mark = taken(tmp_path)
    assert said(tmp_path).version == 0
    mark.set_member_id(2)
    mark.ready(NOW_MS + 5)
    now = said(tmp_path)
    assert now == dataclasses.replace(
        FIELDS,
        version=768,
        activity_timestamp=NOW_MS + 5,
        start_timestamp=NOW_MS,
        member_id=2,
        header_length=8192,
    )
    assert (tmp_path / NAME).stat().st_size == 8192 + (1 << 20)
    mark.close()
    mark.close()
    mark.update(NOW_MS + 6)
    assert said(tmp_path).activity_timestamp == -1


def test_a_second_one_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    first = taken(tmp_path)
    with pytest.raises(ClusterFileError, match=f"active mark file: .*locked by pid={os.getpid()}"):
        taken(tmp_path)
    first.forget()
    # Killed: the lock is free, so no ten seconds are waited.
    taken(tmp_path).close()


def test_a_link_leads_to_a_file_elsewhere_as_long_as_it_is_there(tmp_path: Path) -> None:
    files, marks = tmp_path / "files", tmp_path / "marks"
    taken(files, pid=1).close()
    mark = taken(files, elsewhere=marks, pid=2)
    assert (files / "cluster-mark-service-0.lnk").read_text() == str(marks)
    # The file that is beside the link is of the start before.
    assert said(files) == said(marks)
    assert said(files).pid == 2
    mark.close()
    taken(files, pid=3).close()
    assert said(files).pid == 3
    assert [one.name for one in files.iterdir()] == [NAME]
    taken(files, elsewhere=files, pid=4).close()
    assert [one.name for one in files.iterdir()] == [NAME]


@pytest.mark.parametrize("places", [("", "marks"), ("marks", ""), ("marks", "other")])
def test_what_runs_is_seen_from_wherever_a_second_one_has_its_file(
    tmp_path: Path, places: tuple[str, str]
) -> None:
    files = tmp_path / "files"
    elsewhere = [tmp_path / one if one else None for one in places]
    # Where files of a start before are, they are free, and say nothing of what runs now.
    for place in (*elsewhere, elsewhere[0]):
        taken(files, elsewhere=place).close()
    first = taken(files, elsewhere=elsewhere[0])
    before = [one.name for one in files.iterdir()]
    with pytest.raises(ClusterFileError, match=r"active mark file: .*which runs a CONTAINER"):
        taken(files, elsewhere=elsewhere[1])
    assert [one.name for one in files.iterdir()] == before
    first.update(NOW_MS)
    assert said(files).activity_timestamp == NOW_MS
    first.close()
    taken(files, elsewhere=elsewhere[1]).close()


def test_one_that_holds_no_lock_is_taken_for_alive_for_ten_seconds(tmp_path: Path) -> None:
    mark = taken(tmp_path)
    assert said(tmp_path).activity_timestamp == 0
    mark.ready(NOW_MS)
    mark.forget()
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:120] + bytes(16) + path.read_bytes()[136:])
    with pytest.raises(ClusterFileError, match=r"active mark file: .*was active 9999 ms ago"):
        taken(tmp_path, NOW_MS + 9_999)
    taken(tmp_path, NOW_MS + 10_000).close()


def test_errors_and_the_candidate_term_of_the_one_before_are_kept(tmp_path: Path) -> None:
    mark = taken(tmp_path)
    mark.write_errors(8, b"seen")
    mark.close()
    with (tmp_path / NAME).open("r+b") as file:
        file.seek(40)
        file.write(struct.pack("<q", 9))
    mark = taken(tmp_path)
    assert mark.old_errors[8:12] == b"seen"
    assert mark.candidate_term_id == 9
    mark.clear_errors()
    mark.close()
    assert said(tmp_path).candidate_term_id == 9
    assert not any((tmp_path / NAME).read_bytes()[8192:])


@pytest.mark.parametrize(
    ("offset", "value", "text"),
    [
        (8, 1 << 16, "version 1.0.0, and 0.x is read"),
        (12, 1, "is of a CONSENSUS_MODULE, and not of a CONTAINER"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, offset: int, value: int, text: str) -> None:
    taken(tmp_path).close()
    with (tmp_path / NAME).open("r+b") as file:
        file.seek(offset)
        file.write(struct.pack("<i", value))
    with pytest.raises(ClusterFileError, match=text):
        taken(tmp_path)


def test_texts_that_do_not_fit_are_refused_before_a_file_is_made(tmp_path: Path) -> None:
    with pytest.raises(ClusterFileError, match="above 8192"):
        taken(tmp_path, service_name="x" * 9000)
    assert not (tmp_path / NAME).exists()


def test_which_recording_is_the_log_is_kept_from_start_to_start(tmp_path: Path) -> None:
    mark = taken(tmp_path)
    assert mark.log_identity == UNKNOWN_LOG
    mark.set_log_identity(LogIdentity(3, NOW_MS))
    mark.close()
    for _ in range(2):
        mark = taken(tmp_path)
        assert mark.log_identity == LogIdentity(3, NOW_MS)
        mark.close()


def test_a_start_that_failed_is_shown(tmp_path: Path) -> None:
    mark = taken(tmp_path)
    mark.failed()
    mark.close()
    assert said(tmp_path).version == -1
    taken(tmp_path).close()
