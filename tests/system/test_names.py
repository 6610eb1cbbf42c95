"""Two drivers on this host that tell each other their names."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace import MediaDriver
from headrace.tools import CncFile
from tests.helpers import await_true, take
from tests.ports import free_port

pytestmark = pytest.mark.system

NEIGHBORS = 15
# Neither is listed as the address of an interface.
HOSTS = {"one": "127.0.0.2", "two": "127.0.0.3"}


def neighbors_of(driver: MediaDriver) -> int:
    """How many other drivers a driver knows."""
    with CncFile.open(driver.directory) as cnc:
        return next(record.value for record in cnc.counters if record.type_id == NEIGHBORS)


def test_two_drivers_with_one_resolver_port_on_two_addresses_know_each_other(tmp_path: Path) -> None:
    resolver_port, port = free_port(), free_port()
    with ExitStack() as stack:
        drivers = {
            name: stack.enter_context(
                MediaDriver(
                    directory=tmp_path / name,
                    resolver_name=name,
                    resolver_interface=f"{host}:{resolver_port}",
                    resolver_bootstrap_neighbor=f"{HOSTS['one']}:{resolver_port}",
                    resolver_self_resolution_interval_ns=50_000_000,
                )
            )
            for name, host in HOSTS.items()
        }
        for driver in drivers.values():
            await_true(lambda driver=driver: neighbors_of(driver) == 1)
        one, two = (stack.enter_context(driver.connect()) for driver in drivers.values())
        subscription = two.add_subscription(f"aeron:udp?endpoint=two:{port}", 10)
        publication = one.add_publication(f"aeron:udp?endpoint=two:{port}", 10)
        publication.wait_for_subscribers(1)
        publication.offer(b"hello")
        assert take(subscription, 1) == [b"hello"]
