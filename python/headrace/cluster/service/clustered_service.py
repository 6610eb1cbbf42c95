"""What a user writes: a state machine that reads a cluster's log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from headrace.cluster.protocol.codes import CloseReason, ClusterTimeUnit, Role
    from headrace.cluster.service.cluster import Cluster
    from headrace.cluster.service.session import ClientSession

__all__ = ["ClusteredService"]


class ClusteredService:
    """A state machine. Every member of the cluster runs one and gives it the same entries in the same order.

    Override the methods that matter; the others do nothing. All are called on one thread, the container's. What they
    change and send must follow from the entries alone: no wall clock, no random numbers, no iteration over sets, no
    threads, no files. The time is ``cluster.time``. An exception in a handler goes to the error log; the entry
    counts as consumed, and the next one follows. One in ``on_session_messages`` ends the member.

    A service that also has ``on_session_messages(batch)`` gets runs of messages as columns there, see
    :class:`headrace.cluster.service.batch_runs.MessageBatch`; messages that are longer than a frame still come to
    :meth:`on_session_message`.
    """

    message_views: ClassVar[bool] = False
    """True gives messages as memoryviews, valid during the call, instead of ``bytes``."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        """The first call: keep `cluster`, and load the state. An exception here ends the member.

        Nothing may be sent or scheduled from here.

        Args:
            cluster: What the service works with, for all its life.
            snapshot: The messages that :meth:`on_take_snapshot` gave, in order; ``None`` where there is no snapshot.
        """

    def on_session_open(self, session: ClientSession, timestamp: int) -> None:
        """A client has connected."""

    def on_session_close(self, session: ClientSession, timestamp: int, reason: CloseReason) -> None:
        """A client is gone. ``session`` sends nothing any more."""

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """A message.

        Args:
            session: The client's session; ``None`` when a service of the cluster sent the message.
            timestamp: When the leader took it, in ``cluster.time_unit``.
            message: The bytes; a memoryview with :attr:`message_views`.
            position: Of the log after the message. Every member sees the same.
        """

    def on_read(self, session: ClientSession, message: bytes) -> bytes:
        """Answer a client's :meth:`headrace.cluster.ClusterClient.read`, which changes nothing and is in no log.

        The state is that of a position of the log up to which all that any client was answered before has been read.
        Nothing may be sent or scheduled from here. The client gets what this raises as :class:`ServiceError`.

        Returns:
            The answer.
        """
        raise NotImplementedError(f"{type(self).__name__} has no on_read")

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        """A timer is due. Any service of the cluster may have scheduled it."""

    def on_take_snapshot(self) -> Iterable[bytes]:
        """Give the state, as messages. The container asks a generator for more as the archive takes them.

        The service gets no entry meanwhile.
        """
        return ()

    def state_hash(self) -> int | bytes:
        """A number below 2**511, or bytes, that is equal wherever the state is equal, whatever process computes it.

        A service that overrides it is asked at the same places of the log at all members, about once a MiB and before
        each snapshot. A member whose service differs there from a majority stops, and its error log names the position.
        """
        return 0

    def on_role_change(self, role: Role) -> None:
        """The member leads now, or no longer. Nothing may be sent or scheduled from here."""

    def on_terminate(self, cluster: Cluster) -> None:
        """The last call. Nothing may be sent or scheduled from here."""

    def on_new_leadership_term(
        self,
        leadership_term_id: int,
        log_position: int,
        timestamp: int,
        term_base_log_position: int,
        leader_member_id: int,
        log_session_id: int,
        time_unit: ClusterTimeUnit,
        app_version: int,
    ) -> None:
        """A leader was elected, perhaps the same one."""

    def do_background_work(self, now_ns: int) -> int:
        """Each turn, for what is not part of the state, such as metrics.

        Nothing may be sent or scheduled from here, and nothing changed that an entry sees.

        Args:
            now_ns: A time that never goes back, in nanoseconds.

        Returns:
            How much was done; above 0 keeps the container's thread awake.
        """
        return 0
