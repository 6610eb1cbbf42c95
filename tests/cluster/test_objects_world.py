"""Replicated objects in a simulated world: crashes, bad networks, and clients that come and go."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from headrace import ArchiveError
from headrace._agent.tasks import Task
from headrace.cluster import (
    ClusterTimeoutError,
    ServiceContainer,
)
from headrace.cluster.common.node_archive import NodeArchive
from headrace.cluster.member.states import Toggle
from headrace.cluster.objects import (
    AsyncObjectClient,
    ForgottenError,
    ObjectClient,
    ObjectService,
    command,
)
from headrace.testing import Link, Node, World
from tests.cluster.members import Member

IPC = {"ingress_channel": "aeron:ipc", "egress_channel": "aeron:ipc"}
ME = bytes(16)


@dataclass
class Ledger:
    """Remembers each number that it was given, in order."""

    numbers: list[int] = field(default_factory=list)

    @command
    def note(self, number: int) -> int:
        self.numbers.append(number)
        return len(self.numbers)


class LedgerNode:
    """A member with a ledger, in a world, that is started again after each crash."""

    def __init__(self, world: World, kind: type = Ledger) -> None:
        self.world = world
        self.kind = kind
        self.node: Node = world.add_node("leader")
        self.member = Member(world, self.node, service_count=1, session_timeout_ns=3_000_000_000)
        self.start_service()

    def start_service(self) -> None:
        self.service = ObjectService(self.kind())
        self.node.host(
            lambda: ServiceContainer(
                self.service, driver=self.node, is_invoked=True, storage=self.node.disk("service")
            )
        )

    @property
    def numbers(self) -> list[int]:
        ledger = self.service.object
        assert isinstance(ledger, Ledger)
        return ledger.numbers

    def crash(self) -> None:
        self.node.crash(keeps_writes=True)
        self.node.start()
        self.member.start()
        self.start_service()


def settings(world: World) -> dict[str, Any]:
    return {
        "ingress_endpoints": "0=leader:9002",
        "egress_channel": "aeron:udp?endpoint=app:0",
        "chance": random.Random(world.seed),
        "timeout_s": 600.0,
    }


@pytest.mark.sim
@pytest.mark.parametrize("seed", range(3))
def test_each_call_is_carried_out_once_through_crashes_and_a_bad_network(seed: int) -> None:
    with World(seed, checks=False) as world:
        lab = LedgerNode(world)
        app = world.add_node("app")
        world.set_links(Link(loss=0.05, duplicate=0.05, jitter_s=200e-6))
        chance = random.Random(seed)

        async def main() -> None:
            calls: list[asyncio.Task[int]] = []
            async with await AsyncObjectClient.connect(Ledger, app.connect(), **settings(world)) as client:
                for _ in range(4):
                    for _ in range(40):
                        calls.append(asyncio.create_task(client.object.note(len(calls))))
                        await asyncio.sleep(chance.uniform(0, 0.002))
                    # Between calls and their answers.
                    lab.crash()
                    await calls[-1]
                counts = await asyncio.gather(*calls)
                # Whatever was answered before a crash is there again when something later is answered.
                counts.append(await client.object.note(len(calls)))
            assert sorted(counts) == list(range(1, len(calls) + 2))
            assert [lab.numbers[count - 1] for count in counts] == list(range(len(counts)))
            assert len(lab.numbers) == len(counts)

        world.run_async(main())


@pytest.mark.sim
def test_a_call_after_a_long_quiet_has_a_new_session() -> None:
    with World(7) as world:
        LedgerNode(world)
        app = world.add_node("app")
        with ObjectClient.connect(Ledger, app.connect(), **settings(world)) as client:
            first = client._calls.cluster
            assert client.object.note(1) == 1
            # The program does something else, for longer than the cluster waits for a client.
            world.run_for(20)
            assert client.object.note(2) == 2
            assert client._calls.cluster is not first


@pytest.mark.sim
def test_a_client_that_was_forgotten_says_so_and_goes_on_under_another_name() -> None:
    with World(8) as world:
        lab = LedgerNode(world)
        app = world.add_node("app")
        with ObjectClient.connect(Ledger, app.connect(), **settings(world)) as client:
            assert client.object.note(1) == 1
            lab.service._results.close(client._calls._client_id)
            with pytest.raises(ForgottenError):
                client.object.note(2)
            assert client.object.note(3) == 2
            assert lab.numbers == [1, 3]


@pytest.mark.sim
def test_without_a_cluster_connect_and_calls_end_with_their_time() -> None:
    with World(9) as world:
        lab = LedgerNode(world)
        app = world.add_node("app")
        given = settings(world) | {"timeout_s": 7.0}
        with ObjectClient.connect(Ledger, app.connect(), **given) as client:
            lab.node.crash()
            begun_s = world.now_s
            with pytest.raises(
                ClusterTimeoutError, match=r"note\(\); the call may still be carried out: 7 s"
            ):
                client.object.note(1)
            assert 7 <= world.now_s - begun_s < 7.1
        with pytest.raises(ClusterTimeoutError, match=r"has not answered: 7 s are over: no session"):
            ObjectClient.connect(Ledger, app.connect(), **given)


class Twice:
    """Has one list in two attributes until a snapshot, and two from then on."""

    numbers: list[int]
    same: list[int]

    def __init__(self) -> None:
        self.numbers = self.same = []

    @command
    def note(self, number: int) -> int:
        self.numbers.append(number)
        return len(self.same)


@pytest.mark.sim
def test_a_snapshot_that_the_archive_refuses_makes_of_the_state_what_a_replay_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A replay records it, so that on_take_snapshot must be called where the archive was not even asked."""
    with World(8) as world:
        lab = LedgerNode(world, Twice)
        member, app = lab.member, world.add_node("app")
        recorded = NodeArchive.recorded

        def refused(archive: NodeArchive, *values: Any) -> Task[Any]:
            if archive is not member.context.archive:
                raise ArchiveError("refused")
            return (yield from recorded(archive, *values))

        async def main() -> None:
            async with await AsyncObjectClient.connect(Twice, app.connect(), **settings(world)) as client:
                assert await client.object.note(1) == 1
                with monkeypatch.context() as patch:
                    patch.setattr(NodeArchive, "recorded", refused)
                    member.module.request(Toggle.SNAPSHOT)
                    await asyncio.sleep(0.5)
                assert member.module.takes_requests
                assert member.module.snapshot_count == 0
                live = await client.object.note(2)
                before = lab.service.object
                lab.crash()
                # Answered once the log is replayed.
                assert await client.object.note(3) == live
                after = lab.service.object
            assert isinstance(before, Twice)
            assert isinstance(after, Twice)
            assert (before.numbers, before.same) == ([1, 2], [1])
            assert (after.numbers, after.same) == ([1, 2, 3], [1])

        world.run_async(main())
