"""An unexpected exception ends one session, and neither others nor the archive."""

import pytest

import headrace
from headrace.archive import Archive, RecordingSignal, listings
from tests.archive.memory import MemoryStorage
from tests.archive.test_faults import CHANNEL, SEGMENT, STREAM_ID, driver, record
from tests.helpers import await_true

__all__ = ["driver"]

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]


class Defect(Exception):
    """An unexpected exception."""


DEFECTS = {
    "recording": ("_recordings", lambda recordings: recordings._active[1].session),
    "replay": ("_replays", lambda replays: next(iter(replays._sessions.values()))),
    "control session": ("_control", lambda control: list(control._sessions.values())[-1]),
}


@pytest.mark.parametrize("where", DEFECTS)
def test_a_defect_in_one_session_ends_that_session_and_is_noted(
    driver: headrace.MediaDriver, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others of its kind and of other kinds go on, and so does the archive."""
    with (
        headrace.ArchiveServer(
            driver=driver,
            storage=MemoryStorage(),
            control_channel_enabled=False,
            segment_file_length=SEGMENT,
        ) as server,
        Archive.connect(driver=driver) as archive,
        archive.add_recorded_publication(CHANNEL, STREAM_ID) as first,
        archive.add_recorded_publication(CHANNEL, STREAM_ID + 1) as second,
        archive.replay(0, stream_id=2001) as earlier,
        Archive.connect(driver=driver) as other,
    ):
        first.offer_blocking(b"before")
        second.offer_blocking(b"before")
        assert next(earlier).payload == b"before"
        earlier.close()
        with archive.replay(0, stream_id=2002) as replay:
            assert next(replay).payload == b"before"
            part, session_of = DEFECTS[where]
            session = session_of(getattr(server, part))

            def fail() -> int:
                monkeypatch.undo()
                raise Defect(where)

            monkeypatch.setattr(type(session), "do_work", lambda one: fail() if one is session else 0)
            await_true(lambda: server.error_count == 1)
            first.offer_blocking(b"after")
            if where == "replay":
                with pytest.raises(headrace.ArchiveError, match="cannot replay recording 0: replay"):
                    next(replay)
            else:
                assert next(replay).payload == b"after"
        position = first.position
        await_true(lambda: archive.recording_position(0) == position)
        if where == "recording":
            assert archive.await_signal(RecordingSignal.STOP).recording_id == 1
        if where == "control session":
            await_true(lambda: not other.is_connected)
        else:
            assert other.start_position(0) == 0
        assert server.failure is None


def test_a_defect_in_a_request_or_a_listing_is_answered_or_ends_its_session(
    driver: headrace.MediaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no other request."""
    with (
        headrace.ArchiveServer(
            driver=driver,
            storage=MemoryStorage(),
            control_channel_enabled=False,
            segment_file_length=SEGMENT,
        ) as server,
        Archive.connect(driver=driver) as archive,
        Archive.connect(driver=driver) as other,
    ):
        record(archive, 3)

        def fail(*_: object) -> None:
            monkeypatch.undo()
            raise Defect("never")

        monkeypatch.setattr(server._recordings, "active", fail)
        with pytest.raises(headrace.ArchiveError, match="never"):
            archive.recording_position(0)
        assert archive.recording_position(0) is None
        monkeypatch.setattr(listings, "encode_descriptor", fail)
        with pytest.raises(headrace.ArchiveError, match="gone"):
            archive.list_recordings()
        assert other.list_recordings()[0].recording_id == 0
        assert server.error_count == 2
        assert server.failure is None
