"""A whole node in this process: driver, archive, consensus module, service, and a client."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from benches.processes import ROOT

from headrace import Client, ConfigError, DriverTimeoutError, HeadraceError, MediaDriver, aio
from headrace.archive import Archive, ArchiveServer
from headrace.cluster import (
    ClientSession,
    Cluster,
    ClusterClient,
    ClusteredService,
    ClusterError,
    ClusterFileError,
    ClusterNode,
    DeterminismCheck,
    DeterminismError,
    ModuleState,
    ServiceContainer,
)
from headrace.cluster.aio import AsyncClusterClient
from headrace.cluster.files.directory import ClusterDirectory
from headrace.cluster.files.recording_log_entries import EntryType
from headrace.cluster.member.states import Toggle
from headrace.cluster.node.turns import NodeTurns
from headrace.cluster.objects import AsyncObjectClient, ObjectClient, command
from tests.helpers import TIMEOUT_S, await_true


class Total(ClusteredService):
    """Adds what it is sent, and answers with the sum."""

    def __init__(self) -> None:
        self.value = 0

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        for message in snapshot or ():
            self.value = int(message)

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self.value += int(message)
        if session is not None:
            session.offer(b"%d" % self.value)

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield b"%d" % self.value


def sums(node: ClusterNode, *numbers: int) -> list[int]:
    """What the service answers to some numbers, sent by a client of its own."""
    with node.connect() as cluster:
        answers = []
        for number in numbers:
            cluster.offer_blocking(b"%d" % number)
            message = cluster.receive(TIMEOUT_S)
            assert message is not None
            answers.append(int(message.payload))
        return answers


def test_a_service_answers_and_its_state_outlives_the_node(tmp_path: Path) -> None:
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        assert sums(node, 1, 2, 3) == [1, 3, 6]
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        assert sums(node, 4) == [10]
        assert node.failure is None
        assert node.module.error_count == 0


def test_answers_say_where_the_log_is(tmp_path: Path) -> None:
    with ClusterNode(Total(), directory=tmp_path / "node") as node, node.connect() as first:
        with node.connect() as second:
            positions = []
            for cluster in (first, second, first):
                cluster.offer_blocking(b"1")
                message = cluster.receive(TIMEOUT_S)
                assert message is not None
                positions.append(message.log_position)
        assert 0 < positions[0] < positions[1] < positions[2] <= node.module.commit_position


def test_an_embedded_node_leaves_nothing_behind() -> None:
    with ClusterNode.embedded(Total()) as node:
        directory = Path(node.directory)
        assert sums(node, 5) == [5]
        assert directory.is_dir()
    assert not directory.exists()


def test_a_snapshot_is_there_when_the_call_returns(tmp_path: Path) -> None:
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        assert sums(node, 1, 2) == [1, 3]
        node.take_snapshot()
        assert node.module.snapshot_count == 1
        node.take_snapshot()
        assert node.module.snapshot_count == 2
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        assert sums(node, 4) == [7]


def test_a_new_log_begins_from_the_latest_snapshot_of_the_old_one(tmp_path: Path) -> None:
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        assert sums(node, 1, 2) == [1, 3]
        node.take_snapshot()
        # Lost with the old log.
        assert sums(node, 4) == [7]
    with ClusterDirectory(tmp_path / "node/cluster").changed_recording_log() as log:
        assert log.seed_from_latest_snapshot() == 2
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        assert sums(node, 10) == [13]
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        assert sums(node, 10) == [23]
        node.take_snapshot()
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        assert sums(node, 10) == [33]


def test_a_start_without_the_snapshot_before_which_the_log_was_purged_is_refused(tmp_path: Path) -> None:
    with ClusterNode(
        Total(),
        directory=tmp_path / "node",
        log_channel="aeron:ipc?term-length=64k",
        archive_settings={"segment_file_length": 65536},
    ) as node:
        with node.connect() as cluster:
            for _ in range(100):
                cluster.offer_blocking(b"1".rjust(1000))
                assert cluster.receive(TIMEOUT_S)
        node.take_snapshot()
        with node.connect_driver() as client, Archive.connect(client) as archive:
            assert archive.purge_segments(0, 65536) == 1
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        assert sums(node, 1) == [101]
    with ClusterDirectory(tmp_path / "node/cluster").changed_recording_log() as log:
        assert log.invalidate_latest_snapshot()
    node = ClusterNode(Total(), directory=tmp_path / "node")
    with pytest.raises(ClusterError, match="the log from position 65536 on only"), node:
        node.wait_until_leader(TIMEOUT_S)


def test_a_snapshot_that_fails_is_told(tmp_path: Path) -> None:
    class Stuck(Total):
        def on_take_snapshot(self) -> Iterable[bytes]:
            raise ValueError("no pen")

    with ClusterNode(Stuck(), directory=tmp_path / "node") as node:
        with pytest.raises(ClusterError, match="the snapshot failed"):
            node.take_snapshot()
        assert sums(node, 5) == [5]


@pytest.mark.parametrize("toggle", [Toggle.SNAPSHOT, Toggle.SHUTDOWN])
@pytest.mark.parametrize("has_begun", [False, True])
def test_a_snapshot_that_the_end_of_the_node_prevents_is_told(
    tmp_path: Path, toggle: Toggle, has_begun: bool
) -> None:
    errors: list[str] = []
    with ClusterNode(Total(), directory=tmp_path / "node", is_invoked=True, on_error=errors.append) as node:
        node.take_snapshot()
        node.module.request(toggle)
        while has_begun and node.module.state is not ModuleState.SNAPSHOT:
            node.do_work()
    (error,) = errors
    assert "closed before the requested snapshot was taken" in error
    with ClusterDirectory(tmp_path / "node" / "cluster").recording_log() as log:
        assert len([entry for entry in log if entry.type is EntryType.SNAPSHOT]) == 2  # of one snapshot


def test_two_services_read_one_log(tmp_path: Path) -> None:
    first, second = Total(), Total()
    with ClusterNode(first, second, directory=tmp_path / "node") as node, node.connect() as cluster:
        cluster.offer_blocking(b"7")
        answers = [cluster.receive(TIMEOUT_S), cluster.receive(TIMEOUT_S)]
        assert [answer and answer.payload for answer in answers] == [b"7", b"7"]
        assert (first.value, second.value) == (7, 7)


def test_a_second_node_on_the_directory_is_refused(tmp_path: Path) -> None:
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        node.wait_until_leader()
        named = f"the node cannot use the directory {tmp_path / 'node'}: "
        with pytest.raises(ClusterFileError, match=f"^{named}another node runs on it"):
            ClusterNode(Total(), directory=tmp_path / "node")
        with (
            MediaDriver.embedded(threading_mode="SHARED") as other,
            pytest.raises(ClusterFileError, match=f"^{named}active mark file: .*CONSENSUS_MODULE"),
        ):
            ClusterNode(Total(), directory=tmp_path / "node", driver=other)
        assert sums(node, 1) == [1]


def test_an_archive_that_has_the_directory_is_named(tmp_path: Path) -> None:
    with (
        MediaDriver.embedded(threading_mode="SHARED") as driver,
        ArchiveServer(driver=driver, archive_directory=tmp_path / "archive", control_channel_enabled=False),
        pytest.raises(
            ClusterFileError, match=f"cannot use the directory {tmp_path}: another archive is running"
        ),
    ):
        ClusterNode(Total(), directory=tmp_path, driver=driver)


def test_a_failure_that_nobody_has_asked_for_ends_the_with_block(tmp_path: Path) -> None:
    """One that was told by a call, or read, is not raised again; what the block raises goes first."""

    class Broken(Total):
        def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
            raise ValueError("no table")

    def ended(node: ClusterNode) -> None:
        await_true(lambda: node.has_ended)

    with (
        pytest.raises(ClusterError, match=r"the node has ended: .*no table"),
        ClusterNode(Broken(), directory=tmp_path / "a") as node,
    ):
        ended(node)
    assert node.is_closed
    with ClusterNode(Broken(), directory=tmp_path / "b") as node:
        ended(node)
        assert "no table" in str(node.failure)
    with ClusterNode(Broken(), directory=tmp_path / "c") as node, pytest.raises(ClusterError):
        node.wait(TIMEOUT_S)

    def fail() -> None:
        with ClusterNode(Broken(), directory=tmp_path / "d") as node:
            ended(node)
            raise LookupError

    with pytest.raises(LookupError):
        fail()


def test_a_node_needs_a_directory_and_none_is_the_working_one() -> None:
    with pytest.raises(ConfigError, match="directory='': must be a path"):
        ClusterNode(Total(), directory="")


class Register:
    """A replicated object."""

    @command
    def put(self, value: int) -> None:
        self.value = value


def test_a_client_of_a_node_that_has_ended_is_told_to_start_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to start a driver, of which it would be told otherwise: the node has its own."""
    with ClusterNode(Total(), directory=tmp_path) as node:
        assert sums(node, 1) == [1]
    connect = functools.partial(Client.connect, driver_timeout_ms=1)
    monkeypatch.setattr(Client, "connect", connect)
    monkeypatch.setattr(aio, "connect", functools.partial(aio.connect, driver_timeout_ms=1))
    text = f"^node_directory='{tmp_path}': the node does not run, or not yet: .*; start the node first$"
    for blocking in (ClusterClient.connect, functools.partial(ObjectClient.connect, Register)):
        with pytest.raises(DriverTimeoutError, match=text):
            blocking(node_directory=tmp_path)
    for awaited in (AsyncClusterClient.connect, functools.partial(AsyncObjectClient.connect, Register)):
        with pytest.raises(DriverTimeoutError, match=text):
            asyncio.run(awaited(node_directory=tmp_path))


def test_another_process_finds_a_node_by_its_directory(tmp_path: Path) -> None:
    program = f"""
from headrace.cluster import ClusterClient
with ClusterClient.connect(node_directory={str(tmp_path)!r}) as cluster:
    cluster.offer_blocking(b"41")
    print(cluster.receive({TIMEOUT_S}).payload)
"""
    with ClusterNode(Total(), directory=tmp_path) as node:
        assert sums(node, 1) == [1]
        done = subprocess.run(
            [sys.executable, "-c", program], timeout=TIMEOUT_S, check=False, capture_output=True, text=True
        )
        assert done.stdout == "b'42'\n", done.stderr
        with pytest.raises(ConfigError, match="must not be given with driver, which names a driver too"):
            ClusterClient.connect(node_directory=tmp_path, driver=node.driver)
    with pytest.raises(ClusterFileError, match="no member has run on the directory"):
        ClusterClient.connect(node_directory=tmp_path / "nowhere")


def test_a_start_deletes_what_a_killed_node_left_in_shared_memory(tmp_path: Path) -> None:
    """In the directory that the mark file names, where the node that is started then has its own driver."""
    program = f"""
import os
from headrace.cluster import ClusterNode
from tests.cluster.test_node import Total
ClusterNode(Total(), directory={str(tmp_path)!r}).wait_until_leader()
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=TIMEOUT_S, check=False, cwd=ROOT)
    assert done.returncode == -9
    left = Path(ClusterDirectory(tmp_path / "cluster").mark().aeron_directory)
    (left / "leftover").touch()
    with ClusterNode(Total(), directory=tmp_path) as node:
        assert Path(node.driver.directory) == left
        assert not (left / "leftover").exists()
        assert sums(node, 1) == [1]
    assert not left.exists()


def test_a_service_that_fails_to_start_ends_the_node(tmp_path: Path) -> None:
    class Broken(Total):
        def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
            raise ValueError("no table of prices")

    errors: list[str] = []
    with (
        ClusterNode(Broken(), directory=tmp_path / "node", on_error=errors.append) as node,
        pytest.raises(ClusterError, match="the node has ended"),
    ):
        node.wait_until_leader()
    assert any("no table of prices" in error for error in errors)


@pytest.mark.parametrize("is_invoked", [False, True])
def test_a_node_that_an_operator_ends_says_so_at_once(tmp_path: Path, is_invoked: bool) -> None:
    with ClusterNode(Total(), directory=tmp_path / "node", is_invoked=is_invoked) as node:
        node.wait_until_leader()
        assert not node.wait(0)
        assert not node.has_ended
        node.module.request(Toggle.SHUTDOWN)
        assert node.wait(TIMEOUT_S)
        assert node.has_ended
        assert node.failure is None
        assert not node.module.is_leader
        for asked in (node.connect, node.wait_until_leader, node.take_snapshot):
            with pytest.raises(ClusterError, match="has ended: an operator ended the cluster"):
                asked()
    assert node.wait()
    for asked in (node.connect, node.wait_until_leader, node.take_snapshot):
        with pytest.raises(ClusterError, match="has ended: it is closed"):
            asked()


@pytest.mark.parametrize("is_invoked", [False, True])
def test_who_waits_for_a_node_is_told_what_failed(tmp_path: Path, is_invoked: bool) -> None:
    class Broken(Total):
        def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
            raise ValueError("no table of prices")

    with ClusterNode(Broken(), directory=tmp_path / "node", is_invoked=is_invoked) as node:
        with pytest.raises(ClusterError, match=r"has ended: .*start") as raised:
            node.wait(TIMEOUT_S)
        assert raised.value.__cause__ is node.failure
        assert node.has_ended


def test_a_node_that_is_closed_elsewhere_ends_the_wait(tmp_path: Path) -> None:
    with ClusterNode(Total(), directory=tmp_path / "node") as node:
        node.wait_until_leader()
        other = threading.Thread(target=node.close)
        other.start()
        assert node.wait(TIMEOUT_S)
        other.join()


class Closer(Total):
    """Calls what it is given in a handler, and notes how that went."""

    def __init__(self, handler: str) -> None:
        super().__init__()
        self.handler = handler
        self.asked: Callable[[], object] = lambda: None
        self.noted: list[object] = []

    def _ask(self, handler: str) -> None:
        if handler != self.handler:
            return
        try:
            self.asked()
        except HeadraceError as refused:
            self.noted.append(str(refused))
        self.noted.append(f"{handler} returns")

    def on_session_open(self, session: ClientSession, timestamp: int) -> None:
        self._ask("on_session_open")

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self._ask("on_session_message")
        super().on_session_message(session, timestamp, message, position)

    def on_terminate(self, cluster: Cluster) -> None:
        self.noted.append("on_terminate")


@pytest.mark.parametrize("handler", ["on_session_open", "on_session_message"])
@pytest.mark.parametrize("is_invoked", [False, True], ids=["threaded", "invoked"])
def test_a_handler_may_close_its_node(tmp_path: Path, handler: str, is_invoked: bool) -> None:
    """The handler goes on to its end, and only then the service is told to end."""
    service = Closer(handler)
    node = ClusterNode(service, directory=tmp_path, is_invoked=is_invoked)
    service.asked = node.close
    with connecting(node, is_invoked) as send:
        send(b"1")
        await_true(lambda: (is_invoked and node.do_work()) or node.is_closed)
        assert node.wait(TIMEOUT_S)
        assert node.failure is None
        assert service.noted == [f"{handler} returns", "on_terminate"]
    node.close()
    with ClusterNode(Total(), directory=tmp_path) as again:
        again.wait_until_leader(TIMEOUT_S)


def test_a_handler_of_a_node_that_is_stepped_cannot_wait_for_the_node(tmp_path: Path) -> None:
    service = Closer("on_session_message")
    with ClusterNode(service, directory=tmp_path, is_invoked=True) as node, connecting(node, True) as send:
        for service.asked in (node.take_snapshot, node.wait, node.do_work, node.containers[0].do_work):
            send(b"1")
            await_true(lambda: (node.do_work() and False) or bool(service.noted))
            refused, returns = service.noted
            assert "handler" in str(refused)
            assert returns == "on_session_message returns"
            service.noted.clear()
        assert node.failure is None
        assert service.value == 4


@contextlib.contextmanager
def connecting(node: ClusterNode, is_invoked: bool) -> Iterator[Callable[[bytes], None]]:
    """A client that connects, whatever becomes of the node meanwhile; gives what sends, once it is connected."""
    node.wait_until_leader(TIMEOUT_S)
    with node.connect_driver() as client:
        pending = ClusterClient.request(client, ingress_channel="aeron:ipc", egress_channel="aeron:ipc")
        clients: list[ClusterClient] = []

        def send(message: bytes) -> None:
            def is_sent() -> bool:
                if is_invoked:
                    node.do_work()
                with contextlib.suppress(HeadraceError):
                    if not clients and (connected := pending.poll()) is not None:
                        clients.append(connected)
                    return bool(clients) and clients[0].offer(message) > 0
                return node.has_ended

            await_true(lambda: is_sent() or node.has_ended)

        yield send


def test_a_nodes_parts_use_the_same_streams(tmp_path: Path) -> None:
    streams: dict[str, Any] = {
        "service_stream_id": 204,
        "consensus_module_stream_id": 205,
        "archive_control_stream_id": 110,
        "replay_stream_id": 203,
    }
    with ClusterNode(Total(), directory=tmp_path, **streams) as node:
        assert sums(node, 5) == [5]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"service_count": 2}, "service_count=2: must be 1, the services given"),
        ({"aeron_directory": "/dev/shm/x"}, "aeron_directory='/dev/shm/x': must be left out"),
        ({"ingress_endpoint": "localhost"}, "^ingress_endpoint='localhost': must be host:port"),
        ({"ingress_endpoint": "a:1,b:2"}, "^ingress_endpoint='a:1,b:2': must be host:port"),
        (
            {"ingress_endpoint": "a:1", "members": "a"},
            "^ingress_endpoint='a:1': must be left out where members",
        ),
        (
            {"members": "alpha,beta"},
            "^member_id=None: is required, as no member has the name of this machine",
        ),
        ({"ingress_endpoint": "a:65536"}, "^ingress_endpoint='a:65536': must be host:port"),
        ({"ingress_endpoint": "a:1|b"}, r"^ingress_endpoint='a:1\|b': must be host:port"),
        ({"session_timeout_ns": 0}, "^session_timeout_ns=0: must be"),
        ({"replay_channel": "ipc"}, "^replay_channel='ipc': must be"),
        ({"archive_settings": {"file_sync_level": 3}}, "^file_sync_level=3: must be"),
    ],
)
def test_what_a_node_cannot_carry_out_is_refused(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        ClusterNode(Total(), directory=tmp_path / "node", **settings)
    assert not (tmp_path / "node").exists()


def test_a_wrong_setting_starts_no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(
        "headrace.cluster.node.cluster_node.MediaDriver", lambda **settings: started.append(settings)
    )
    with pytest.raises(ConfigError, match=r"^members="):
        ClusterNode(Total(), directory=tmp_path, members="0,a")
    assert not started


def test_a_setting_that_is_none_is_as_good_as_not_given(tmp_path: Path) -> None:
    with ClusterNode(Total(), Total(), directory=tmp_path, service_count=None, aeron_directory=None) as node:
        assert node.module.config.service_count == 2


def test_a_second_node_on_a_driver_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with (
        MediaDriver.embedded() as driver,
        ClusterNode(Total(), directory=tmp_path / "a", driver=driver) as node,
    ):
        with pytest.raises(ConfigError, match=r"is used by the node of .*a"):
            ClusterNode(Total(), directory=tmp_path / "b", driver=driver, cluster_id=1)
        assert sums(node, 5) == [5]
        assert not (tmp_path / "b").exists()


class Late(Total):
    """Answers with the time."""

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        if session is not None:
            session.offer(b"%d" % time.time_ns())


def test_what_a_check_finds_fails_the_program(tmp_path: Path) -> None:
    node = ClusterNode(DeterminismCheck(Late), directory=tmp_path / "node")
    assert sums(node, 1)
    with pytest.raises(DeterminismError, match=r"test_node.py:\d+ calls time.time_ns: use the timestamp"):
        node.close()
    node.close()


def test_what_a_block_raises_is_not_hidden_by_what_a_check_finds(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="not a number"),
        ClusterNode(DeterminismCheck(Late), directory=tmp_path / "node") as node,
    ):
        raise ValueError(f"{sums(node, 1)} is not a number")


def test_a_check_that_finds_nothing_lets_the_node_close(tmp_path: Path) -> None:
    with ClusterNode(DeterminismCheck(Total), directory=tmp_path / "node") as node:
        assert sums(node, 1, 2) == [1, 3]
        node.take_snapshot()


def test_a_misspelt_handler_and_a_node_without_a_service_are_refused(tmp_path: Path) -> None:
    class Misspelt(ClusteredService):
        def on_sesion_message(self, *_: object) -> None: ...

    with pytest.raises(ConfigError, match=r"has on_sesion_message, .*did you mean on_session_message\?"):
        ClusterNode(Misspelt(), directory=tmp_path)
    with pytest.raises(ConfigError, match=r"service=.*did you mean on_session_message\?"):
        ServiceContainer(Misspelt(), cluster_directory=tmp_path)
    with pytest.raises(ConfigError, match=r"make\(\)=.*did you mean on_session_message\?"):
        DeterminismCheck(Misspelt)
    with pytest.raises(ConfigError, match="a node without a service answers nothing"):
        ClusterNode(directory=tmp_path)


def test_a_service_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"services\[1\]"):
        ClusterNode(Total(), object(), directory=tmp_path)  # type: ignore[arg-type]


def test_an_object_and_a_class_are_told_what_makes_a_service_of_them(tmp_path: Path) -> None:
    class Jobs:
        @command
        def put(self) -> int:
            return 1

    def make() -> Total:
        return Total()

    class Sums:
        def on_session_message(self, *_: object) -> None: ...

    for given, text in (
        (Jobs(), r"ObjectService\(.*Jobs\(\)\)"),
        (Jobs, r"ObjectService\(.*Jobs\(\)\)"),
        (Total, r"give an instance of it: Total\(\)"),
        ([Total()], "give each service as a separate argument"),
        (make, r"if this function returns one, call it: .*make\(\)"),
        (Sums(), r"have its class inherit from that: class .*Sums\(ClusteredService\)"),
    ):
        text = f"must be a headrace.cluster.ClusteredService; .*{text}"
        with pytest.raises(TypeError, match=rf"services\[0\]=.*: {text}"):
            ClusterNode(given, directory=tmp_path)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=f"service=.*: {text}"):
            ServiceContainer(given, cluster_directory=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"make=.*: must be callable, .* give the class, Total, or a function"
    ):
        DeterminismCheck(Total())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"make\(\)=.*give an instance of it: Total\(\)"):
        DeterminismCheck(lambda: Total)  # type: ignore[arg-type, return-value]
    assert list(tmp_path.iterdir()) == []


class Part:
    """Notes which part has its turn; its messages are gone after so many passes."""

    def __init__(self, name: str, turns: list[str], messages: int = 0) -> None:
        self._name, self._turns = name, turns
        self.messages = messages
        self.has_committed_all = True
        self.commit_position = 0

    def do_work(self) -> int:
        self._turns.append(self._name)
        return 1

    def commit(self) -> int:
        self._turns.append("commit")
        return 0

    def moved(self) -> int:
        self._turns.append(f"messages of {self._name}")
        self.messages -= 1
        return int(self.messages >= 0)

    sequence = record = deliver = moved


@pytest.mark.parametrize("has_archive", [True, False])
def test_parts_take_turns_in_the_way_of_a_message(has_archive: bool) -> None:
    """What the archive has written is committed, and read by the services, in the same turn."""
    turns: list[str] = []
    module: Any = Part("module", turns)
    archive: Any = Part("archive", turns) if has_archive else None
    services: list[Any] = [Part("first", turns), Part("second", turns)]
    whole = ["module", *["archive"][:has_archive], "commit", "first", "second"]
    passed = [one if one == "commit" else f"messages of {one}" for one in whole]
    assert NodeTurns(module, archive, services).do_work() == len(whole) - 1
    assert turns == whole + passed


def test_messages_go_on_their_way_while_there_are_some() -> None:
    """A turn has further passes of messages alone; once all is delivered, only ingress is looked at."""
    turns: list[str] = []
    module: Any = Part("module", turns, messages=2)
    service: Any = Part("service", turns)
    node = NodeTurns(module, None, [service])
    whole, passed = ["module", "commit", "service"], ["messages of module", "commit", "messages of service"]
    assert node.do_work() == 4
    assert turns == whole + passed + 2 * passed[:2]
    turns.clear()
    assert node._move_messages() == 0
    assert turns == passed[:1]


def test_services_are_asked_again_once_more_is_agreed_upon_or_while_they_take_some() -> None:
    turns: list[str] = []
    module: Any = Part("module", turns)
    module.has_committed_all = False
    service: Any = Part("service", turns, messages=2)
    node = NodeTurns(module, None, [service])
    for committed, is_asked in ((64, True), (64, True), (64, True), (64, False), (128, True), (128, False)):
        turns.clear()
        module.commit_position = committed
        node._move_messages()
        assert ("messages of service" in turns) is is_asked


def test_a_log_that_is_not_recorded_yet_is_looked_at_again() -> None:
    """An archive in a process of its own records when it does."""
    turns: list[str] = []
    module: Any = Part("module", turns)
    module.has_committed_all = False
    node = NodeTurns(module, None, [])
    node.do_work()
    turns.clear()
    node._move_messages()
    assert turns == ["messages of module", "commit"]
