"""What `headrace ping` measures: how its loop ends when the other side, or the driver, does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest

import headrace
from headrace.cli import measure
from tests.helpers import await_true

pytestmark = pytest.mark.system

PING, PONG = ("aeron:ipc?term-length=64k", 1), ("aeron:ipc?term-length=64k", 2)
LENGTH = 1024
FRAME_LENGTH = LENGTH + 32
# So many tries, one after the other, are a loop without end.
TRIES_MAX = 1_000_000
SILENT = "a reply did not come; is `headrace pong` still running"


class Site:
    """A client that pings, and a side that answers without reading, until there is no room for a ping."""

    def __init__(self, driver: headrace.MediaDriver) -> None:
        self.driver = driver
        self.client = driver.connect(driver_timeout_ms=2000)
        self.other = driver.connect()
        self.pings = self.other.add_subscription(*PING)
        self.answers = self.other.add_publication(*PONG)
        # The same one as that of `ping`.
        self.publication = self.client.add_publication(*PING)
        self.answered = self.tries = 0

    def measure(self, end: Callable[[Site], object]) -> None:
        def turn(work_count: int) -> None:
            sent = self.publication.position // FRAME_LENGTH
            if self.tries == 0 and self.answered < sent:
                self.answered += self.answers.offer(bytes(8)) > 0
            elif self.tries > 0 or sent > 0:
                self.tries += 1
                if self.tries == 1:
                    end(self)
                assert self.tries < TRIES_MAX, "it tries again and again"

        measure.round_trips(self.client, turn, ping=PING, pong=PONG, messages=1000, warmup=0, length=LENGTH)


@pytest.fixture
def site() -> Iterator[Site]:
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        site = Site(driver)
        with site.client, site.other:
            yield site


def nothing(site: Site) -> None:
    """The reader stays, and stands still."""


def leave(site: Site) -> None:
    site.pings.close()
    await_true(lambda: not site.publication.is_connected)


def end_the_driver(site: Site) -> None:
    site.driver.close()
    await_true(lambda: site.client.is_closed)


@pytest.mark.parametrize(
    ("end", "timeout_s", "error", "text"),
    [
        (nothing, 0.01, headrace.HeadraceError, SILENT),
        (leave, math.inf, headrace.HeadraceError, SILENT),
        (end_the_driver, math.inf, headrace.DriverTimeoutError, "driver"),
    ],
)
def test_a_ping_that_waits_for_room_ends_when_none_comes(
    monkeypatch: pytest.MonkeyPatch,
    site: Site,
    end: Callable[[Site], object],
    timeout_s: float,
    error: type[headrace.HeadraceError],
    text: str,
) -> None:
    monkeypatch.setattr(measure, "_REPLY_TIMEOUT_S", timeout_s)
    with pytest.raises(error, match=text):
        site.measure(end)
