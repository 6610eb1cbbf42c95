"""What `headrace archive migrate` makes of old directories, in the eyes of the reference's newest tool and archive."""

from pathlib import Path

import pytest
from benches.processes import JavaPeer

import headrace
from headrace.archive import Archive, files
from tests.golden.archive import MESSAGE_COUNTS, MESSAGE_LENGTH, VERSIONS, unpack
from tests.interop.test_archive import run_java
from tests.interop.test_segments import TOOL, java_archive

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("version", VERSIONS)
def test_the_newest_tool_and_archive_of_the_reference_take_a_migrated_directory(
    java: JavaPeer, tmp_path: Path, version: str
) -> None:
    """All files verified before the archive starts; then a replay of what was being recorded when the old one died."""
    directory = unpack(version, tmp_path / "archive")
    assert files.migrate(directory) is not None
    verified = run_java(java, TOOL, directory, "verify", "-a")
    described = run_java(java, TOOL, directory, "describe")
    for recording_id in MESSAGE_COUNTS:
        assert f"(recordingId={recording_id}) OK" in verified
        assert f"|recordingId={recording_id}|" in described
    with (
        java_archive(java, directory) as driver,
        headrace.Client.connect(directory=driver) as client,
        Archive.connect(client) as archive,
        archive.replay(5) as replay,
    ):
        received = [bytes(message.payload) for message in replay]
    assert received == [bytes([index + 1]) * MESSAGE_LENGTH for index in range(MESSAGE_COUNTS[5])]
