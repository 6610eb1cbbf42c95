"""A driver, clients and streams for tests that need real ones."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Generator, Iterator
from typing import Any

import hypothesis
import pytest

import headrace
from tests.events import TestEvents
from tests.helpers import TIMEOUT_S
from tests.leftovers import TestDirectories

_directories = TestDirectories()
_events = TestEvents()
# One worker runs all tests of such a folder: they share a Spark session, or Java's compiled programs. Spark gives a
# process of Python ten seconds to start, which it would not have beside two more Sparks.
_TOGETHER = ("tests/spark/", "tests/interop/")
# All of interop takes longer than what each other worker has. These go to the one that is free first, when Spark is
# done.
_LAST = tuple(
    f"tests/interop/test_{name}.py" for name in ("cluster_timers", "java_programs", "names", "tools")
)
# What the tests of this process, or of its workers, left in their directories.
_left: list[str] = []

_stream_ids = itertools.count(5000)

Stream = tuple[headrace.Publication, headrace.Subscription]


def pytest_configure() -> None:
    # A shell starts what it runs in the background with Ctrl-C ignored, and Python then keeps it so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # An example may take long on a loaded machine; no test asserts a time.
    hypothesis.settings.register_profile("loaded", deadline=None)
    hypothesis.settings.load_profile("loaded")
    _directories.open()
    _events.watch_drivers()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Workers take them in this order: what takes minutes is not begun when the others are at their end.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(
        key=lambda item: (
            item.nodeid.startswith(_LAST),
            not item.nodeid.startswith(_TOGETHER),
            item.path not in slow,
        )
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            folders = (folder for folder in _TOGETHER if nodeid.startswith(folder))
            file = super()._split_scope(nodeid)
            return file if nodeid.startswith(_LAST) else next(folders, file)

    return Together(config, log)


def pytest_runtest_setup() -> None:
    _events.begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        events = "\n".join(_events.report(_directories.places))
        if events:
            report.sections.append(("events of drivers and archives", events))
    return report


def pytest_runtest_logfinish(nodeid: str) -> None:
    _directories.after(nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    _left.extend(map(str, _directories.close(keep=session.exitstatus != pytest.ExitCode.OK)))
    if _left and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if hasattr(session.config, "workeroutput"):
        # A worker's prints are not seen.
        session.config.workeroutput["left"] = _left
    else:
        for leftover in _left:
            print(f"\nleft by the tests: {leftover}", end="")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # A worker that crashed has no such output; it fails its test, and what it left stays to be looked at.
    _left.extend(getattr(node, "workeroutput", {}).get("left", []))


@pytest.fixture(scope="module")
def media_driver() -> Iterator[headrace.MediaDriver]:
    with headrace.MediaDriver.embedded(threading_mode="SHARED", timer_interval_ns=100_000_000) as driver:
        yield driver


@pytest.fixture
def no_kept_session() -> Iterator[None]:
    """For tests that read an archive's replays as a process of Spark does, which keeps its session and its driver."""
    yield
    from headrace.spark import _archive_service

    _archive_service.close_sessions()


@pytest.fixture
def media_client(media_driver: headrace.MediaDriver) -> Iterator[headrace.Client]:
    with media_driver.connect(idle_sleep_ns=1_000_000) as client:
        yield client


@pytest.fixture
def open_stream(media_client: headrace.Client) -> Callable[..., Stream]:
    """Opens connected publications and subscriptions over IPC, each on a stream of its own."""

    def open_one(*, exclusive: bool = False, channel: str = "aeron:ipc?term-length=64k") -> Stream:
        stream_id = next(_stream_ids)
        subscription = media_client.add_subscription(channel, stream_id)
        add = media_client.add_exclusive_publication if exclusive else media_client.add_publication
        publication = add(channel, stream_id)
        assert publication.wait_until_connected(TIMEOUT_S)
        assert subscription.wait_until_connected(TIMEOUT_S)
        return publication, subscription

    return open_one


@pytest.fixture
def stream(open_stream: Callable[..., Stream]) -> Stream:
    return open_stream()
