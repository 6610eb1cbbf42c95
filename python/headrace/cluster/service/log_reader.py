"""Has a service read the logs that its member joins, one after the other. Cluster specification 4.7, 7.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.cluster.protocol.codes import Role
from headrace.cluster.service.callbacks import told
from headrace.cluster.service.joined_log import CopiedLog, JoinedLog, joined
from headrace.cluster.service.log_adapter import ContainerError

if TYPE_CHECKING:
    from headrace._agent.tasks import Task
    from headrace._base.results import Action
    from headrace.client import Client, Header, Image, Subscription
    from headrace.cluster.protocol.control import JoinLog
    from headrace.cluster.service.callbacks import Callbacks
    from headrace.cluster.service.clustered_service import ClusteredService
    from headrace.cluster.service.config import ContainerConfig
    from headrace.cluster.service.session import ClientSession
    from headrace.cluster.service.state import ServiceState

__all__ = ["Reading"]

# Fragments that are given to the service between two looks at the clock.
_CHUNK_MAX = 64
_QUICK_NS = 5_000_000
# After so long the thread does what else it has to do, such as to tell the driver that it lives.
_SLOW_NS = 50_000_000


class Reading:
    """The log that the service reads now, if there is one.

    Args:
        service: What is given the messages.
        config: Which service it is, and how much it is given in a turn.
        client: What reads.
        state: Moved by each entry; says how far the service is between two logs.
        sessions: Who is connected.
        callbacks: Calls the service's other handlers.
        handler: Takes the entries that do not go straight to the service.
        may_go_on: Whether no entry has begun what the log waits for.
    """

    def __init__(
        self,
        service: ClusteredService,
        config: ContainerConfig,
        client: Client,
        state: ServiceState,
        sessions: dict[int, ClientSession],
        callbacks: Callbacks,
        handler: Callable[[Any, Header], Action | None],
        may_go_on: Callable[[], bool],
    ) -> None:
        self._service = service
        self._config = config
        self._client = client
        self._state = state
        self._sessions = sessions
        self._callbacks = callbacks
        self._handler = handler
        self._may_go_on = may_go_on
        self._takes_batches = hasattr(service, "on_session_messages")
        self._handler_name = "on_session_messages" if self._takes_batches else "on_session_message"
        self._chunk = 1
        self.log: JoinedLog | None = None
        """The log, while there is one."""
        # The log that was left last; the next one may go on within a message.
        self._left: JoinedLog | None = None

    @property
    def position(self) -> int:
        """Up to where the service has read."""
        return self._state.position if self.log is None else self.log.position

    def end_at(self, log_position: int) -> None:
        """Read the present log up to a position, where another one goes on."""
        if self.log is not None:
            self.log.limit = log_position

    def joined(self, join: JoinLog, is_superseded: Callable[[], bool]) -> Task[JoinedLog | None]:
        """A log from where the service stands, to be begun, or closed. See :func:`joined`."""
        client, config, position = self._client, self._config, self._state.position
        return joined(client, join, config.service_id, position, self._made, is_superseded)

    def _made(self, subscription: Subscription, image: Image, limit: int) -> JoinedLog:
        deliver = getattr(self._service, "on_session_messages", None)
        if deliver is None and self._service.message_views:
            return JoinedLog(subscription, image, limit, self._handler, view=True)
        if deliver is None:
            deliver = self._service.on_session_message
            return CopiedLog(subscription, image, limit, self._handler, self._state, self._sessions, deliver)
        # Loads numpy, which other services need not have.
        from headrace.cluster.service.batch_runs import BatchedLog

        return BatchedLog(subscription, image, limit, self._handler, self._state, deliver)

    def begin(self, log: JoinedLog, role: Role) -> None:
        """Read a log from now on, as a member of some role."""
        if self._left is not None:
            log.go_on_from(self._left)
            self._left = None
        self.log = log
        self._take_role(role)

    def _take_role(self, role: Role) -> None:
        if self._state.set_role(role):
            self._callbacks.call_silent("on_role_change", role)

    def poll(self, commit_position: int, place: int) -> int:
        """Give the service entries up to the commit position; returns how many. Leaves a log that has ended.

        Args:
            commit_position: Up to where the log is agreed upon.
            place: One that may not be passed by more than a fragment: to find the end of the entry that crosses it.

        Raises:
            ContainerError: An entry is not one that the service can go on from.
            HeadraceError: The client is closed.
        """
        log = self.log
        if log is None:
            return 0
        if commit_position <= log.position:
            self._leave_if_done(log)
            return 0
        limit = self._config.log_fragment_limit
        try:
            count = self._callbacks.watched(
                self._handler_name,
                lambda: (
                    self._paced(log, place, limit) or (place < commit_position and log.step(commit_position))
                ),
            )
        except (ContainerError, KeyboardInterrupt):
            raise
        except BaseException as failure:
            # All else is the handler's, also what is no Exception: see `handled`.
            if self._client.is_closed:
                raise
            if self._takes_batches:
                raise ContainerError(
                    f"on_session_messages of service_id={self._config.service_id} raised {told(failure)}, at "
                    f"log_position={self._state.position}: the service misses the rest of the batch, and a "
                    "restart divides the log into other batches, so the states would differ. Catch the exceptions of "
                    "one message in the handler; a start with the corrected service replays the log"
                ) from failure
            # Of the message that raised.
            session = self._sessions.get(self._state.session_id)
            self._callbacks.report(self._handler_name, failure, of=session)
            return 1
        if count == 0:
            self._leave_if_done(log)
        return count

    def _leave_if_done(self, log: JoinedLog) -> None:
        if log.is_done:
            self._leave(log)

    def _paced(self, log: JoinedLog, limit_position: int, limit: int) -> int:
        """Give the service up to `limit` fragments, and no more than fit into a short time: the thread has more to do.

        How many that may be is found by doubling. So a start on a log of slow messages begins with one.
        """
        clock = self._client.clock
        count, begin_ns = 0, clock.monotonic_ns()
        while count < limit:
            wanted = min(self._chunk, limit - count)
            taken = log.poll(limit_position, wanted)
            count += taken
            now_ns = clock.monotonic_ns()
            is_quick = now_ns - begin_ns < _QUICK_NS
            if now_ns - begin_ns > _SLOW_NS:
                self._chunk = max(1, self._chunk // 8)
                break
            if taken < wanted or not self._may_go_on():
                break
            if is_quick:
                self._chunk = min(2 * self._chunk, _CHUNK_MAX)
        return count

    def _leave(self, log: JoinedLog) -> None:
        self._state.position = max(self._state.position, log.position)
        self.log, self._left = None, log
        log.close()
        self.disconnect()
        self._take_role(Role.FOLLOWER)

    def disconnect(self) -> None:
        """Close the streams to clients, whom the leader alone answers."""
        for session in self._sessions.values():
            session._disconnect()
