"""Streams that an archive and a cluster have for themselves: who uses one without meaning to is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.archive import ArchiveConfig
from headrace.client import Client
from headrace.client._reserved import STREAMS
from headrace.cluster import ConsensusModuleConfig, ContainerConfig
from headrace.testing import World
from tests.cluster.client_lab import Lab
from tests.cluster.members import Member, Script

TABLE = Path(__file__).resolve().parents[2] / "docs/reference/channels.md"
CALLS: list[Callable[[Client, str, int], object]] = [
    Client.add_publication,
    Client.add_exclusive_publication,
    Client.add_subscription,
    Client.request_publication,
    Client.request_exclusive_publication,
    Client.request_subscription,
]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if "reserved streams" in text]


@pytest.mark.parametrize("call", CALLS)
def test_a_program_that_uses_one_beside_an_archive_or_a_cluster_is_told(
    caplog: pytest.LogCaptureFixture, call: Callable[[Client, str, int], object]
) -> None:
    with World(20261201) as world:
        node = world.add_node("leader")
        client = node.connect()
        call(client, "aeron:ipc", 10)
        assert warnings(caplog) == []
        archive = node.run_archive()
        world.run_for(0.1)
        call(client, "aeron:ipc?alias=ticks", 10)
        [told] = warnings(caplog)
        assert "stream 10 of aeron:ipc is where an archive takes requests" in told
        assert "such as 1010; docs/reference/channels.md" in told
        for other in (
            ("aeron:ipc", 1001),
            ("aeron:ipc?session-id=7", 10),
            ("aeron:udp?endpoint=leader:9900", 10),
        ):
            call(client, *other)
        call(client, "aeron:ipc", 104)
        assert len(warnings(caplog)) == 1
        archive.close()


def test_archives_members_and_their_clients_mean_it(caplog: pytest.LogCaptureFixture) -> None:
    with World(20261202) as world:
        member = Member(world, world.add_node("leader"), ingress_ipc_allowed=True)
        member.await_leader()
        Script(member, world.add_node("client")).connect()
        lab = Lab(world)
        lab.app = member.node
        with lab.connect(ingress_channel="aeron:ipc", egress_channel="aeron:ipc") as cluster:
            cluster.offer_blocking(b"hello")
        assert warnings(caplog) == []
        member.node.connect().add_publication("aeron:ipc", 105)
        assert "stream 105 of aeron:ipc is where services speak to their cluster" in warnings(caplog)[0]


def test_the_table_has_the_numbers_that_settings_have_by_default() -> None:
    shown = {
        int(number)
        for row in re.findall(r"^\| ([0-9, ]+) ?\|", TABLE.read_text(), re.MULTILINE)
        for number in row.split(",")
    }
    configs = ArchiveConfig(), ConsensusModuleConfig(members="", ingress_channel=""), ContainerConfig()
    declared = {
        value
        for config in configs
        for name, value in vars(config).items()
        if name.endswith("_stream_id") and name != "archive_response_stream_id"
    }
    assert declared | set(STREAMS) <= shown
