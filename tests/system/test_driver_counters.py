"""Each counter that one process can make move does, in every threading mode."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.testing import World
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.system

UDP = f"aeron:udp?endpoint={free_endpoint()}"
STREAM_ID = 9
MESSAGES = [b"x" * length for length in range(1000, 3000, 100)]
# Types of counters with a status or a mode instead of a position.
SEND_CHANNEL, RECEIVE_CHANNEL, LOCAL_ADDRESS, OFFLOAD = 6, 7, 14, 2101

# The label of a system counter up to what depends on the driver.
MOVED_BY_A_STREAM = [
    "Bytes sent",
    "Bytes received",
    "Status Messages sent",
    "Status Messages received",
    "Heartbeats sent",
    "Heartbeats received",
    "Conductor max cycle time doing its work in ns",
    "Sender max cycle time doing its work in ns",
    "Receiver max cycle time doing its work in ns",
    # With thresholds of a nanosecond, every cycle exceeds them.
    "Conductor work cycle exceeded threshold count",
    "Sender work cycle exceeded threshold count",
    "Receiver work cycle exceeded threshold count",
    "Bytes currently mapped",
]


@pytest.fixture(params=["DEDICATED", "SHARED_NETWORK", "SHARED"])
def client(request: pytest.FixtureRequest) -> Iterator[headrace.Client]:
    """A client of a driver of which every cycle is too long."""
    with (
        headrace.MediaDriver.embedded(
            threading_mode=request.param,
            conductor_cycle_threshold_ns=1,
            sender_cycle_threshold_ns=1,
            receiver_cycle_threshold_ns=1,
            publication_linger_timeout_ns=1_000_000,
            timer_interval_ns=100_000_000,
            properties={"aeron.name.resolver.threshold": "1ns"},
        ) as driver,
        driver.connect(idle_sleep_ns=1_000_000) as client,
    ):
        yield client


def system_value(client: headrace.Client, label: str) -> int:
    (value,) = [
        record.value
        for record in client.counters
        if record.type_id == 0 and record.label.partition(":")[0] == label
    ]
    return value


def test_a_stream_moves_the_counters_that_speak_of_streams(client: headrace.Client) -> None:
    mapped = system_value(client, "Bytes currently mapped")
    subscription = client.add_subscription(UDP, STREAM_ID)
    with subscription, client.add_publication(UDP, STREAM_ID) as publication:
        for message in MESSAGES:
            publication.offer_blocking(message, timeout_s=TIMEOUT_S)
        received = [subscription.receive(timeout_s=TIMEOUT_S) for _ in MESSAGES]
        assert [message.payload for message in received if message] == MESSAGES
        await_true(lambda: all(system_value(client, label) > 0 for label in MOVED_BY_A_STREAM))
        # An agent counts after it has sent: the reader may be faster.
        for label in ("Bytes sent", "Bytes received"):
            await_true(lambda label=label: system_value(client, label) >= sum(map(len, MESSAGES)))
        assert system_value(client, "Errors") == 0
    await_true(lambda: system_value(client, "Bytes currently mapped") == mapped)


def test_a_refusal_and_a_look_up_are_counted(client: headrace.Client) -> None:
    with pytest.raises(headrace.RegistrationError):
        client.add_publication("aeron:udp?endpoint=127.0.0.1:0", STREAM_ID)
    await_true(lambda: system_value(client, "Errors") == 1)
    # Not localhost, which needs no look-up.
    client.add_publication(f"aeron:udp?endpoint={socket.gethostname()}:{free_port()}", STREAM_ID).close()
    await_true(lambda: system_value(client, "NameResolver max time in ns") > 0)
    await_true(lambda: system_value(client, "NameResolver exceeded threshold count") > 0)


def test_the_offload_mode_and_state_of_each_endpoint_show_and_go_with_it(client: headrace.Client) -> None:
    def of_endpoints() -> list[headrace.CounterRecord]:
        types = (SEND_CHANNEL, RECEIVE_CHANNEL, LOCAL_ADDRESS, OFFLOAD)
        return [record for record in client.counters if record.type_id in types]

    with client.add_subscription(UDP, STREAM_ID), client.add_publication(UDP, STREAM_ID) as publication:
        assert publication.wait_until_connected(TIMEOUT_S)
        shown = {record.label.partition(":")[0].partition(" ")[0]: record for record in of_endpoints()}
        assert shown.keys() == {
            "snd-channel",
            "rcv-channel",
            "snd-local-sockaddr",
            "rcv-local-sockaddr",
            "snd-offload",
            "rcv-offload",
        }
        for name in ("snd-channel", "rcv-channel", "snd-local-sockaddr", "rcv-local-sockaddr"):
            assert shown[name].value == 1, shown[name]
        for name in ("snd-offload", "rcv-offload"):
            assert "(0 segmentation, 1 vectored, 2 single)" in shown[name].label
            assert shown[name].value in (0, 1, 2)
    await_true(lambda: not of_endpoints())


def test_a_client_that_dies_is_counted() -> None:
    # In virtual time: on a crowded machine the one that watches would die as well.
    with World(1) as world:
        node = world.add_node("only")
        watching, silent = node.connect(), node.connect()
        silent.add_counter(1003)
        node.set_stalled(silent, True)
        world.run_for(9)
        assert system_value(watching, "Client liveness timeouts") == 0
        world.run_until(lambda: system_value(watching, "Client liveness timeouts") == 1, within_s=3)


def test_labels_name_the_commit_that_the_core_was_built_from(tmp_path: Path) -> None:
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=tmp_path / "archive", archive_id=7
        ) as driver,
        driver.connect() as client,
    ):
        built = f"version={headrace.__version__} commit={headrace.client.__commit__}"
        # What tools and suites of Aeron compare with their own version; this driver's own follows.
        implements = f"version=1.53.0 commit={headrace.client.__commit__} headrace={headrace.__version__}"

        def labels() -> set[str]:
            return {record.label for record in client.counters}

        await_true(lambda: any(label.endswith(f" name=archive {built}") for label in labels()))
        archive = f"Archive Errors - archiveId=7 {built}"
        assert {f"Errors: {implements}", f"Aeron software: {implements}", archive} <= labels()
        (packed,) = [record.value for record in client.counters if record.label.startswith("Aeron software")]
        assert packed == 1 << 16 | 53 << 8
