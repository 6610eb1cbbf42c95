"""What is asked of one member: by clients that are refused, by operators, by settings in the specification's words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import ConfigError, RegistrationError
from headrace.archive.client import requests
from headrace.cluster.member.config import ConsensusModuleConfig
from headrace.cluster.member.states import NodeToggle, Toggle
from headrace.cluster.protocol.codes import EventCode
from headrace.security import Accepted
from headrace.security.named import authenticator_named
from headrace.testing import World
from tests.cluster.members import MEMBERS, Member, Script


@pytest.fixture
def world() -> Iterator[World]:
    with World(17) as world:
        yield world


def made_member(world: World, **settings: Any) -> Member:
    member = Member(world, world.add_node("leader"), **settings)
    member.await_leader()
    return member


def test_clients_that_were_refused_and_cannot_be_told_take_no_place_from_others(world: World) -> None:
    member = made_member(world, max_sessions=2)
    silent = Script(member, world.add_node("silent"))
    for number in range(3):
        nowhere = f"aeron:udp?endpoint=leader:{9300 + number}"
        silent.send(silent.request(version=1 << 16, response_channel=nowhere))
    member.until(lambda: len(member.module._connecting._pending) == 3, "the requests")
    opened = Script(member, world.add_node("client")).connect()
    assert opened.code is EventCode.OK


def test_a_recording_log_is_validated_against_the_archive(world: World) -> None:
    member = made_member(world)
    script = Script(member, world.add_node("client"))
    script.connect()
    log = member.context.recording_log
    for count in (1, 2):
        member.module.request(Toggle.SNAPSHOT)
        member.until(lambda count=count: member.module.snapshot_count == count, "a snapshot")  # type: ignore[misc]
    older, newer = (entry for entry in log if entry.is_snapshot)
    # Of a service, whose recording is there: without the module's part it is no snapshot.
    log.append_snapshot(replace(newer, recording_id=older.recording_id, service_id=0))
    purged = member.context.archive.ask(requests.purge_recording(newer.recording_id))
    member.until(lambda: purged.is_done, "the recording gone")
    member.context.archive.answer(purged)
    toggle = member.context.counters.node_toggle
    toggle.value = NodeToggle.VALIDATE_RECORDING_LOG
    position = older.log_position
    member.until(lambda: member.context.plan.snapshots[0].log_position == position, "the validation")
    assert [entry for entry in log if entry.is_snapshot] == [older]
    assert toggle.value == NodeToggle.NEUTRAL
    before = member.module.commit_position
    script.message(b"goes on")
    member.until(lambda: member.module.commit_position > before, "the message in the log")
    toggle.value = NodeToggle.REPLICATE_STANDBY_SNAPSHOT
    member.until(lambda: toggle.value == NodeToggle.NEUTRAL, "the toggle back")
    member.restart(keeps_writes=True)


def test_properties_may_have_the_defaults_of_the_specification_in_its_own_words() -> None:
    config = ConsensusModuleConfig.of(
        properties={
            "aeron.cluster.members": MEMBERS,
            "aeron.cluster.member.endpoints": "",
            "aeron.cluster.ingress.channel": "aeron:udp",
            "aeron.cluster.replication.channel": "aeron:udp?endpoint=leader:0",
            "aeron.cluster.file.sync.level": "0",
            "aeron.cluster.authenticator.supplier": "io.aeron.security.DefaultAuthenticatorSupplier",
        }
    )
    assert config.member_endpoints == ""
    assert config.authenticator is not None
    accepts = authenticator_named("authenticator", config.authenticator)
    assert accepts.on_connect(b"anything") == Accepted()
    with pytest.raises(ConfigError, match=r"file\.sync\.level=1: .* set aeron\.archive\.file\.sync\.level"):
        ConsensusModuleConfig.of(properties={"aeron.cluster.file.sync.level": "1"})


def test_a_session_whose_counter_the_driver_refuses_is_served_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    member = made_member(world)
    refused = SimpleNamespace(poll=_refuse, cancel=lambda: None)
    monkeypatch.setattr(member.context.counters, "of_session", lambda *_: refused)
    script = Script(member, world.add_node("client"))
    assert script.connect().code is EventCode.OK
    script.message(b"goes into the log")
    assert script.heard == []
    before = member.module.commit_position
    script.message(b"and another")
    member.until(lambda: member.module.commit_position > before, "the message in the log")
    assert member.module.failure is None
    assert "the counter that shows a session is refused" in caplog.text


def _refuse() -> None:
    raise RegistrationError("no room for another counter", 11, 1)
