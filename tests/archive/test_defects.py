"""An unexpected exception ends one session, and neither others nor the archive."""

import pytest

import headrace
from headrace.archive import Archive, RecordingSignal
from headrace.archive.protocol.codes import Response
from headrace.archive.protocol.messages import PROTOCOL_VERSION, decode, encode
from headrace.archive.protocol.requests import AuthConnectRequest
from headrace.archive.server import listings
from headrace.archive.server.recording_session import RecordingSession
from headrace.archive.server.recordings import Recordings
from headrace.testing import SimulatedStorage
from tests.archive.test_faults import CHANNEL, SEGMENT, STREAM_ID, driver, record
from tests.helpers import TIMEOUT_S, await_true

__all__ = ["driver"]

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]


class Defect(Exception):
    """An unexpected exception."""


def serving(driver: headrace.MediaDriver) -> headrace.ArchiveServer:
    """An archive in memory."""
    return headrace.ArchiveServer(
        driver=driver, storage=SimulatedStorage(), control_channel_enabled=False, segment_file_length=SEGMENT
    )


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
        serving(driver) as server,
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
        serving(driver) as server,
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
        with pytest.raises(headrace.ArchiveError, match="has ended this session"):
            archive.list_recordings()
        assert other.list_recordings()[0].recording_id == 0
        assert server.error_count == 2
        assert server.failure is None


def test_a_session_that_fails_at_every_turn_ends_with_one_note(
    driver: headrace.MediaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it records, and where it tells its client; others go on."""
    with serving(driver) as server, Archive.connect(driver=driver) as archive:
        for recording_id, where in enumerate(("do_work", "_signal")):
            part = RecordingSession if where == "do_work" else Recordings
            calls = []

            def fail(*_: object, where: str = where, calls: list[str] = calls) -> int:
                calls.append(where)
                raise Defect(where)

            with monkeypatch.context() as patch:
                errors = server.error_count
                patch.setattr(part, where, fail if where == "do_work" else staticmethod(fail))
                with headrace.connect(driver=driver) as client:
                    archive.start_recording(CHANNEL, STREAM_ID + recording_id)
                    with client.add_exclusive_publication(CHANNEL, STREAM_ID + recording_id):
                        # How it began, and that it could not end in order.
                        await_true(lambda errors=errors: server.error_count >= errors + 2)
                        await_true(lambda: not server._recordings._active)
                        assert (len(calls), server.error_count) == (2, errors + 2)
            assert archive.stop_position(recording_id) == 0
        record(archive, 3)
        assert server.failure is None


@pytest.mark.parametrize("end", ["truncate", "stop all", "stop", "archive"])
def test_a_client_is_told_why_another_ended_its_replay(driver: headrace.MediaDriver, end: str) -> None:
    """The recording, the position and the cause."""
    with (
        serving(driver) as server,
        Archive.connect(driver=driver) as reader,
        Archive.connect(driver=driver) as other,
    ):
        recording_id, _ = record(reader, 3000)
        with reader.replay(recording_id) as replay:
            assert next(replay).payload
            if end == "truncate":
                other.truncate_recording(recording_id, 0)
            elif end == "stop all":
                other.stop_all_replays()
            elif end == "stop":
                other.stop_replay(replay.replay_id)
            else:
                server.close()
            was_ended = rf"the replay of recording {recording_id} was ended at position=\d+"
            reasons = {
                "truncate": f"{was_ended}: the recording is truncated at position=0",
                "archive": r"ended the replay early, at position=\d+: the archive is gone",
            }
            with pytest.raises(headrace.ArchiveError, match=reasons.get(end, f"{was_ended}: another client")):
                list(replay)


def test_a_client_whose_name_no_label_can_have_is_served(driver: headrace.MediaDriver) -> None:
    with (
        serving(driver),
        headrace.connect(driver=driver) as client,
        client.add_subscription("aeron:ipc", 20) as answers,
        client.add_exclusive_publication("aeron:ipc", 10) as requests,
    ):
        assert requests.wait_until_connected(TIMEOUT_S)
        connect = AuthConnectRequest(
            correlation_id=1,
            response_stream_id=20,
            version=PROTOCOL_VERSION,
            response_channel="aeron:ipc",
            client_info="a\tname\x00",
        )
        requests.offer_blocking(encode(connect))
        answer = answers.receive(TIMEOUT_S)
        assert answer is not None
        assert decode(answer.payload).code is Response.OK


def test_what_strangers_choose_makes_no_new_texts_in_the_error_log(driver: headrace.MediaDriver) -> None:
    """Else they could fill it."""
    with serving(driver) as server, headrace.connect(driver=driver) as client:
        entries = server._log._entries._observed
        for number in range(3):
            with client.add_exclusive_publication("aeron:ipc", 10) as requests:
                assert requests.wait_until_connected(TIMEOUT_S)
                requests.offer_blocking(b"\0" * 7)
                connect = AuthConnectRequest(
                    correlation_id=number,
                    response_stream_id=20,
                    version=1 << 16,
                    response_channel=f"aeron:udp?endpoint=no-such-{number}",
                    client_info=f"{number}",
                )
                requests.offer_blocking(encode(connect))
                # A copy: the archive's thread adds to it meanwhile.
                await_true(
                    lambda number=number: sum(one.count for one in list(entries.values())) >= 2 * (number + 1)
                )
        assert len(entries) == 2, list(entries)


def test_a_handler_of_events_that_raises_ends_nothing(driver: headrace.MediaDriver) -> None:
    told: list[str] = []

    def refuse(text: str) -> None:
        told.append(text)
        raise Defect("of the handler")

    with (
        headrace.ArchiveServer(
            driver=driver,
            storage=SimulatedStorage(),
            control_channel_enabled=False,
            segment_file_length=SEGMENT,
            on_event=refuse,
        ) as server,
        Archive.connect(driver=driver) as archive,
    ):
        recording_id, _ = record(archive, 20)
        with archive.replay(recording_id) as replay:
            assert len(list(replay)) == 20
        assert server.failure is None
        assert "on_event raised Defect('of the handler')" in server._log._entries._observed
    assert any("archive" in text and "Closed" in text for text in told)


@pytest.mark.parametrize("fault", [("sync", "archive.catalog"), ("write", "archive-mark.dat")])
def test_an_archive_whose_disk_refuses_at_its_end_gives_up_its_streams_and_its_lock(
    driver: headrace.MediaDriver, fault: tuple[str, str]
) -> None:
    storage = SimulatedStorage()
    settings = {"driver": driver, "storage": storage, "control_channel_enabled": False}
    server = headrace.ArchiveServer(**settings)
    storage.fail(*fault)
    with pytest.raises(OSError, match="Input/output error"):
        server.close()
    storage.mend()
    assert server._client.is_closed
    headrace.ArchiveServer(**settings).close()
