"""`--dry-run` of the commands of `headrace archive`: each says what it would do, and changes nothing."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import headrace
from headrace.archive.files import hold
from headrace.cli.app import app
from tests.cli.test_segments import SEGMENT, archiving

__all__ = ["archiving"]

pytestmark = pytest.mark.system


def run(*words: object) -> Result:
    """A command of `headrace archive`, in this process: there are many."""
    done = CliRunner().invoke(app, ["archive", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def refusal(*words: object) -> str:
    """What a command says that fails; the process prints such an exception in one line."""
    done = CliRunner().invoke(app, ["archive", *map(str, words)])
    assert isinstance(done.exception, (headrace.HeadraceError, SystemExit))
    assert (done.exit_code, done.stdout) == (1, "")
    return f"{done.stderr}{done.exception}"


def files(archiving: headrace.ArchivingMediaDriver) -> dict[str, bytes]:
    """What no dry run changes. The mark file has the time, and the event log the clients that came and went."""
    directory = Path(archiving.archive.directory)
    kept = (path for path in directory.iterdir() if path.name not in ("archive-mark.dat", "events.dat"))
    return {path.name: path.read_bytes() for path in kept}


def test_a_running_archive_is_asked_for_nothing(archiving: headrace.ArchivingMediaDriver) -> None:
    """What would be refused is an error, in the words of the archive."""
    where = ("-d", archiving.directory, "-a", archiving.archive.directory)
    session = ("-d", archiving.directory)
    run("detach-segments", 0, SEGMENT, *session)
    before = files(archiving)
    would = {
        ("detach-segments", 0, 2 * SEGMENT + 77, *session): "recording 0 would begin at position 131072\n",
        (
            "purge-segments",
            0,
            2 * SEGMENT,
            *session,
        ): "would delete 1 file: recording 0 would begin at position 131072 instead of 65536\n",
        ("attach-segments", 0, *where): "1 file would be attached; recording 0 would begin at position 0\n",
        (
            "attach-segments",
            1,
            *where,
        ): "0 files would be attached; recording 1 would begin at position 196608\n",
        ("delete-detached-segments", 0, *where): "1 file would be deleted\n",
        ("delete-detached-segments", 1, *where): "0 files would be deleted\n",
        (
            "migrate-segments",
            0,
            1,
            *where,
        ): "2 files would be moved; recording 1 would begin at position 65536 and end at 201728\n",
        (
            "truncate",
            0,
            SEGMENT + 1024,
            *where,
        ): "recording 0 would end at position 66560; 2 files would be deleted\n",
        (
            "set-retention",
            0,
            "--keep-for",
            "7d",
            *session,
        ): "recording 0 would keep what was written within 7d instead of everything\n",
    }
    for command, words in would.items():
        assert run(*command, "--dry-run").stdout == words
    refused = {
        ("detach-segments", 9, 0, *session): "unknown recording id: 9",
        ("detach-segments", 0, SEGMENT, *session): "newStartPosition=65536 is in the first segment file",
        ("purge-segments", 0, 1 << 40, *session): "is after the last segment file for recording 0",
        ("attach-segments", 9, *where): "unknown recording_id=9",
        ("delete-detached-segments", 9, *where): "unknown recording_id=9",
        ("migrate-segments", 1, 0, *where): "destination segment file is there already",
        ("migrate-segments", 0, 0, *where): "cannot migrate recording 0 to itself",
        ("truncate", 0, 64, *where): "invalid position 64: start=65536 stop=196608 alignment=32",
        ("truncate", 0, SEGMENT + 32, *where): "not aligned to a data header of recording 0",
        ("set-retention", 9, "--keep-everything", *session): "unknown recording id: 9",
        ("truncate", 0, SEGMENT, "-a", "nowhere"): "there is no catalog: nowhere",
    }
    for command, words in refused.items():
        assert words in refusal(*command, "-n")
    assert files(archiving) == before


def test_a_directory_stays_as_it_is(archiving: headrace.ArchivingMediaDriver) -> None:
    """Beside a running archive as well; and the command then does what the dry run said."""
    directory = Path(archiving.archive.directory)
    where = ("-a", directory)
    capacity = int(run("capacity", *where).stdout)
    for recording_id in (0, 1):
        hold(directory, "orders", recording_id, 64)
    before = files(archiving)
    would = {
        ("capacity", capacity + 64): f"would be {capacity + 64}\n",
        ("capacity", 1): f"would be {capacity}\n",
        ("mark-invalid", 0): "recording 0 would be INVALID\n",
        ("mark-valid", 0): "recording 0 would be VALID\n",
        ("checksum", "CRC-32", 0): "recording 0: the entry and 1 segment file would have checksums\n",
        (
            "checksum",
            "CRC-32C",
            0,
            "--thorough",
        ): "recording 0: the entry and 3 segment files would have checksums\n",
        ("release-hold", "orders"): "2 holds would be released\n",
        ("release-hold", "orders", 1): "1 hold would be released\n",
        ("verify", 0, "--repair"): "recording 0: OK, 196608 bytes\n",
    }
    for command, words in would.items():
        assert run(*command, "--dry-run", *where).stdout == words
    refused = {
        ("mark-valid", 9): "unknown recording_id=9",
        ("mark-invalid", 9): "unknown recording_id=9",
        ("checksum", "CRC-32", 9): "unknown recording_id=9",
        ("checksum", "MD5"): "must be one of",
        ("capacity", 1 << 40): "must be from 0 to",
        ("release-hold", "nobody"): "no hold 'nobody'",
    }
    for command, words in refused.items():
        assert words in refusal(*command, "-n", *where)
    assert files(archiving) == before
    archiving.close()
    before = files(archiving)
    for command in would:
        run(*command, "--dry-run", *where)
    assert files(archiving) == before
    assert run("capacity", capacity + 64, *where).stdout == f"{capacity + 64}\n"


def test_a_repair_says_what_it_would_cut_off(archiving: headrace.ArchivingMediaDriver) -> None:
    """And the repair does just that."""
    archiving.close()
    directory = Path(archiving.archive.directory)
    where = ("-a", directory)
    run("mark-invalid", 1, *where)
    path = directory / f"0-{2 * SEGMENT}.rec"
    data = bytearray(path.read_bytes())
    data[1024 + 16] ^= 1
    path.write_bytes(data)
    before = files(archiving)
    found = run("verify", "--repair", "--dry-run", *where).stdout.splitlines()
    at = 2 * SEGMENT + 1024
    assert found[0].startswith(f"recording 0: OK, {at} bytes; would be truncated at position={at}, where ")
    kept = re.search(
        rf"([0-9]+) bytes after position={at} of {path.name} would be moved to a .cut file", found[0]
    )
    assert kept is not None
    assert found[0].endswith(f"; would stop at position={at}")
    assert found[1] == "recording 1: OK, 5120 bytes; would be VALID"
    assert files(archiving) == before
    done = run("verify", "--repair", *where).stdout
    assert f"recording 0: OK, {at} bytes; truncated at position={at}" in done
    assert (directory / f"0-{at}.cut").stat().st_size == int(kept[1])
