"""Changes of state that an embedded driver prints, as `headraced` does."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace

pytestmark = pytest.mark.system


@pytest.mark.parametrize("mode", ["SHARED", "INVOKER"])
def test_an_embedded_driver_prints_its_changes_of_state(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("AERON_EVENT_LOG", "admin")
    with headrace.MediaDriver.embedded(threading_mode=mode, event_log_disable="client"):
        pass
    out, err = capfd.readouterr()
    assert ": Running: launched" in out
    assert " -> Closed: closed" in out
    assert not err
    monkeypatch.delenv("AERON_EVENT_LOG")
    with headrace.MediaDriver.embedded(threading_mode=mode):
        pass
    assert capfd.readouterr() == ("", "")


def test_only_what_was_asked_for_is_appended_to_a_file_that_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "events.log"
    with (
        headrace.MediaDriver.embedded(
            threading_mode="SHARED",
            event_log="publication,CMD_IN_ADD_SUBSCRIPTION",
            event_log_filename=str(log),
            event_log_file_max_length=400,
        ) as driver,
        driver.connect() as client,
    ):
        for stream_id in range(20):
            client.add_publication("aeron:ipc?term-length=64k|linger=0", stream_id).close()
            client.add_subscription("aeron:ipc", stream_id).close()
    written = [log, tmp_path / "events.log.1"]
    assert sorted(tmp_path.iterdir()) == sorted(written)
    for file in written:
        text = file.read_text()
        assert 0 < len(text) <= 400
        kinds = {line.split()[1] for line in text.splitlines()}
        assert kinds <= {"publication", "subscription"}, text


def test_a_file_that_cannot_be_opened_is_told_before_anything_starts(tmp_path: Path) -> None:
    missing = str(tmp_path / "no" / "events.log")
    directory = tmp_path / "driver"
    with pytest.raises(headrace.HeadraceError, match=f"cannot open aeron.event.log.filename={missing}: "):
        headrace.MediaDriver(directory=directory, event_log="admin", event_log_filename=missing)
    assert not directory.exists()
