"""Services that send each message back, for nodes of ours."""

import os
import time
from collections.abc import Iterable

from headrace.cluster import ClientSession, Cluster, ClusteredService
from headrace.cluster.service.batch_runs import MessageBatch


class Echo(ClusteredService):
    """Sends each message back, and waits where there is no room."""

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """See the base class."""
        assert session is not None, "the service sends itself nothing"
        while session.offer(message) < 0:
            if session.publication is None or not session.publication.is_connected:
                return
            time.sleep(0)

    def on_read(self, session: ClientSession, message: bytes) -> bytes:
        """See the base class."""
        return message


class Large(Echo):
    """The same, with a state of as many MiB as the environment says."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        """See the base class."""
        self._state = [bytes(1 << 20)] * int(os.environ["HEADRACE_STATE_MIB"])

    def on_take_snapshot(self) -> Iterable[bytes]:
        """See the base class."""
        return iter(self._state)


class BatchEcho(Echo):
    """The same for runs of messages: answers each in one call for all."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        """See the base class."""
        self._cluster = cluster

    def on_session_messages(self, batch: MessageBatch) -> None:
        """See the how-to page on services."""
        cluster, answers, first = self._cluster, batch.as_array(), 0
        while (first := cluster.answer(batch, answers, first)) < len(batch):
            session = cluster.session(int(batch.session_ids[first]))
            if session is None or session.publication is None or not session.publication.is_connected:
                return
            time.sleep(0)
