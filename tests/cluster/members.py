"""A member in a simulated world, and a client that is a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.archive import ArchiveServer
from headrace.cluster.member.consensus_module import ConsensusModule
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, pack_header, template_of
from headrace.cluster.protocol.messages import decode, encode
from headrace.cluster.protocol.session import SessionCloseRequest, SessionConnectRequest, SessionEvent
from headrace.testing import Node, World

WITHIN_S = 30.0
MEMBERS = "0,leader:9002,leader:9003,leader:9004,leader:9005,leader:9001"
CLIENT_VERSION = 3 << 8
SEGMENT_LENGTH = 128 * 1024


class Member:
    """One node with an archive and a consensus module, in a world; both can be started again."""

    def __init__(self, world: World, node: Node, *, sync_level: int = 0, **settings: Any) -> None:
        self.sync_level = sync_level
        self.world = world
        self.node = node
        self.settings: dict[str, Any] = {
            "members": MEMBERS,
            "ingress_channel": "aeron:udp",
            "service_count": 0,
            "log_channel": "aeron:udp?term-length=128k",
            "file_sync_level": sync_level,
        } | settings
        self.start()

    def start(self) -> None:
        self.archive: ArchiveServer = self.node.run_archive(
            file_sync_level=self.sync_level,
            catalog_file_sync_level=self.sync_level,
            segment_file_length=SEGMENT_LENGTH,
        )
        self.module = self.node.host(
            lambda: ConsensusModule(
                driver=self.node, is_invoked=True, storage=self.node.disk("cluster"), **self.settings
            )
        )

    def await_leader(self) -> None:
        self.until(lambda: self.module.is_leader, "a leader")

    def until(self, condition: Callable[[], object], what: str) -> None:
        self.world.run_until(condition, within_s=WITHIN_S, what=what)

    def restart(self, *, keeps_writes: bool) -> None:
        """A crash of the machine, or of its processes, and a start."""
        self.node.crash(keeps_writes=keeps_writes)
        self.node.start()
        self.start()
        self.await_leader()

    @property
    def context(self) -> Any:
        return self.module._context


class Script:
    """A client whose messages are made by hand."""

    def __init__(
        self, member: Member, node: Node, *, ingress: str = "aeron:udp?endpoint=leader:9002"
    ) -> None:
        self.member = member
        self.client = node.connect()
        self.answers = self.client.add_subscription(f"aeron:udp?endpoint={node.name}:9100", 102)
        self.ingress = self.client.add_exclusive_publication(ingress, 101)
        self.heard: list[Any] = []
        self.session_id = self.term_id = -1

    def poll(self) -> list[Any]:
        self.answers.poll(lambda data, _: self.heard.append(self._decoded(data)))
        return self.heard

    @staticmethod
    def _decoded(data: bytes) -> Any:
        return data[HEADER_LENGTH:] if template_of(data) == SESSION_MESSAGE else decode(data)

    def send(self, message: Any) -> None:
        data = message if isinstance(message, bytes) else encode(message)
        self.member.until(lambda: self.ingress.offer(data) > 0, "a place in the ingress")

    def request(self, **changes: Any) -> SessionConnectRequest:
        values = {
            "correlation_id": 7,
            "response_stream_id": 102,
            "version": CLIENT_VERSION,
            "response_channel": self.answers.channel,
        } | changes
        return SessionConnectRequest(**values)

    def connect(self, **changes: Any) -> SessionEvent:
        self.send(self.request(**changes))
        event = self.answer()
        assert isinstance(event, SessionEvent), event
        self.session_id, self.term_id = event.cluster_session_id, event.leadership_term_id
        return event

    def answer(self) -> Any:
        self.member.until(self.poll, "an answer")
        return self.heard.pop(0)

    def message(self, payload: bytes) -> None:
        self.send(pack_header(self.term_id, self.session_id, 0) + payload)

    def close_session(self) -> None:
        self.send(SessionCloseRequest(leadership_term_id=self.term_id, cluster_session_id=self.session_id))
