"""`headrace archive set-retention`, `holds` and `release-hold`: what they say, ask and do."""

import json

import headrace
from headrace.archive import Retention
from headrace.archive.files import hold
from tests.cli.test_archive import run
from tests.cli.test_segments import archiving

__all__ = ["archiving"]


def kept(archiving: headrace.ArchivingMediaDriver) -> list[tuple[float | None, int | None]]:
    """The retention of each recording, as the archive's files have it."""
    lines = run("list", "-a", archiving.archive.directory, "--json").stdout.splitlines()
    return [(one["retention_hours"], one["retention_bytes"]) for one in map(json.loads, lines)]


def test_a_retention_is_set_shown_and_ended(archiving: headrace.ArchivingMediaDriver) -> None:
    """It asks before anything can be deleted."""
    where = ("-d", archiving.directory)
    unanswered = run("set-retention", 0, "--keep-for", "7d", *where, status=1)
    question = (
        "from now on, permanently delete every segment file of recording 0 except what was written within 7d?"
    )
    assert question in unanswered.stdout
    assert "nothing was changed" in unanswered.stderr
    assert kept(archiving) == [(None, None), (None, None)]
    said = run("set-retention", 0, "--keep-for", "12h", "--keep-bytes", "100g", "--yes", *where).stdout
    assert said == "recording 0 keeps what was written within 12h and the newest 100g bytes\n"
    run("set-retention", 1, "--keep-for", "2w", "--yes", *where)
    assert kept(archiving) == [(12, 100 << 30), (336, None)]
    assert "retention_hours" in run("describe", 0, "-a", archiving.archive.directory).stdout
    with archiving.connect_archive() as archive:
        assert archive.list_recordings()[0].retention == Retention(hours=12, bytes=100 << 30)
    assert run("set-retention", 0, "--keep-everything", *where).stdout == "recording 0 keeps everything\n"
    run("set-retention", 0, "--keep-for", "10m", "--yes", *where)
    assert kept(archiving)[0] == (10 / 60, None)
    described = run("describe", 0, "-a", archiving.archive.directory).stdout
    assert "retention_hours        0.166667  10 min" in described
    ended = ("set-retention", 0, "--keep-ended-for", "30d")
    question = "permanently delete all of recording 0 30d after it has ended?"
    assert question in run(*ended, *where, status=1).stdout
    said = run(*ended, "--yes", *where).stdout
    assert said == "recording 0 keeps everything, until 30d after its end\n"
    with archiving.connect_archive() as archive:
        assert archive.list_recordings()[0].retention == Retention(ended_hours=720)
    run("set-retention", 0, "--keep-everything", *where)
    assert kept(archiving) == [(None, None), (336, None)]


def test_what_is_refused_is_said_in_one_line(archiving: headrace.ArchivingMediaDriver) -> None:
    """With the status of a failure, or of a wrong command line."""
    where = ("-d", archiving.directory)
    assert "or else --keep-everything" in run("set-retention", 0, *where, status=2).stderr
    both = ("--keep-for", "7d", "--keep-everything")
    unknown = (
        "unknown recording id: 9 (UNKNOWN_RECORDING); `headrace archive list` prints those of a directory"
    )
    for command in (("stop",), ("purge", "--yes"), ("set-retention", "--keep-everything"), ("replay",)):
        assert unknown in run(command[0], 9, *command[1:], *where, status=1).stderr
    assert "or else --keep-everything" in run("set-retention", 0, *both, *where, status=2).stderr
    for text in ("7", "d", "7y", "-1d", "1.5d"):
        said = run("set-retention", 0, "--keep-for", text, *where, status=2).stderr
        assert f"{text!r} is not a whole number with s, m, h, d or w" in said
    assert "bytes=0: must be from 1" in run("set-retention", 0, "--keep-bytes", "0", *where, status=1).stderr
    said = run("set-retention", 9, "--keep-for", "7d", "--yes", *where, status=1).stderr
    assert "unknown recording id: 9" in said


def test_holds_are_listed_and_released(archiving: headrace.ArchivingMediaDriver) -> None:
    """For a reader that does not come back."""
    where = ("-a", archiving.archive.directory)
    assert run("holds", *where).stdout == "no holds\n"
    assert "no hold 'orders'" in run("release-hold", "orders", *where, status=1).stderr
    for recording_id, position in ((0, 64), (1, 32)):
        hold(archiving.archive.directory, "orders", recording_id, position)
    assert "orders" in run("holds", *where).stdout
    listed = [json.loads(line) for line in run("holds", *where, "--json").stdout.splitlines()]
    assert listed[0] == {"name": "orders", "recording_id": 0, "position": 64}
    question = "release the hold orders, which keeps unread data of recording 0, 1?"
    assert question in run("release-hold", "orders", *where, status=1).stdout
    assert run("release-hold", "orders", 1, "--yes", *where).stdout == "1 hold released\n"
    assert run("release-hold", "orders", "--yes", *where).stdout == "1 hold released\n"
