"""Members on machines of their own, network namespaces, between which packets are lost one way or both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from headrace import Client
from headrace.cli.cluster.demo.members import Place
from headrace.testing.namespaces import Namespace
from tests.cluster.networks import Switch
from tests.cluster.processes import Node, Processes, connect
from tests.helpers import rounds
from tests.interop.conftest import our_driver_process

UNAVAILABLE = Switch.unavailable()
pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE)),
]
PORT = 9000


@contextmanager
def cluster_of(switch: Switch) -> Iterator[Processes]:
    """A member on each machine but the last one, which has the client."""
    *machines, client_machine = switch.machines
    hosts = ",".join(f"{machine.address}:{PORT}" for machine in machines)
    with (
        Place.made() as place,
        our_driver_process("partitions", prefix=client_machine.command([])) as driver,
        Client.connect(driver) as client,
    ):
        members = [
            Node(number, hosts, place, machine.command([]), leader_heartbeat_timeout="1s")
            for number, machine in enumerate(machines)
        ]
        egress = f"aeron:udp?endpoint={client_machine.address}:0"
        cluster = Processes(members, partial(connect, hosts, client, egress_channel=egress))
        with cluster.running():
            yield cluster


def parts_of(switch: Switch, cluster: Processes, count: int) -> tuple[list[Namespace], list[Namespace]]:
    """The machines of the leader and of some followers, so many in all; and those of the other members."""
    leader = cluster.settled().member_id
    some = [(leader + number) % len(cluster.members) for number in range(count)]
    return (
        [switch.machines[number] for number in some],
        [switch.machines[number] for number in range(len(cluster.members)) if number not in some],
    )


def goes_on(switch: Switch, cluster: Processes) -> None:
    """Another member leads and answers; then all hear each other again, and all have the log."""
    load = cluster.load
    term = max(load.first_of_terms)
    cluster.until(lambda: max(load.first_of_terms) > term, "an answer from the next leader")
    cluster.answered()
    switch.heal()
    cluster.settled()


def test_three_members_whose_leader_is_cut_off() -> None:
    with Switch(4) as switch, cluster_of(switch) as cluster:
        client = switch.machines[-1:]
        for way in ("from all", "from members' packets", "from members"):
            leader, others = parts_of(switch, cluster, 1)
            if way == "from all":
                switch.part(leader, [*others, *client])
            elif way == "from members' packets":
                # It sends heartbeats, and hears no position.
                switch.cut(others, leader)
            else:
                # It hears them, and the client, and is not heard.
                switch.cut(leader, others)
            goes_on(switch, cluster)
        cluster.finish()


@pytest.mark.skipif(rounds(1) == 1, reason="in `make soak-cluster` alone")
def test_five_members_of_which_two_are_cut_off() -> None:
    with Switch(6) as switch, cluster_of(switch) as cluster:
        for _ in range(2):
            minority, majority = parts_of(switch, cluster, 2)
            switch.part(minority, [*majority, switch.machines[-1]])
            goes_on(switch, cluster)
        cluster.finish()
