"""`headrace archive declare`, `undeclare` and `streams`."""

import json
from pathlib import Path

import headrace
from tests.cli.test_archive import run
from tests.cli.test_segments import archiving

__all__ = ["archiving"]


def test_streams_are_declared_listed_and_undeclared(archiving: headrace.ArchivingMediaDriver) -> None:
    where = ("-d", archiving.directory)
    assert "no streams are declared" in run("streams", *where).stdout
    said = run("declare", "trades", "-c", "aeron:ipc", "-s", 1001, *where).stdout
    assert said == "trades is recorded from now on: stream 1001 of aeron:ipc\n"
    kept = ("declare", "quotes", "-c", "aeron:ipc", "-s", 1002, "--keep-for", "7d")
    unanswered = run(*kept, *where, status=1)
    assert "permanently delete what is no longer kept of quotes (retain-time=604800s)?" in unanswered.stdout
    run(*kept, "--yes", *where)
    listed = [json.loads(line) for line in run("streams", *where, "--json").stdout.splitlines()]
    assert [(one["name"], one["retention"]) for one in listed] == [
        ("quotes", "retain-time=604800s"),
        ("trades", None),
    ]
    assert "quotes" in run("streams", *where).stdout
    said = run("undeclare", "quotes", *where).stdout
    assert said == "quotes is not recorded any more; its recordings stay\n"
    assert "no stream is declared as quotes" in run("undeclare", "quotes", *where, status=1).stderr


def test_groups_are_listed(archiving: headrace.ArchivingMediaDriver) -> None:
    where = ("-d", archiving.directory)
    run("declare", "trades", "-c", "aeron:ipc", "-s", 1001, "--keys", *where)
    assert run("groups", "trades", *where).stdout == "no group reads trades\n"
    with archiving.connect_archive() as archive, archive.consumer("trades", "risk", member="me") as consumer:
        consumer.receive(0.5)
        (listed,) = (
            json.loads(line) for line in run("groups", "trades", *where, "--json").stdout.splitlines()
        )
        assert listed == {"name": "risk", "members": ["me"], "lag": 0}
        assert "risk" in run("groups", "trades", *where).stdout
    assert "no stream is declared as nothing" in run("groups", "nothing", *where, status=1).stderr


def test_a_file_declares_several(archiving: headrace.ArchivingMediaDriver, tmp_path: Path) -> None:
    where = ("-d", archiving.directory)
    path = tmp_path / "streams.toml"
    path.write_text(
        '[trades]\nchannel = "aeron:ipc"\nstream_id = 1001\nkeys = true\n\n'
        '[quotes]\nchannel = "aeron:ipc"\nstream_id = 1002\nkeep_bytes = "1g"\n'
    )
    run("declare", "-f", path, "--yes", *where)
    listed = [json.loads(line) for line in run("streams", *where, "--json").stdout.splitlines()]
    assert [(one["name"], one["stream_id"]) for one in listed] == [("quotes", 1002), ("trades", 1001)]


def test_wrong_declarations_are_refused(archiving: headrace.ArchivingMediaDriver, tmp_path: Path) -> None:
    where = ("-d", archiving.directory)
    assert "or --file with several" in run("declare", *where, status=2).stderr
    assert "needs --channel and --stream" in run("declare", "trades", *where, status=2).stderr
    path = tmp_path / "streams.toml"
    for text, refusal in (
        ("[trades", "is not TOML"),
        ("trades = 1", "[trades] needs channel and stream_id"),
        ('[trades]\nchannel = "aeron:ipc"\nstream_id = 1\nkeep = 3', "[trades] has 'keep'"),
    ):
        path.write_text(text)
        assert refusal in run("declare", "-f", path, *where, status=2).stderr
    said = run("declare", "a trade", "-c", "aeron:ipc", "-s", 1, *where, status=1).stderr
    assert "must be 1 to 100 letters, digits, dots, hyphens and underscores" in said
