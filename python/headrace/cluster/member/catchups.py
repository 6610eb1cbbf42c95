"""A leader's replays of the log to followers that lack a part of it. Cluster specification 5.8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.exceptions import HeadraceError
from headrace.archive.client import calls
from headrace.channel import ChannelUri

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.archive.client.exchange import Exchange
    from headrace.cluster.consensus.actions import StartCatchup
    from headrace.cluster.member.context import Context

__all__ = ["Catchups"]


class Catchups:
    """Replays by the id of the follower; none waits for another."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked: dict[int, tuple[StartCatchup, Exchange[int]]] = {}
        self._replay_ids: dict[int, int] = {}

    def start(self, action: StartCatchup, recording_id: int, log_session_id: int) -> None:
        """Have the archive replay the log to a follower, without an end."""
        config = self._context.config
        channel = ChannelUri(config.follower_catchup_channel).with_parameters(
            endpoint=action.endpoint,
            session_id=log_session_id,
            linger=0,
            eos="false",
            alias=f"catchup-followerId-{action.member_id}",
        )
        self._give_up(action.member_id)
        ask = calls.start_replay(
            recording_id, channel, config.log_stream_id, position=action.log_position, length=None
        )
        self._asked[action.member_id] = action, self._context.archive.ask(ask)

    def failures(self) -> Iterator[tuple[StartCatchup, str]]:
        """Those that the archive has refused since the last call."""
        archive = self._context.archive
        for member_id, (action, exchange) in list(self._asked.items()):
            if not exchange.is_done:
                continue
            del self._asked[member_id]
            try:
                self._replay_ids[member_id] = archive.answer(exchange)
                archive.await_error(self._replay_ids[member_id])
            except HeadraceError as failure:
                yield action, str(failure)

    def stop(self, member_id: int) -> None:
        """End the replay to a follower, without waiting for the archive."""
        self._give_up(member_id)
        replay_id = self._replay_ids.pop(member_id, None)
        if replay_id is not None and self._context.archive.is_ready:
            self._context.archive.tell(calls.stop_replay(replay_id))

    def _give_up(self, member_id: int) -> None:
        asked = self._asked.pop(member_id, None)
        if asked is not None:
            self._context.archive.forget(asked[1])

    def close(self) -> None:
        """End all."""
        for member_id in {*self._asked, *self._replay_ids}:
            self.stop(member_id)
