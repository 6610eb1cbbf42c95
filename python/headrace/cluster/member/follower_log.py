"""The leader's log as a follower receives it: live, or replayed until it has caught up. Specification 4.4, 5.8."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._agent.tasks import Task, added, until
from headrace._base.exceptions import HeadraceError
from headrace.archive.protocol.codes import SourceLocation
from headrace.channel import ChannelUri
from headrace.cluster.common.node_archive import StreamToRecord
from headrace.cluster.errors import ClusterError
from headrace.cluster.member.destinations import destination
from headrace.cluster.member.log_joining import services_joined
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.control import JoinLog

if TYPE_CHECKING:
    from headrace.client import Image, Subscription
    from headrace.cluster.consensus import actions as do
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.log_recording import LogRecording
    from headrace.cluster.member.services import Services

__all__ = ["FollowerLog"]

_LONG_MAX = (1 << 63) - 1
# Of the log's channel, which the subscription must have too.
_COPIED = ("so-rcvbuf", "rcv-wnd")


class FollowerLog:
    """A subscription whose destinations are added as the member comes closer to the leader.

    Args:
        context: What the module's parts share.
        services: Read the log, through the same destinations.
        recording: Has the archive record it.
    """

    def __init__(self, context: Context, services: Services, recording: LogRecording) -> None:
        self._context = context
        self._services = services
        self._recording = recording
        self.subscription: Subscription | None = None
        """Where the log is received, while there is one to follow."""
        self._channel = ""
        self._catchup = ""
        self._destinations: list[str] = []
        self._log_session_id = 0
        # They return something once the driver has made the change.
        self._changes: list[Callable[[], object]] = []
        self.image: Image | None = None
        """The log, once it is joined."""

    def opened(self, action: do.OpenLog) -> Task[str]:
        """Subscribe; returns where a replay is to be sent, if it is one that is wanted."""
        config, client = self._context.config, self._context.client
        log = ChannelUri(config.log_channel)
        tags = f"{client.next_correlation_id()},{client.next_correlation_id()}"
        parameters: dict[str, str | int | None] = {
            "tags": tags,
            "control_mode": "manual",
            "session_id": action.log_session_id,
            "group": "true",
            "rejoin": "false",
            "alias": "log-cm",
        }
        parameters |= {name.replace("-", "_"): log.get(name) for name in _COPIED if log.get(name)}
        self._channel = ChannelUri("aeron:udp").with_parameters(**parameters)
        self._log_session_id = action.log_session_id
        subscription = self.subscription = yield from added(
            client.request_subscription(self._channel, config.log_stream_id)
        )
        if not action.is_catchup:
            yield from self._add(self._live)
            return ""
        template = config.follower_catchup_channel
        wanted = ChannelUri(template).get("endpoint") or config.member.catchup_endpoint
        self._catchup = destination(template, wanted)
        yield from self._add(self._catchup)
        host, _, port = wanted.rpartition(":")
        if port != "0":
            return wanted
        # Before the live destination is there, the only address is that of the replay.
        yield from until(lambda: subscription.local_socket_addresses)
        return f"{host}:{subscription.local_socket_addresses[0].rpartition(':')[2]}"

    @property
    def _live(self) -> str:
        """Where the leader sends the log."""
        config = self._context.config
        log = ChannelUri(config.log_channel)
        if log.media == "udp" and log.get("endpoint") is None:
            return destination(config.log_channel, config.member.log_endpoint)
        return config.log_channel

    def _add(self, channel: str) -> Task[None]:
        poll = self._request(channel)
        yield from until(lambda: poll() is not None)

    def _request(self, channel: str) -> Callable[[], object]:
        assert self.subscription is not None, "open"
        self._destinations.append(channel)
        return self.subscription.request_destination(channel).poll

    def add_live(self) -> None:
        """Receive the live log beside the replay."""
        self._changes.append(self._request(self._live))

    def remove_catchup(self) -> None:
        """Receive the replay no more."""
        assert self.subscription is not None, "open"
        self._destinations.remove(self._catchup)
        self._changes.append(self.subscription.request_destination_removal(self._catchup).poll)

    def take_responses(self) -> None:
        """See what the driver says to the changes of destinations.

        Raises:
            HeadraceError: It refuses one.
        """
        while self._changes:
            poll = self._changes.pop(0)
            if poll() is None:
                self._changes.insert(0, poll)
                return

    def joined(self, action: do.JoinLog, idle: Callable[[], Task[None]]) -> Task[int]:
        """Wait for the log, have it recorded, and services join it; returns the recording id.

        Args:
            action: Where it is joined.
            idle: Goes on once services can be asked to join.

        Raises:
            ClusterError: It does not begin where the member stands.
        """
        context, config, subscription = self._context, self._context.config, self.subscription
        assert subscription is not None, "the log is opened before it is joined"
        yield from until(lambda: subscription.image_by_session_id(self._log_session_id))
        image = subscription.image_by_session_id(self._log_session_id)
        if image is None or image.join_position != action.log_position:
            begin = "nowhere" if image is None else str(image.join_position)
            raise ClusterError(f"the leader's log begins at {begin}, and not at {action.log_position}")
        stream = StreamToRecord(
            self._channel, config.log_stream_id, self._log_session_id, SourceLocation.REMOTE
        )
        recording_id = yield from self._recording.begin(stream)
        yield from idle()
        join = JoinLog(
            log_position=action.log_position,
            max_log_position=_LONG_MAX,
            member_id=config.member_id,
            log_session_id=self._log_session_id,
            log_stream_id=config.log_stream_id,
            is_startup=action.is_startup,
            role=Role.FOLLOWER,
            log_channel=self._channel,
        )
        yield from services_joined(context, self._services, join)
        self.image = image
        return recording_id

    def left(self) -> Task[None]:
        """Leave the log, and free its addresses for the next one, which services and archive would hold."""
        subscription, destinations = self.subscription, self._destinations
        self._destinations = []
        if subscription is not None and not subscription.is_closed:
            for channel in destinations:
                try:
                    request = subscription.request_destination_removal(channel)
                    yield from until(lambda request=request: request.poll() is not None)  # type: ignore[misc]
                except HeadraceError as refusal:
                    self._context.log.info(f"a destination of the log had gone: {refusal}")
        self.close()

    def close(self) -> None:
        """Close the subscription."""
        self._changes.clear()
        self._destinations.clear()
        self.image = None
        subscription, self.subscription = self.subscription, None
        if subscription is not None:
            subscription.close()
