"""A consensus module that a test plays step by step, for a service's container, on a node of a simulated world."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

from headrace.archive import ArchiveServer
from headrace.client import Header
from headrace.cluster.common.counters import ClusterCounter, recovery_key
from headrace.cluster.protocol.codes import CloseReason, ClusterAction, ClusterTimeUnit, Role
from headrace.cluster.protocol.control import (
    JoinLog,
    RequestServiceAck,
    ServiceAck,
    ServiceTerminationPosition,
)
from headrace.cluster.protocol.header import HEADER_LENGTH, pack_header, template_of, unpack_header
from headrace.cluster.protocol.log import (
    ClusterActionRequest,
    NewLeadershipTermEvent,
    SessionCloseEvent,
    SessionOpenEvent,
    TimerEvent,
)
from headrace.cluster.protocol.messages import decode, encode
from headrace.cluster.service.cluster import Cluster
from headrace.cluster.service.clustered_service import ClusteredService
from headrace.cluster.service.container import ServiceContainer
from headrace.cluster.service.session import ClientSession
from headrace.testing import Node, World

M = TypeVar("M")

CONTROL = "aeron:ipc?term-length=128k"
LOG = "aeron:ipc?term-length=64k"
EGRESS = "aeron:ipc?alias=egress|term-length=64k"
WITHIN_S = 30.0
TERM = 3


class Recorder(ClusteredService):
    """Notes what it is told, and answers each message. Its state is the list of messages."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.state: list[bytes] = []
        self.answers: list[object] = []
        self.cluster: Cluster | None = None
        self.raises: dict[str, Exception] = {}

    def _note(self, name: str, *values: Any) -> None:
        self.calls.append((name, *values))
        if name in self.raises:
            raise self.raises[name]

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        self.state = [] if snapshot is None else list(snapshot)
        self._note("on_start", None if snapshot is None else list(self.state))

    def on_session_open(self, session: ClientSession, timestamp: int) -> None:
        self._note("on_session_open", session.id, timestamp, session.principal)

    def on_session_close(self, session: ClientSession, timestamp: int, reason: CloseReason) -> None:
        self._note("on_session_close", session.id, timestamp, reason)

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self.state.append(bytes(message))
        self._note(
            "on_session_message", None if session is None else session.id, timestamp, bytes(message), position
        )
        if session is not None:
            self.answers.append(session.offer(b"re:" + bytes(message)))

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        self._note("on_timer_event", correlation_id, timestamp)

    def on_take_snapshot(self) -> Iterable[bytes]:
        self._note("on_take_snapshot")
        yield from self.state

    def on_role_change(self, role: Role) -> None:
        self._note("on_role_change", role)

    def on_terminate(self, cluster: Cluster) -> None:
        self._note("on_terminate")

    def on_new_leadership_term(self, leadership_term_id: int, *values: Any) -> None:  # type: ignore[override]
        self._note("on_new_leadership_term", leadership_term_id, *values)


class ScriptedModule:
    """The consensus module's side of counters, control streams and log."""

    def __init__(
        self,
        world: World,
        node: Node,
        *,
        term_id: int = -1,
        position: int = 0,
        timestamp: int = 0,
        recordings: tuple[int, ...] = (),
    ) -> None:
        self.world, self.node = world, node
        self.client = node.connect()
        self._to_services = self.client.add_publication(CONTROL, 104)
        self._from_services = self.client.add_subscription(CONTROL, 105)
        self.commit = self.client.add_counter(ClusterCounter.COMMIT_POSITION, bytes(4), "commit")
        self.commit.value = position
        key = recovery_key(term_id, position, timestamp, 0, recordings)
        self.recovery = self.client.add_counter(ClusterCounter.RECOVERY_STATE, key, "recovery")
        self.heard: list[Any] = []
        self.log = self.client.add_exclusive_publication(LOG, 100)
        self.ack_ids = itertools.count()
        self.time = timestamp

    def _hear(self, data: bytes, _: Header) -> None:
        if template_of(data) == 1:
            self.heard.append((unpack_header(data)[1], data[HEADER_LENGTH:]))
        else:
            self.heard.append(decode(data))

    def next(self, kind: type[M]) -> M:
        """The next message from a service, which is of a kind."""

        def is_there() -> bool:
            self._from_services.poll(self._hear)
            return bool(self.heard)

        self.world.run_until(is_there, within_s=WITHIN_S, what=kind.__name__)
        message = self.heard.pop(0)
        assert isinstance(message, kind), message
        return message

    def acked(self) -> ServiceAck:
        """The next acknowledgement, which is in its turn."""
        ack = self.next(ServiceAck)
        assert ack.ack_id == next(self.ack_ids)
        return ack

    def acked_by(self, count: int) -> None:
        """The next acknowledgement of each of several services."""
        acks = [self.next(ServiceAck) for _ in range(count)]
        ack_id = next(self.ack_ids)
        assert sorted((ack.service_id, ack.ack_id) for ack in acks) == [
            (index, ack_id) for index in range(count)
        ]

    def send(self, message: Any) -> None:
        """Send to the services."""
        self.world.run_until(
            lambda: self._to_services.offer(encode(message)), within_s=WITHIN_S, what="control"
        )

    def join(self, role: Role = Role.LEADER, *, is_startup: bool = False, **values: Any) -> ServiceAck:
        """Have the service join the log where it is."""
        self._send_join(role, is_startup, values)
        return self.acked()

    def join_all(self, count: int) -> None:
        """Have several services join the log, as followers."""
        self._send_join(Role.FOLLOWER, False, {})
        self.acked_by(count)

    def _send_join(self, role: Role, is_startup: bool, values: dict[str, Any]) -> None:
        fields: dict[str, Any] = {
            "log_position": self.log.position,
            "max_log_position": (1 << 63) - 1,
            "member_id": 2,
            "log_session_id": self.log.session_id,
            "log_stream_id": 100,
            "is_startup": is_startup,
            "role": role,
            "log_channel": LOG,
        }
        self.send(JoinLog(**fields | values))

    def continue_log(self, position: int) -> None:
        """Have the log go on from a position of its first term, under another session."""
        first = self.log.initial_term_id
        place = f"init-term-id={first}|term-id={first}|term-offset={position}"
        self.log = self.client.add_exclusive_publication(f"{LOG}|{place}", 100)

    def append(self, message: Any, *, commit: bool = True) -> int:
        """Put an entry into the log; gives the position after it."""
        data = message if isinstance(message, bytes) else encode(message)
        self.world.run_until(lambda: self.log.offer(data) > 0, within_s=WITHIN_S, what="the log")
        position = self.log.position
        assert position is not None
        if commit:
            self.commit.value = position
        return position

    def term(self, **values: Any) -> int:
        """The first entry of a leadership term."""
        fields: dict[str, Any] = {
            "leadership_term_id": TERM,
            "log_position": (self.log.position or 0) + 96,
            "timestamp": self.time,
            "term_base_log_position": 0,
            "leader_member_id": 2,
            "log_session_id": self.log.session_id,
            "time_unit": ClusterTimeUnit.MILLIS,
            "app_version": 1,
        }
        return self.append(NewLeadershipTermEvent(**fields | values))

    def open(self, session_id: int, timestamp: int = 0, channel: str = EGRESS) -> int:
        """A client connects."""
        return self.append(
            SessionOpenEvent(
                leadership_term_id=TERM,
                correlation_id=session_id + 1000,
                cluster_session_id=session_id,
                timestamp=timestamp,
                response_stream_id=102,
                response_channel=channel,
                encoded_principal=b"who",
            )
        )

    def close_session(self, session_id: int, timestamp: int = 0) -> int:
        """A client leaves."""
        return self.append(
            SessionCloseEvent(
                leadership_term_id=TERM,
                cluster_session_id=session_id,
                timestamp=timestamp,
                close_reason=CloseReason.TIMEOUT,
            )
        )

    def message(self, session_id: int, payload: bytes, timestamp: int = 0, *, commit: bool = True) -> int:
        """A client, or a service, sends."""
        return self.append(pack_header(TERM, session_id, timestamp) + payload, commit=commit)

    def timer(self, correlation_id: int, timestamp: int) -> int:
        """A timer fires."""
        return self.append(
            TimerEvent(leadership_term_id=TERM, correlation_id=correlation_id, timestamp=timestamp)
        )

    def snapshot(self, timestamp: int = 0, flags: int = 0) -> int:
        """All are to take a snapshot."""
        return self.append(
            ClusterActionRequest(
                leadership_term_id=TERM,
                log_position=(self.log.position or 0) + 96,
                timestamp=timestamp,
                action=ClusterAction.SNAPSHOT,
                flags=flags,
            )
        )

    def ask_ack(self, log_position: int) -> None:
        """Have a position acknowledged."""
        self.send(RequestServiceAck(log_position=log_position))

    def end(self, log_position: int, *, ack_required: bool = True) -> None:
        """Have the services end."""
        self.send(ServiceTerminationPosition(log_position=log_position, ack_required=ack_required))


class Rig:
    """A node with an archive, a scripted module and a container."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.node = world.add_node("node")
        self.archive: ArchiveServer = self.node.run_archive()
        self.errors: list[str] = []

    def module(self, **recovery: Any) -> ScriptedModule:
        return ScriptedModule(self.world, self.node, **recovery)

    def container(self, service: ClusteredService, **settings: Any) -> ServiceContainer:
        """A container that gets its turns from the world; what ends it is its `failure`."""
        container = ServiceContainer(
            service,
            driver=self.node,
            is_invoked=True,
            storage=self.node.disk("cluster"),
            on_error=self.errors.append,
            **settings,
        )

        def turn() -> int:
            try:
                return container.do_work()
            except Exception:
                if container.failure is None:
                    raise
                return 0

        self.node.run(turn)
        return container

    def until(self, condition: Any, what: str = "condition") -> None:
        self.world.run_until(condition, within_s=WITHIN_S, what=what)

    def started(self, service: ClusteredService, **settings: Any) -> tuple[ScriptedModule, ServiceContainer]:
        """A service that leads an empty log."""
        module = self.module()
        container = self.container(service, **settings)
        assert module.acked().relevant_id > 0
        module.recovery.close()
        module.join()
        return module, container
