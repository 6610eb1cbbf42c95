"""The streams of a requester at one driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import PublicationTimeoutError
from headrace._base.weak import weakly
from headrace.rpc._channels import response_channel, response_stream, with_params
from headrace.rpc._reader_threads import LOOK_S, ThreadReader

if TYPE_CHECKING:
    import asyncio

    from headrace._base.exceptions import HeadraceError
    from headrace.client import Client, Image
    from headrace.clock import Deadline
    from headrace.rpc._pending_requests import Calls

__all__ = ["Exchange", "Route"]


@dataclass(frozen=True)
class Route:
    """The channels and streams of requests and responses."""

    channel: str
    stream_id: int
    response_channel: str
    response_stream_id: int

    @classmethod
    def checked(
        cls, channel: str, stream_id: int, control: str | None, response_stream_id: int | None
    ) -> Route:
        """Make a route from the arguments of a requester.

        Raises:
            ConfigError: An argument is wrong.
        """
        return cls(
            channel,
            stream_id,
            response_channel(channel, control),
            response_stream(stream_id, response_stream_id),
        )


class Exchange:
    """A publication of requests, and the subscription to their responses.

    Args:
        client: The client of the driver.
        route: The channels and streams.
        calls: The calls that get the answers.
        on_lost: Called with this exchange when a server's response stream ended, on the client's conductor thread.
        end_of: Called with this exchange and the error of a read; returns the error for the waiting calls.
    """

    def __init__(
        self,
        client: Client,
        route: Route,
        calls: Calls,
        *,
        on_lost: Callable[[Exchange], object],
        end_of: Callable[[Exchange, HeadraceError], HeadraceError],
    ) -> None:
        self.client = client
        self.reading: asyncio.Task[None] | None = None
        self._on_lost = on_lost
        self.responses = client.add_subscription(
            route.response_channel,
            route.response_stream_id,
            on_unavailable_image=weakly(self._on_unavailable),
        )
        self.reader = ThreadReader(
            self.responses,
            calls,
            end_of=lambda error: end_of(self, error),
            is_abandoned=lambda: self.is_abandoned,
            missing=lambda: self.missing,
        )
        correlation = f"response-correlation-id={self.responses.registration_id}"
        try:
            self.requests = client.add_publication(with_params(route.channel, correlation), route.stream_id)
        except BaseException:
            self.responses.close()
            raise

    def send(self, message: tuple[Any, ...], deadline: Deadline) -> None:
        """Offer a request, and wait while its stream has no room.

        Reads answers meanwhile: a server whose answers find no room reads no further request.

        Raises:
            PublicationTimeoutError: The time is over.
            ClosedError: The exchange is closed.
        """
        while self.requests.offer(message) < 0:
            if self.reader.take():
                continue
            left_s = deadline.left_s()
            try:
                self.requests.offer_blocking(
                    message, timeout_s=LOOK_S if left_s is None else min(left_s, LOOK_S)
                )
            except PublicationTimeoutError:
                if deadline.is_over:
                    raise
            else:
                return

    def _on_unavailable(self, lost: Image) -> None:
        # All images end with the client: the reader of the answers then tells why.
        if not self.is_closed and all(image == lost for image in self.responses.images):
            self._on_lost(self)

    @property
    def missing(self) -> str:
        """What a timed-out call has waited for, as text."""
        if not self.requests.is_connected:
            return "no server is connected: one must run with this channel and stream_id"
        if not self.responses.images:
            same = "response_control and response_stream_id"
            return f"a server is connected, but no response stream came: it must serve, with the same {same}"
        return "the server has not answered"

    @property
    def is_abandoned(self) -> bool:
        """True when no server reads requests or sends responses: requests sent before get no answer.

        If a server leaves before it has made its response stream, no image ends that would show this.
        """
        return not self.requests.is_connected and not self.responses.images

    @property
    def is_closed(self) -> bool:
        """True once one of the two streams is closed, by the program or with the driver."""
        return self.requests.is_closed or self.responses.is_closed

    def close(self) -> None:
        """Close both streams."""
        self.requests.close()
        self.responses.close()
