"""Opening, closing, closing twice, using what is closed, and the order in which things go."""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import headrace
from headrace import OfferResult
from tests.helpers import TIMEOUT_S, await_true, take
from tests.ports import free_endpoint

pytestmark = pytest.mark.boundary

IPC = "aeron:ipc?term-length=64k"


def test_closing_twice_does_nothing_the_second_time(media_driver):
    client = media_driver.connect()
    closable = [
        client.add_publication(IPC, 1),
        client.add_exclusive_publication(IPC, 1),
        client.add_subscription(IPC, 1),
        client.add_counter(1001, b"key", "label"),
        client,
    ]
    for thing in closable:
        assert not thing.is_closed
        thing.close()
        assert thing.is_closed
        thing.close()
        assert "closed" in repr(thing)


def test_context_managers_close(media_driver):
    with media_driver.connect() as client:
        with client.add_publication(IPC, 1) as publication, client.add_subscription(IPC, 1) as subscription:
            assert not publication.is_closed
        assert publication.is_closed
        assert subscription.is_closed
        with client.add_counter(1001) as counter:
            pass
        assert counter.is_closed
    assert client.is_closed


def test_using_what_is_closed_is_defined(media_driver):
    client = media_driver.connect()
    publication = client.add_publication(IPC, 1)
    subscription = client.add_subscription(IPC, 1)
    counter = client.add_counter(1001)
    client.close()
    assert publication.offer(b"x") is OfferResult.CLOSED
    assert publication.try_claim(1) is OfferResult.CLOSED
    assert (publication.position, publication.position_limit, publication.available_window) == (
        None,
        None,
        None,
    )
    assert not publication.is_connected
    assert publication.channel_status == "closed"
    assert publication.channel == IPC
    for call in (
        lambda: subscription.poll(print),
        lambda: subscription.controlled_poll(print),
        lambda: subscription.block_poll(print, 4096),
        subscription.poll_batch,
        subscription.poll_message,
        subscription.receive,
        lambda: counter.value,
        lambda: setattr(counter, "value", 1),
        lambda: counter.get_and_add(1),
        lambda: client.add_publication(IPC, 1),
        lambda: client.add_subscription(IPC, 1),
        client.next_correlation_id,
    ):
        with pytest.raises(headrace.ClosedError, match="closed"):
            call()


def taken_slots(driver):
    """How many of the driver's slots for waiters are locked."""
    taken = 0
    for path in (Path(driver.directory) / "waiters").iterdir():
        with path.open("rb") as slot:
            try:
                fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                taken += 1
    return taken


def test_closed_clients_that_are_kept_hold_no_slot_for_waiters(media_driver):
    before = taken_slots(media_driver)
    kept = []
    for _ in range(3):
        client = media_driver.connect()
        subscription = client.add_subscription(IPC, 1)
        # Threads that wait at the same time leave their slots to the next waits of their client. One that gets no time
        # of the processor takes none.
        while taken_slots(media_driver) == before:
            threads = [
                threading.Thread(target=subscription.wait_until_connected, args=(0.1,), daemon=True)
                for _ in range(3)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(TIMEOUT_S)
        kept += [client, subscription]
        client.close()
    await_true(lambda: taken_slots(media_driver) == before)


def test_closed_streams_that_are_kept_map_no_log(media_driver):
    """Beyond the linger time; the driver, in this process, lets go of its own mappings by then."""
    with media_driver.connect(resource_linger_ns=1) as client:
        publication = client.add_publication(IPC, 1)
        subscription = client.add_subscription(IPC, 1)
        assert publication.wait_until_connected(TIMEOUT_S)
        publication.offer_blocking(b"kept")
        assert mapped_logs(media_driver)
        await_true(lambda: subscription.images)
        image = subscription.images[0]
        claim = publication.try_claim(4)
        view = claim.view
        publication.close()
        subscription.close()
        await_true(lambda: not mapped_logs(media_driver))
        assert image.is_closed
        view[:] = b"safe"
        with pytest.raises(headrace.ClosedError):
            claim.commit()


def mapped_logs(driver):
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if driver.directory in line and ".logbuffer" in line]


def test_a_closed_driver_gives_no_client_at_once():
    driver = headrace.MediaDriver.embedded(threading_mode="SHARED")
    driver.close()
    with pytest.raises(headrace.ClosedError, match=driver.directory):
        driver.connect()


def test_an_endpoint_can_be_used_again_as_soon_as_it_was_closed():
    """The driver refuses while its agents let go of the socket; the client asks again."""
    channel = f"aeron:udp?endpoint={free_endpoint()}"
    with headrace.MediaDriver.embedded(threading_mode="DEDICATED") as driver, driver.connect() as client:
        for _ in range(200):
            client.add_subscription(channel, 1).close()
            client.add_publication(channel, 1).close()


def test_what_a_client_made_keeps_it_open(media_driver):
    client = media_driver.connect()
    subscription = client.add_subscription(IPC, 7)
    publication = client.add_publication(IPC, 7)
    del client
    gc.collect()
    publication.offer_blocking(b"still here")
    assert take(subscription, 1) == [b"still here"]


def test_dropping_a_client_closes_it_without_deadlock(media_driver):
    """The conductor may be inside a Python handler, and so in need of the GIL, while the last reference goes."""
    closed = threading.Event()
    for _ in range(10):
        client = headrace.Client.connect(
            driver=media_driver, on_close=closed.set, on_available_counter=lambda *ids: None, idle_sleep_ns=0
        )
        counter = client.add_counter(1001)
        del client, counter
        gc.collect()
        assert closed.wait(TIMEOUT_S)
        closed.clear()


def test_counters_are_seen_by_other_clients(media_driver, media_client):
    with media_driver.connect() as other:
        counter = media_client.add_counter(1001, b"key", "a label")
        counter.value = 41
        assert counter.get_and_add(1) == 41
        record = other.counters[counter.counter_id]
        assert (record.type_id, record.label, record.value) == (1001, "a label", 42)
        assert record.key[:3] == b"key"
        assert record.owner_id == media_client.client_id
        assert other.counters.value(counter.counter_id) == 42
        seen = other.counters[counter.counter_id]
        assert other.counters.compare_and_set(seen, 43)
        assert not other.counters.compare_and_set(seen, 44)
        assert counter.value == 43
        gone = dataclasses.replace(seen, registration_id=seen.registration_id + 1)
        with pytest.raises(KeyError):
            other.counters.compare_and_set(gone, 44)
        assert other.counters.find(1001, counter.registration_id) == counter.counter_id
        assert counter.counter_id in {each.counter_id for each in other.counters}
        with pytest.raises(KeyError):
            other.counters[1_000_000]
    with pytest.raises(headrace.ConfigError, match="label"):
        media_client.add_counter(1001, b"", "x" * 381)


def test_static_counters_outlive_their_client(media_driver, media_client):
    with media_driver.connect() as other:
        counter = other.add_static_counter(1002, 77, b"", "static")
        counter.value = 5
        assert counter.is_static
        counter.close()
        assert not counter.is_closed
    again = media_client.add_static_counter(1002, 77)
    assert (again.counter_id, again.value) == (counter.counter_id, 5)


def test_a_rejected_publisher_is_told_why(media_driver):
    errors, gone = [], threading.Event()
    with headrace.Client.connect(driver=media_driver, on_publication_error=errors.append) as client:
        subscription = client.add_subscription(IPC, 8, on_unavailable_image=lambda image: gone.set())
        publication = client.add_publication(IPC, 8)
        assert subscription.wait_until_connected(TIMEOUT_S)
        (image,) = subscription.images
        with pytest.raises(headrace.ConfigError, match="1023"):
            image.reject("x" * 1024)
        image.reject("not wanted here")
        assert gone.wait(TIMEOUT_S)
        await_true(lambda: errors)
        assert "not wanted here" in str(errors[0])
        assert isinstance(errors[0], headrace.RegistrationError)
        assert image.is_closed
        with pytest.raises(headrace.ClosedError):
            image.reject("again")
        assert publication.offer(b"x") is OfferResult.NOT_CONNECTED


def test_counter_handlers_are_told_what_comes_and_goes(media_driver, media_client):
    came, went = [], []
    with headrace.Client.connect(
        driver=media_driver,
        on_available_counter=lambda *ids: came.append(ids),
        on_unavailable_counter=lambda *ids: went.append(ids),
    ):
        counter = media_client.add_counter(1003)
        ids = (counter.registration_id, counter.counter_id)
        await_true(lambda: ids in came)
        counter.close()
        await_true(lambda: ids in went)


def test_a_session_id_can_be_asked_for(media_client):
    session_id = media_client.next_available_session_id(9)
    publication = media_client.add_publication(f"{IPC}|session-id={session_id}", 9)
    assert publication.session_id == session_id
    assert media_client.next_correlation_id() < media_client.next_correlation_id()


def test_a_driver_that_ends_ends_its_clients():
    driver = headrace.MediaDriver.embedded(threading_mode="SHARED")
    errors = []
    client = headrace.Client.connect(driver=driver, keepalive_interval_ns=50_000_000, on_error=errors.append)
    subscription = client.add_subscription(IPC, 1)
    publication = client.add_publication(IPC, 1)
    driver.close()
    assert driver.is_closed
    driver.close()
    await_true(lambda: client.is_closed)
    assert publication.offer(b"x") is OfferResult.CLOSED
    with pytest.raises(headrace.DriverTimeoutError):
        subscription.poll(print)
    with pytest.raises(headrace.PublicationClosedError, match="driver"):
        publication.offer_blocking(b"x")
    await_true(lambda: errors)
    assert isinstance(errors[0], headrace.DriverTimeoutError)
    client.close()


def test_an_embedded_driver_leaves_no_file():
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        directory = Path(driver.directory)
        assert (directory / "cnc.dat").exists()
    assert not directory.exists()


def test_two_drivers_on_one_directory_are_refused(media_driver):
    with pytest.raises(
        headrace.ActiveDriverError, match=rf"Active media driver.*pid={os.getpid()}; .*another directory"
    ):
        headrace.MediaDriver(directory=media_driver.directory)


def test_no_driver_is_an_error_that_names_the_directory(tmp_path):
    with pytest.raises(headrace.DriverTimeoutError, match=str(tmp_path)):
        headrace.connect(tmp_path, driver_timeout_ms=50)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"term_buffer_length": 1000}, ["term.buffer.length", "1000"]),
        ({"threading_mode": "many"}, ["threading.mode", "MANY"]),
        ({"conductor_idle_strategy": "nap"}, ["idle.strategy", "nap"]),
        ({"properties": {"aeron.no.such.thing": "1"}}, ["aeron.no.such.thing"]),
        ({"term_length": 65536}, ["term_length", "DriverConfig"]),
        ({"mtu_length": []}, ["mtu_length", "whole number"]),
    ],
)
def test_a_wrong_driver_setting_is_named(tmp_path, settings, words):
    with pytest.raises(headrace.ConfigError) as refusal:
        headrace.MediaDriver(directory=tmp_path / "driver", **settings)
    for word in words:
        assert word in str(refusal.value)
    assert not (tmp_path / "driver").exists()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"driver_timeout_ms": -1}, "driver_timeout_ms"),
        ({"driver_timeout_ms": 0}, "driver_timeout_ms"),
        ({"idle_sleep_ns": 2_000_000_000}, "idle_sleep_ns"),
        ({"client_name": "x" * 101}, "client_name"),
        ({"timeout": 1}, "timeout"),
    ],
)
def test_a_wrong_client_setting_is_named(media_driver, settings, name):
    with pytest.raises(headrace.ConfigError, match=name) as refusal:
        media_driver.connect(**settings)
    assert refusal.value.setting == name


def test_what_is_no_driver_and_no_configuration_is_refused_by_name(media_driver, tmp_path):
    for call, name in (
        (lambda: headrace.connect(driver="/dev/shm/aeron"), "driver"),
        (lambda: headrace.connect(driver=headrace.MediaDriver), "driver"),
        (lambda: headrace.connect(driver=tmp_path, reconnect=True), "driver"),
        (lambda: headrace.Client.connect(driver=media_driver._driver), "driver"),
        (lambda: headrace.connect(driver=media_driver, config={"client_name": "x"}), "config"),
        (lambda: headrace.Client.connect(config=headrace.DriverConfig()), "config"),
        (lambda: headrace.MediaDriver(headrace.ClientConfig()), "config"),
        (lambda: headrace.MediaDriver("/dev/shm/aeron"), "config"),
        (lambda: headrace.ArchiveServer({"archive_directory": tmp_path}), "config"),
        (
            lambda: headrace.ArchiveServer(driver=tmp_path, control_channel_enabled=False),
            "driver",
        ),
        (lambda: headrace.Archive.connect(driver=tmp_path, control_channel=IPC), "driver"),
    ):
        with pytest.raises((TypeError, headrace.ConfigError), match=f"^{name}=.*must be a"):
            call()


def test_arguments_that_an_idle_strategy_does_not_take_are_refused():
    for name in ("sleep-ms", "spin", "blocking"):
        with pytest.raises(headrace.ConfigError, match=f"idle strategy {name} takes no arguments: 3ms"):
            headrace.IdleStrategy(name, "3ms")
    assert headrace.IdleStrategy("sleep-ns", "3ms").name == "sleep-ns"


def test_a_driver_that_stopped_is_said_to_have_stopped(tmp_path):
    driver = headrace.MediaDriver(directory=tmp_path / "driver", threading_mode="SHARED")
    with driver.connect() as client:
        driver.close()
        await_true(lambda: client.is_closed)
        with pytest.raises(
            headrace.HeadraceError, match=r"^(?!driver timeout).*the driver has stopped: directory="
        ):
            client.add_publication(IPC, 1)


def test_what_ended_with_its_driver_says_so(tmp_path):
    driver = headrace.MediaDriver(directory=tmp_path / "driver", threading_mode="SHARED")
    with driver.connect() as client:
        publication = client.add_publication(IPC, 1)
        exclusive = client.add_exclusive_publication("aeron:udp?control-mode=manual|control=127.0.0.1:0", 1)
        subscription = client.add_subscription("aeron:udp?control-mode=manual", 1)
        subscription.add_destination(IPC)
        await_true(lambda: subscription.images)
        image = subscription.images[0]
        counter = client.add_counter(1001)
        driver.close()
        await_true(lambda: client.is_closed)
        for call in (
            lambda: publication.offer_blocking(b"x"),
            lambda: asyncio.run(offered(publication)),
            lambda: exclusive.add_destination("aeron:udp?endpoint=127.0.0.1:9"),
            lambda: exclusive.remove_destination("aeron:udp?endpoint=127.0.0.1:9"),
            lambda: exclusive.remove_destination_by_id(3),
            lambda: subscription.add_destination(IPC),
            lambda: subscription.remove_destination(IPC),
            lambda: subscription.remove_destination_by_id(3),
            subscription.poll_message,
            lambda: image.reject("late"),
            lambda: counter.value,
            lambda: counter.get_and_add(1),
        ):
            with pytest.raises(headrace.HeadraceError, match="the driver has stopped: directory="):
                call()


async def offered(publication: headrace.Publication) -> int:
    return await publication.offer_async(b"x")


def test_the_driver_refuses_a_channel_by_name(media_client):
    with pytest.raises(headrace.RegistrationError, match="aeron:carrier-pigeon") as refusal:
        media_client.add_publication("aeron:carrier-pigeon", 1)
    assert refusal.value.code_name == "INVALID_CHANNEL"
    assert refusal.value.code == 1
    assert refusal.value.correlation_id > 0


def test_one_thread_can_run_driver_and_client():
    with headrace.MediaDriver.embedded(threading_mode="INVOKER") as driver:
        with headrace.Client.connect(driver=driver, use_invoker=True) as client:
            subscription = client.add_subscription(IPC, 1)
            publication = client.add_publication(IPC, 1)

            def connected() -> bool:
                driver.invoke()
                client.invoke()
                return publication.is_connected and subscription.is_connected

            await_true(connected)
            assert publication.offer(b"one thread") > 0
            assert take(subscription, 1) == [b"one thread"]
        with pytest.raises(headrace.ClosedError):
            client.invoke()
    assert driver.invoke() == 0


def test_invoking_what_has_a_thread_is_refused(media_driver, media_client):
    with pytest.raises(headrace.ConfigError, match="INVOKER"):
        media_driver.invoke()
    with pytest.raises(headrace.ConfigError, match="use_invoker"):
        media_client.invoke()


def test_the_settings_in_use_can_be_read(media_driver):
    assert media_driver.settings["aeron.threading.mode"] == "SHARED"
    assert media_driver.settings["aeron.dir"] == media_driver.directory
    assert not media_driver.is_terminated
    assert media_driver.failure is None
    assert media_driver.directory in repr(media_driver)


LEFT_OPEN = """
import headrace
driver = headrace.MediaDriver.embedded(threading_mode="SHARED")
client = headrace.Client.connect(driver=driver, on_available_counter=lambda *ids: None, idle_sleep_ns=0)
subscription = client.add_subscription("aeron:ipc?term-length=64k", 1)
publication = client.add_publication("aeron:ipc?term-length=64k", 1)
publication.offer_blocking(b"x")
claim = publication.try_claim(10)
view = claim.view
headrace.leaked = [driver, client, subscription, publication, claim, view]
print(driver.directory)
"""


def test_a_program_may_end_with_everything_open():
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", LEFT_OPEN],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(done.stdout.strip()).exists()


def test_a_refusal_without_a_kind_of_its_own_begins_with_its_reason(media_client: headrace.Client) -> None:
    with pytest.raises(headrace.RegistrationError) as refusal:
        media_client.add_publication("aeron:ipc?term-length=3", 1001)
    assert str(refusal.value).startswith("term length less than min length of 65536: term-length=3")
    assert refusal.value.code_name == "GENERIC_ERROR"


def test_an_ipv4_address_in_the_notation_of_ipv6_is_that_address(media_client: headrace.Client) -> None:
    with media_client.add_subscription("aeron:udp?endpoint=[::ffff:127.0.0.1]:0", 1001) as subscription:
        address = subscription.resolved_endpoint
        assert address is not None
        assert address.startswith("127.0.0.1:")
        port = address.rpartition(":")[2]
        for endpoint in (f"[::ffff:127.0.0.1]:{port}", address):
            with media_client.add_publication(f"aeron:udp?endpoint={endpoint}", 1001) as publication:
                publication.offer_blocking(endpoint.encode(), timeout_s=TIMEOUT_S)
                message = subscription.receive(timeout_s=TIMEOUT_S)
                assert message is not None
                assert message.payload == endpoint.encode()


def test_a_client_without_a_thread_is_answered_beside_a_busy_one(media_driver):
    """It takes the driver's events as they come, and not one each time that it has rested."""
    answered = threading.Event()

    def keep_the_driver_busy() -> None:
        with media_driver.connect() as other:
            while not answered.is_set():
                added = [other.request_counter(2000) for _ in range(100)]
                for request in added:
                    counters = []
                    await_true(
                        lambda request=request, counters=counters: (
                            counters.append(request.poll()) or counters[-1]
                        )
                    )
                    counters[-1].close()

    busy = threading.Thread(target=keep_the_driver_busy)
    busy.start()
    try:
        with media_driver.connect(use_invoker=True) as client:
            for _ in range(20):
                client.add_counter(2001).close()
    finally:
        answered.set()
        busy.join(TIMEOUT_S)
