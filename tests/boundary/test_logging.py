"""What a program that sets up `logging` is told, and what one that does not."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from tests.helpers import TIMEOUT_S, await_true

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
    client = headrace.connect(driver.directory, driver_timeout_ms=500, keepalive_interval_ns=50_000_000)
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
