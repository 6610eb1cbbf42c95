"""The log that a service reads: joined where the consensus module says, and read up to the commit position."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace._agent.tasks import Task, added, within
from headrace._base.results import Action
from headrace.channel import ChannelUri
from headrace.cluster.service.log_adapter import ContainerError

if TYPE_CHECKING:
    from headrace.client import Client, Header, Image, Subscription
    from headrace.cluster.protocol.control import JoinLog
    from headrace.cluster.service.session import ClientSession
    from headrace.cluster.service.state import ServiceState

__all__ = ["CopiedLog", "JoinedLog", "joined"]

# The consensus module has the stream when it says that there is one.
_IMAGE_AWAITED_S = 10.0
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
        self.limit = limit

    @property
    def position(self) -> int:
        """How far it is read."""
        return self._image.position

    def go_on_from(self, previous: JoinedLog) -> None:
        """Take over the message that the previous log was left within: consensus modules of Aeron's commit so."""
        self._image.take_fragments(previous._image)

    @property
    def max_message_length(self) -> int:
        """The longest message that the stream takes, in bytes. Transport specification 1."""
        return min(self._image.term_length // 8, _LONGEST_MESSAGE)

    def poll(self, commit_position: int, fragment_limit: int) -> int:
        """Give the handler what is committed. What it raises comes out of here."""
        return self._image.controlled_poll(
            self._handler, fragment_limit, limit_position=min(commit_position, self.limit), view=self._view
        )

    def step(self, commit_position: int) -> int:
        """Give the handler the next fragment alone."""
        return self.poll(commit_position, 1)

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
    is_superseded: Callable[[], bool],
) -> Task[JoinedLog | None]:
    """Join a log; gives nothing if the consensus module has meanwhile asked for another, since this one failed.

    Args:
        client: What reads it.
        join: What the consensus module asks for.
        service_id: Which service, for the name of the stream.
        position: Where the service stands.
        make: Makes the log of subscription, image and limit.
        is_superseded: Whether another log is to be joined.

    Raises:
        ContainerError: It does not arrive, or does not begin where the service stands.
        HeadraceError: The driver refuses.
    """
    channel = ChannelUri(join.log_channel).with_parameters(alias=f"log-sc-{service_id}")
    subscription = yield from added(client.request_subscription(channel, join.log_stream_id))

    def image_or_other() -> Image | bool | None:
        return subscription.image_by_session_id(join.log_session_id) or is_superseded()

    try:
        yield from within(client.clock.deadline(_IMAGE_AWAITED_S), image_or_other, lambda: _missing(join))
        image = subscription.image_by_session_id(join.log_session_id)
        if image is None:
            subscription.close()
            return None
        if not image.join_position == position == join.log_position:
            raise ContainerError(
                f"the log must be contiguous: the service is at log_position={position}, is to join at "
                f"{join.log_position}, and the stream begins at {image.join_position}"
            )
    except BaseException:
        subscription.close()
        raise
    return make(subscription, image, join.max_log_position)


def _missing(join: JoinLog) -> ContainerError:
    return ContainerError(
        f"the log does not arrive within {_IMAGE_AWAITED_S:.0f} s: session_id={join.log_session_id} of channel="
        f"{join.log_channel} stream_id={join.log_stream_id}, from log_position={join.log_position} on; the consensus "
        "module or the archive that sends it has ended, or its error log says more: start the member again"
    )
