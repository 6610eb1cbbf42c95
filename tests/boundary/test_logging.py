"""What a program that sets up `logging` is told, and what one that does not."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from headrace.driver import _events
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.boundary

CHANNEL = "aeron:ipc?term-length=64k"


def texts(caplog: pytest.LogCaptureFixture, logger: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == logger]


def test_a_client_logs_its_life_and_its_images(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "headrace")
    seen = []
    with headrace.MediaDriver.embedded() as driver:
        with driver.connect() as client:
            subscription = client.add_subscription(CHANNEL, 4911)
            own = client.add_subscription(CHANNEL, 4911, on_available_image=seen.append)
            with client.add_publication(CHANNEL, 4911):
                await_true(lambda: subscription.is_connected and own.is_connected)
            await_true(lambda: any("image unavailable" in text for text in texts(caplog, "headrace.client")))
        directory = driver.directory
    lines = texts(caplog, "headrace.client")
    assert lines[0].startswith(f"headrace client: connected: directory={directory} client_id=")
    assert sum("image available: Image(" in line for line in lines) == 2
    assert len(seen) == 1
    assert f"headrace client: closed: directory={directory}" in lines


def test_without_debug_no_handler_stands_between_client_and_program(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "headrace")
    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
        subscription = client.add_subscription(CHANNEL, 4912)
        client.add_publication(CHANNEL, 4912)
        await_true(lambda: subscription.is_connected)
    assert not any("image" in line for line in texts(caplog, "headrace.client"))


def test_a_lost_driver_is_logged_as_an_error(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR, "headrace")
    driver = headrace.MediaDriver.embedded()
    client = headrace.connect(driver.directory, keepalive_interval_ns=50_000_000)
    driver.close()
    await_true(lambda: client.is_closed)
    await_true(lambda: texts(caplog, "headrace.client"))
    assert texts(caplog, "headrace.client")[0].startswith("headrace client: ")


def test_a_driver_logs_its_start_its_settings_its_errors_and_its_end(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "headrace.driver")
    with headrace.MediaDriver.embedded(term_buffer_length=65536) as driver, driver.connect() as client:
        with pytest.raises(headrace.RegistrationError):
            client.add_publication("aeron:udp?endpoint=nowhere", 10)
        await_true(lambda: any("nowhere" in text for text in texts(caplog, "headrace.driver")))
        directory = driver.directory
    lines = texts(caplog, "headrace.driver")
    assert lines[0].startswith(f"headrace driver: started: directory={directory} threading_mode=")
    assert "aeron.term.buffer.length=64k" in lines[1]
    assert f"headrace driver: closed: directory={directory}" in lines


def test_a_driver_logs_why_it_chose_its_threading_mode(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "headrace.driver")
    choice = "SHARED: 1.5 of 8 processors are left to this process"
    _events.started("d", {"aeron.threading.mode": "SHARED"}, choice)
    _events.started("d", {"aeron.threading.mode": "SHARED"}, None)
    assert texts(caplog, "headrace.driver") == [
        f"headrace driver: started: directory=d threading_mode={choice}",
        "headrace driver: started: directory=d threading_mode=SHARED",
    ]


def test_a_driver_tells_of_settings_without_effect_that_the_program_gave(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "headrace.driver")
    settings = {"resolver_bootstrap_neighbor": "127.0.0.1:8050", "incoming_interceptors": "loss"}
    with headrace.MediaDriver.embedded(**settings, loss_args="rate=none"):
        pass
    (neighbor, interceptor) = sorted(texts(caplog, "headrace.driver"))
    assert "neighbor=127.0.0.1:8050 has no effect without aeron.driver.resolver.interface" in neighbor
    assert "the interceptor loss drops nothing" in interceptor


def test_errors_of_a_driver_are_logged_at_the_latest_when_it_closes(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "headrace.driver")
    with (
        headrace.MediaDriver.embedded() as driver,
        driver.connect() as client,
        pytest.raises(headrace.RegistrationError),
    ):
        client.add_publication("aeron:udp?endpoint=nowhere", 10)
    lines = texts(caplog, "headrace.driver")
    assert sum("nowhere" in line for line in lines) == 1


def test_an_image_that_is_lost_is_a_warning_of_the_client_and_of_the_driver(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "headrace")
    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
        subscription = client.add_subscription(CHANNEL, 4913)
        publication = client.add_publication(CHANNEL, 4913)
        await_true(lambda: subscription.is_connected)
        subscription.images[0].reject("not today")
        await_true(lambda: texts(caplog, "headrace.client"))
        directory = driver.directory
    (lost,) = texts(caplog, "headrace.client")
    assert lost.startswith("headrace client: image lost before the end of its stream: ")
    assert f"`headrace events --dir {directory} --session {publication.session_id}` tells why" in lost
    (told,) = [line for line in texts(caplog, "headrace.driver") if "link" in line]
    assert "Active -> Gone: a reader rejected the stream" in told
    assert f"session_id={publication.session_id}" in told


def test_a_client_whose_process_ends_is_a_warning_of_the_driver(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "headrace.driver")
    with headrace.MediaDriver.embedded() as driver:
        code = f"""
import headrace, os
client = headrace.connect({driver.directory!r})
client.add_publication({CHANNEL!r}, 4914)
os._exit(0)
"""
        subprocess.run([sys.executable, "-c", code], timeout=TIMEOUT_S, check=True)
        await_true(lambda: any(": client " in line for line in texts(caplog, "headrace.driver")))
    (told,) = [
        line for line in texts(caplog, "headrace.driver") if line.startswith("headrace driver: client ")
    ]
    assert told.endswith(("its process ended", "not heard from for the client liveness time-out"))
    assert not any("process ended without closing" in line for line in texts(caplog, "headrace.driver")), (
        "told twice"
    )


def test_the_normal_course_of_things_is_no_warning(caplog: pytest.LogCaptureFixture, tmp_path: Path):
    caplog.set_level(logging.WARNING, "headrace")
    with headrace.MediaDriver.embedded() as driver:
        for channel in (CHANNEL, f"aeron:udp?endpoint={free_endpoint()}|term-length=64k"):
            with driver.connect() as client, client.add_subscription(channel, 4915) as subscription:
                for end in (headrace.ExclusivePublication.close, headrace.ExclusivePublication.revoke):
                    with client.add_exclusive_publication(channel, 4915) as publication:
                        await_true(lambda: subscription.is_connected)
                        end(publication)
                    await_true(lambda: not subscription.is_connected)
                left_open = client.add_publication(channel, 4915)
                await_true(lambda: subscription.is_connected)
                assert not left_open.is_closed
        with (
            headrace.ArchiveServer(driver=driver, archive_directory=tmp_path, control_channel_enabled=False),
            driver.connect() as client,
            headrace.Archive.connect(client) as archive,
        ):
            archive.start_recording(CHANNEL, 4916, auto_stop=True)
            with client.add_publication(CHANNEL, 4916) as publication:
                await_true(lambda: publication.is_connected)
            await_true(lambda: [one.stop_position for one in archive.list_recordings()] == [0])
    assert [record.getMessage() for record in caplog.records] == []


def test_images_that_go_with_their_destination_are_no_warning(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "headrace")
    network = f"aeron:udp?endpoint={free_endpoint()}"
    with (
        headrace.MediaDriver.embedded(
            threading_mode="SHARED", image_liveness_timeout_ns=200_000_000
        ) as driver,
        driver.connect() as client,
    ):
        subscription = client.add_subscription("aeron:udp?control-mode=manual", 4918)
        for channel in ("aeron:ipc", f"aeron-spy:{network}", network):
            registration_id = subscription.add_destination(channel)
            with client.add_publication(channel.removeprefix("aeron-spy:"), 4918):
                if channel.startswith("aeron-spy:"):
                    client.add_subscription(network, 4918)
                await_true(lambda: subscription.image_count == 1)
                subscription.remove_destination_by_id(registration_id)
                await_true(lambda: subscription.image_count == 0)
        # Afterwards what is lost is told as before.
        subscription.add_destination("aeron:ipc")
        with client.add_publication("aeron:ipc", 4918):
            await_true(lambda: subscription.image_count == 1)
            assert [record.getMessage() for record in caplog.records] == []
            subscription.images[0].reject("not today")
            await_true(lambda: texts(caplog, "headrace.client"))
    (lost,) = texts(caplog, "headrace.client")
    assert "image lost before the end of its stream" in lost


def test_every_change_of_state_of_a_driver_is_told_at_debug(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "headrace.driver")
    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
        client.add_publication(CHANNEL, 4917).close()
        change = ": Active -> Draining: no client holds it"
        await_true(lambda: any(change in line for line in texts(caplog, "headrace.driver")))


def test_waiting_for_a_driver_says_which_how_long_and_how_to_start_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with pytest.raises(headrace.DriverTimeoutError) as absent:
        headrace.connect(tmp_path, driver_timeout_ms=1_500)
    waiting = texts(caplog, "headrace.client")
    assert len(waiting) == 1
    assert f"waiting up to 1.5 s for a media driver: directory={tmp_path}" in waiting[0]
    for text in (waiting[0], str(absent.value)):
        assert f"headrace driver --dir {tmp_path}" in text


def test_a_program_without_logging_sees_warnings_on_stderr_and_nothing_else(tmp_path: Path):
    code = f"""
import headrace
with headrace.MediaDriver.embedded() as driver, driver.connect():
    pass
try:
    headrace.connect({str(tmp_path)!r}, driver_timeout_ms=1_200)
except headrace.DriverTimeoutError:
    pass
"""
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert finished.stdout == ""
    assert [line.split(":")[0] for line in finished.stderr.splitlines()] == ["headrace client"]
