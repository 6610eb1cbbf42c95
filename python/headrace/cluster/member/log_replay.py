"""Replays the member's own log to the module and its services. Cluster specification 4.7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace.channel import ChannelUri
from headrace.cluster.errors import ClusterError
from headrace.cluster.member.log_joining import services_joined
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.control import JoinLog

if TYPE_CHECKING:
    from headrace.cluster.common.node_archive import ReplayedStream
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.followed_log import FollowedLog
    from headrace.cluster.member.services import Services

__all__ = ["LogReplay"]


class LogReplay:
    """Reads what the archive has of the log, and nothing else.

    Args:
        context: What the module's parts share.
        services: Read it too.
        followed: Applies what is read.
    """

    def __init__(self, context: Context, services: Services, followed: FollowedLog) -> None:
        self._context = context
        self._services = services
        self._followed = followed

    def replayed(self, end: int) -> Task[None]:
        """Goes on once module and services have read the log from where they stand up to a position.

        Raises:
            ClusterError: The replay ends before, or does not begin there.
        """
        context, config, plan = self._context, self._context.config, self._context.plan
        begin = context.commit_position
        if begin >= end:
            return
        if plan is None or plan.log is None:
            raise ClusterError(f"no recording has the log from {begin} on")
        replay = yield from context.archive.replayed(
            plan.log.recording_id,
            config.replay_channel,
            config.replay_stream_id,
            position=begin,
            length=end - begin,
        )
        try:
            yield from self._read(replay, begin, end)
        finally:
            self._followed.leave()
            replay.subscription.close()
        yield from context.archive.stopped_replay(replay)

    def _read(self, replay: ReplayedStream, begin: int, end: int) -> Task[None]:
        config, image = self._context.config, replay.image
        if image.join_position != begin:
            raise ClusterError(f"the replay of the log begins at {image.join_position}, and not at {begin}")

        def check_goes_on() -> None:
            if image.is_closed and image.position < end:
                raise ClusterError(f"the replay of the log ends at {image.position}, and not at {end}")

        join = JoinLog(
            log_position=begin,
            max_log_position=end,
            member_id=config.member_id,
            log_session_id=image.session_id,
            log_stream_id=config.replay_stream_id,
            is_startup=True,
            role=Role.FOLLOWER,
            log_channel=ChannelUri(config.replay_channel).with_parameters(session_id=image.session_id),
        )
        followed = self._followed
        yield from services_joined(self._context, self._services, join, check_goes_on)
        followed.begin(image)
        while followed.position < end or followed.is_busy:
            if not followed.poll(end):
                check_goes_on()
                yield
