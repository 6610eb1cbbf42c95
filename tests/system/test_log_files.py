"""Log files on disk: sparse or with all their blocks, and gone when they are no longer needed."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.system

TERMS_LENGTH = 3 * 1024 * 1024
STAT_BLOCK = 512


def logs(directory: str) -> list[Path]:
    return sorted(Path(directory).glob("*/*.logbuffer"))


@pytest.mark.parametrize(
    "channel", ["aeron:ipc?", f"aeron:udp?endpoint={free_endpoint()}|"], ids=["ipc", "udp"]
)
@pytest.mark.parametrize("how", ["by channel", "by setting"])
def test_a_log_is_sparse_unless_told_otherwise(channel: str, how: str) -> None:
    given = {"by channel": "|sparse=false", "by setting": ""}[how]
    with (
        headrace.MediaDriver.embedded(
            threading_mode="SHARED",
            term_buffer_sparse_file=False if how == "by setting" else None,
            publication_linger_timeout_ns=1_000_000,
            timer_interval_ns=100_000_000,
        ) as driver,
        driver.connect(idle_sleep_ns=1_000_000) as client,
    ):
        full = client.add_publication(f"{channel}term-length=1m{given}", 1)
        (path,) = logs(driver.directory)
        assert path.stem == str(full.original_registration_id)
        status = path.stat()
        assert status.st_size >= TERMS_LENGTH
        assert status.st_blocks * STAT_BLOCK >= status.st_size
        sparse = client.add_publication(f"{channel}term-length=1m|sparse=true|alias=sparse", 2)
        status = (path.parent / f"{sparse.original_registration_id}.logbuffer").stat()
        assert status.st_size >= TERMS_LENGTH
        assert status.st_blocks * STAT_BLOCK < TERMS_LENGTH
        full.close()
        sparse.close()
        await_true(lambda: not logs(driver.directory))


@pytest.mark.parametrize("key", ["", "|sparse=false"])
def test_the_log_of_an_image_is_as_sparse_as_the_channel_of_its_reader_says(key: str) -> None:
    channel = f"aeron:udp?endpoint={free_endpoint()}"
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        driver.connect() as client,
        client.add_subscription(channel + key, 1) as subscription,
        client.add_publication(f"{channel}|term-length=1m", 1),
    ):
        assert subscription.wait_until_connected(TIMEOUT_S)
        (log,) = Path(driver.directory, "images").iterdir()
        assert (log.stat().st_blocks * STAT_BLOCK >= TERMS_LENGTH) is bool(key)
