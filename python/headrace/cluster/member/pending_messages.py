"""Messages that a service sends to its own cluster, until they are in the log. Cluster specification 7.5.

Every member's service sends them, if it is deterministic; only the leader appends them. Each has an id that is the same
at all members, so each is in the log once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.cluster.errors import ClusterError
from headrace.cluster.protocol.header import pack_header
from headrace.cluster.protocol.snapshots import PendingMessageTracker
from headrace.positions import NULL_VALUE

__all__ = ["PendingMessages", "service_id_of"]

_LONG_MIN = -(1 << 63)
UNSENT = (1 << 63) - 1
_SERVICE_SHIFT, _SERVICE_MASK = 56, 0x7F
_POLL_LIMIT = 20
_BYTES_MAX = 1 << 30


def service_id_of(cluster_session_id: int) -> int:
    """The service whose message an entry of the log is; its session id is below 0."""
    return (cluster_session_id >> _SERVICE_SHIFT) & _SERVICE_MASK


@dataclass(slots=True)
class _Pending:
    cluster_session_id: int
    payload: bytes
    append_position: int = UNSENT


class PendingMessages:
    """Those of one service."""

    def __init__(self, service_id: int) -> None:
        self.service_id = service_id
        base = _LONG_MIN | service_id << _SERVICE_SHIFT
        self._next_id = base + 1
        self._logged_id = base
        self._pending: deque[_Pending] = deque()
        self._byte_count = 0

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[bytes]:
        """Header and payload of each, as a snapshot has them."""
        for one in self._pending:
            yield pack_header(NULL_VALUE, one.cluster_session_id, UNSENT) + one.payload

    @property
    def has_unsent(self) -> bool:
        """Whether something is not appended yet; what is comes last."""
        return bool(self._pending) and self._pending[-1].append_position == UNSENT

    def add(self, payload: bytes) -> None:
        """The service has sent a message.

        Raises:
            ClusterError: More than 1 GiB wait for the log.
        """
        cluster_session_id = self._next_id
        self._next_id += 1
        if cluster_session_id <= self._logged_id:
            return
        if self._byte_count + len(payload) > _BYTES_MAX:
            raise ClusterError(
                f"service_id={self.service_id} has {self._byte_count} bytes of messages to itself waiting for the log, "
                f"and {_BYTES_MAX} are the most"
            )
        self._pending.append(_Pending(cluster_session_id, payload))
        self._byte_count += len(payload)

    def poll(self, append: Callable[[int, bytes], int | None]) -> int:
        """Append what is not appended yet, twenty at most.

        Args:
            append: Appends a session id and a payload; gives the position after it, or ``None`` if the log has no room.
        """
        count = 0
        for one in self._pending:
            if one.append_position != UNSENT:
                continue
            if count == _POLL_LIMIT:
                break
            position = append(one.cluster_session_id, one.payload)
            if position is None:
                break
            one.append_position = position
            count += 1
        return count

    def committed(self, log_position: int) -> None:
        """At the leader: the log is agreed upon up to a position."""
        while self._pending and self._pending[0].append_position <= log_position:
            self._logged_id = self._drop()

    def logged(self, cluster_session_id: int) -> None:
        """The log, which is read or replayed, has a message of the service."""
        self._logged_id = cluster_session_id
        while self._pending and self._pending[0].cluster_session_id <= cluster_session_id:
            self._drop()

    def _drop(self) -> int:
        first = self._pending.popleft()
        self._byte_count -= len(first.payload)
        return first.cluster_session_id

    def restore_uncommitted(self) -> None:
        """What was appended and not committed is appended again, in order."""
        for one in self._pending:
            one.append_position = UNSENT

    def tracker(self) -> PendingMessageTracker:
        """What a snapshot says of them."""
        next_id = self._next_id if self._pending else self._logged_id + 1
        return PendingMessageTracker(
            next_service_session_id=next_id,
            log_service_session_id=self._logged_id,
            pending_message_capacity=self._byte_count,
            service_id=self.service_id,
        )

    def load(self, tracker: PendingMessageTracker) -> None:
        """Begin with what a snapshot says; its messages follow."""
        self._next_id = tracker.next_service_session_id
        self._logged_id = tracker.log_service_session_id
        self._pending.clear()
        self._byte_count = 0

    def load_message(self, cluster_session_id: int, payload: bytes) -> None:
        """A message of the snapshot."""
        self._pending.append(_Pending(cluster_session_id, payload))
        self._byte_count += len(payload)

    def check_loaded(self) -> None:
        """Look whether the snapshot was whole.

        Raises:
            ClusterError: A message is missing.
        """
        ids = [one.cluster_session_id for one in self._pending]
        first = self._logged_id + 1
        if ids != list(range(first, first + len(ids))) or (ids and self._next_id != first + len(ids)):
            raise ClusterError(
                f"the snapshot has {len(ids)} messages of service_id={self.service_id} to itself, and not those from "
                f"{first} to {self._next_id - 1}"
            )
