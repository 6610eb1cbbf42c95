"""Several publisher processes and threads on one publication, at the smallest term length."""

import threading
from collections.abc import Iterator

import pytest
from benches.processes import fresh_directory

import headrace
from tests.helpers import TIMEOUT_S
from tests.interop.conftest import Peers
from tests.interop.messages import Checker, message

pytestmark = [pytest.mark.faults, pytest.mark.slow]

IPC = "aeron:ipc?term-length=64k"
STREAM_ID = 31
LENGTHS = (16, 8000)
MESSAGES_EACH = 1500


@pytest.fixture
def driver() -> Iterator[headrace.MediaDriver]:
    """An embedded driver."""
    with headrace.MediaDriver(
        directory=fresh_directory("stress"), threading_mode="SHARED", dir_delete_on_shutdown=True
    ) as driver:
        yield driver


def test_publisher_processes_share_one_log(driver: headrace.MediaDriver) -> None:
    """Three processes append through hundreds of rotations; two subscribers read each one's messages in order."""
    peers = Peers(java=None)
    publisher_count = 3
    total = publisher_count * MESSAGES_EACH
    subscribers = [peers.command("python", "subscribe", driver.directory, IPC, STREAM_ID, total)] * 2
    publishers = [
        peers.command("python", "publish", driver.directory, IPC, STREAM_ID, MESSAGES_EACH, *LENGTHS, seed)
        for seed in range(publisher_count)
    ]
    peers.run(*subscribers, *publishers)


def test_publisher_threads_share_one_publication_object(driver: headrace.MediaDriver) -> None:
    """One `Publication` is safe in many threads at once."""
    with (
        headrace.Client.connect(directory=driver.directory) as client,
        client.add_subscription(IPC, STREAM_ID) as subscription,
        client.add_publication(IPC, STREAM_ID) as publication,
    ):
        faults: list[BaseException] = []

        def publish(seed: int) -> None:
            try:
                for index in range(MESSAGES_EACH):
                    publication.offer_blocking(message(seed, index, *LENGTHS), timeout_s=TIMEOUT_S)
            except BaseException as fault:
                faults.append(fault)

        threads = [threading.Thread(target=publish, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        checker = Checker()
        idle = headrace.BackoffIdleStrategy()
        while checker.count < 4 * MESSAGES_EACH and not faults:
            idle.idle(subscription.poll(checker, 64))
        for thread in threads:
            thread.join()
        assert not faults
        assert subscription.poll(checker, 1) == 0
