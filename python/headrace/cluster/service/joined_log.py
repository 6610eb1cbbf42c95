"""The log that a service reads: joined where the consensus module says, and read up to the commit position."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace._results import Action
from headrace.channel import ChannelUri
from headrace.cluster.ground.courses import Course, added, until
from headrace.cluster.ground.fragments import BEGINS, next_flags
from headrace.cluster.service.entries import ContainerError

if TYPE_CHECKING:
    from headrace.client import Client, Header, Image, Subscription
    from headrace.cluster.protocol.control import JoinLog
    from headrace.cluster.service.session import ClientSession
    from headrace.cluster.service.state import ServiceState

__all__ = ["CopiedLog", "JoinedLog", "joined"]

_LONGEST_MESSAGE = 16 * 1024 * 1024


class JoinedLog:
    """One log, from the position where it was joined.

    Args:
        subscription: Where it arrives; the log closes it.
        image: The stream.
        limit: Position up to which it is read; a replay ends there.
        handler: Takes its messages.
        view: Whether as memoryviews.
    """

    def __init__(
        self,
        subscription: Subscription,
        image: Image,
        limit: int,
        handler: Callable[[Any, Header], Action | None],
        view: bool,
    ) -> None:
        self._subscription = subscription
        self._image = image
        self._handler = handler
        self._view = view
        self._is_begun = False
        self.limit = limit

    @property
    def position(self) -> int:
        """How far it is read."""
        return self._image.position

    def check_begin(self, commit_position: int) -> None:
        """Look whether the log goes on with the begin of an entry; only at its first fragment, once that has come.

        Raises:
            ContainerError: The log before was left within a message, as a consensus module of Aeron's may have it. The
                fragments of before are gone, so that the message would be lost to this service, and not to its replay.
        """
        if self._is_begun:
            return
        flags = next_flags(self._image, min(commit_position, self.limit))
        if flags is not None and not flags & BEGINS:
            raise ContainerError(
                f"the log goes on within a message at log_position={self._image.position}, whose begin is gone: start "
                "the member again, which reads it whole"
            )
        self._is_begun = flags is not None

    @property
    def max_message_length(self) -> int:
        """The longest message that the stream takes, in bytes. Transport specification 1."""
        return min(self._image.term_length // 8, _LONGEST_MESSAGE)

    def poll(self, commit_position: int, fragment_limit: int) -> int:
        """Give the handler what is committed. What it raises comes out of here."""
        return self._image.controlled_poll(
            self._handler, fragment_limit, limit_position=min(commit_position, self.limit), view=self._view
        )

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come, once a poll found nothing."""
        image = self._image
        return image.position >= self.limit or image.is_end_of_stream or image.is_closed

    def close(self) -> None:
        """Leave it."""
        self._subscription.close()


class CopiedLog(JoinedLog):
    """One log whose messages of sessions go to a service as ``bytes``, without a handler in between.

    Args:
        subscription: As for :class:`JoinedLog`.
        image: As for :class:`JoinedLog`.
        limit: As for :class:`JoinedLog`.
        handler: Takes all other entries.
        state: Gets time and position of each message.
        sessions: Who is connected.
        deliver: Takes the messages of sessions: ``on_session_message``.
    """

    def __init__(
        self,
        subscription: Subscription,
        image: Image,
        limit: int,
        handler: Callable[[Any, Header], Action | None],
        state: ServiceState,
        sessions: dict[int, ClientSession],
        deliver: Callable[[Any, int, bytes, int], object],
    ) -> None:
        super().__init__(subscription, image, limit, handler, view=False)
        self._entries = deliver, sessions, state, handler

    def poll(self, commit_position: int, fragment_limit: int) -> int:
        """See :class:`JoinedLog`."""
        return self._image.poll_entries(*self._entries, fragment_limit, min(commit_position, self.limit))


def joined(
    client: Client,
    join: JoinLog,
    service_id: int,
    position: int,
    make: Callable[[Subscription, Image, int], JoinedLog],
) -> Course[JoinedLog]:
    """Join a log; waits for its stream without an end.

    Args:
        client: What reads it.
        join: What the consensus module asks for.
        service_id: Which service, for the name of the stream.
        position: Where the service stands.
        make: Makes the log of subscription, image and limit.

    Raises:
        ContainerError: It does not begin where the service stands.
        HeadraceError: The driver refuses.
    """
    channel = ChannelUri(join.log_channel).with_parameters(alias=f"log-sc-{service_id}")
    subscription = yield from added(client.request_subscription(channel, join.log_stream_id))
    try:
        yield from until(lambda: subscription.image_by_session_id(join.log_session_id))
        image = subscription.image_by_session_id(join.log_session_id)
        assert image is not None
        if not image.join_position == position == join.log_position:
            raise ContainerError(
                f"the log must be contiguous: the service is at log_position={position}, is to join at "
                f"{join.log_position}, and the stream begins at {image.join_position}"
            )
    except BaseException:
        subscription.close()
        raise
    return make(subscription, image, join.max_log_position)
