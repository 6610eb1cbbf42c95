"""The sources of a follower: a replay, or the live stream. Both are opened in steps that never wait."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.client import calls, steps
from headrace.archive.client.replay import ReplayRange
from headrace.archive.client.session_link import added, given_up
from headrace.channel import ChannelUri
from headrace.positions import signed_32

if TYPE_CHECKING:
    from headrace._base.exceptions import ArchiveError
    from headrace.archive.client.session_link import ArchiveLink
    from headrace.client import Client, ExclusivePublication, Image, Subscription

__all__ = ["Address", "LiveSource", "ReplaySource", "Source"]


@dataclass(frozen=True, slots=True)
class Address:
    """A channel and a stream on it, and the destinations of a channel with ``control-mode=manual``."""

    channel: str
    stream_id: int
    destinations: tuple[str, ...] = ()


class Source:
    """A subscription to one stream, opened in steps."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Told of and not looked for: a stream that ends at once is seen too.
        self._images: list[Image] = []
        self._opening: Generator[None, None, None] | None = None
        self.subscription: Subscription | None = None

    @property
    def image(self) -> Image | None:
        """The image, once there is one; also after it has ended."""
        return self._images[0] if self._images and self.subscription is not None else None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        image = self.image
        return image is not None and (image.is_closed or image.is_end_of_stream)

    def step(self) -> None:
        """Continue to open it.

        Raises:
            HeadraceError: It cannot be opened.
        """
        if self._opening is not None:
            with contextlib.suppress(StopIteration):
                next(self._opening)
                return
            self._opening = None

    def close(self) -> None:
        """Stop reading."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.close()
        if self.subscription is not None:
            self.subscription.close()

    def _subscribed(self, channel: str, stream_id: int) -> Generator[None, None, Subscription]:
        pending = self._client.request_subscription(
            channel, stream_id, on_available_image=self._images.append
        )
        try:
            while (subscription := pending.poll()) is None:
                yield
        except GeneratorExit:
            given_up(pending)
            raise
        self.subscription = subscription
        return subscription


class LiveSource(Source):
    """The live stream of one publisher."""

    def __init__(self, client: Client, address: Address, session_id: int) -> None:
        super().__init__(client)
        channel = ChannelUri(address.channel).with_parameters(session_id=session_id)
        self._opening = self._opened(channel, address)

    def _opened(self, channel: str, address: Address) -> Generator[None, None, None]:
        subscription = yield from self._subscribed(channel, address.stream_id)
        for destination in address.destinations:
            asked = subscription.request_destination(destination)
            while asked.poll() is None:
                yield


class ReplaySource(Source):
    """A replay of a recording from a position to its end; it follows an active recording."""

    def __init__(self, client: Client, link: ArchiveLink, address: Address, what: ReplayRange) -> None:
        super().__init__(client)
        self._link = link
        self._address = address
        self._what = what
        self._replay_id: int | None = None
        self._undo = contextlib.ExitStack()
        self._correlation_id = 0
        self._opening = self._opened()

    @property
    def late_error(self) -> ArchiveError | None:
        """Why the archive ended it early, if the archive has sent the reason."""
        return self._link.late_error(self._correlation_id)

    def close(self) -> None:
        """Stop reading, and ask the archive to stop the replay unless it has ended."""
        was_over = self.is_over
        super().close()
        self._undo.close()
        replay_id, self._replay_id = self._replay_id, None
        if replay_id is not None and not was_over and self._link.is_ready:
            self._link.tell(calls.stop_replay(replay_id))

    def _opened(self) -> Generator[None, None, None]:
        channel, stream_id = self._address.channel, self._address.stream_id
        if ChannelUri(channel).is_response:
            subscription = yield from self._subscribed(channel, stream_id)
            over = yield from added(self._link.request_way_back(subscription), self._undo)
            while not over.is_connected:
                yield
            yield from self._replayed(channel, over)
            return
        if ChannelUri(channel).is_port_open:
            # A port of its own: nothing but this replay comes there.
            subscription = yield from self._subscribed(channel, stream_id)
            while (resolved := subscription.resolved_channel) is None:
                yield
            yield from self._replayed(resolved)
            return
        replay_id = yield from self._replayed(channel)
        session = ChannelUri(channel).with_parameters(session_id=signed_32(replay_id))
        yield from self._subscribed(session, stream_id)

    def _replayed(self, channel: str, over: ExclusivePublication | None = None) -> Generator[None, None, int]:
        request = self._what.request(channel, self._address.stream_id)
        asked = self._link.ask(steps.replay_started(request, over))
        try:
            while not asked.is_done:
                yield
        except GeneratorExit:
            self._link.forget(asked)
            raise
        self._replay_id, self._correlation_id = self._link.answer(asked)
        self._link.await_error(self._correlation_id)
        return self._replay_id
