"""Channels that ask for any port, of a range that other programs use too."""

import socket

import pytest

import headrace
from tests.helpers import TIMEOUT_S
from tests.ports import free_port

ANY = "aeron:udp?endpoint=127.0.0.1:0"


def test_a_port_that_another_program_has_is_passed_over() -> None:
    held, free = free_port(), free_port()
    assert free == held + 1
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder,
        headrace.MediaDriver.embedded(
            threading_mode="SHARED", receiver_wildcard_port_range=f"{held} {free}"
        ) as driver,
        driver.connect() as client,
    ):
        holder.bind(("127.0.0.1", held))
        with (
            client.add_subscription(ANY, 1) as subscription,
            client.add_publication(f"aeron:udp?endpoint=127.0.0.1:{free}", 1) as publication,
        ):
            assert subscription.resolved_endpoint == f"127.0.0.1:{free}"
            assert publication.wait_until_connected(TIMEOUT_S)
            none_left = f"no available ports in range {held} {free}: other programs"
            with pytest.raises(headrace.RegistrationError, match=none_left):
                client.add_subscription(ANY, 2)
