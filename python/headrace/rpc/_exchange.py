"""The streams of a requester at one driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace._exceptions import PublicationTimeoutError
from headrace._weak import weakly
from headrace.rpc._channels import answers_channel, answers_stream, with_params
from headrace.rpc._reading import LOOK_S, ThreadReader

if TYPE_CHECKING:
    import asyncio

    from headrace._exceptions import HeadraceError
    from headrace.client import Client, Image
    from headrace.clock import Deadline
    from headrace.rpc._calls import Calls

__all__ = ["Exchange", "Route"]


@dataclass(frozen=True)
class Route:
    """Where requests and answers go."""

    channel: str
    stream_id: int
    answers_channel: str
    answers_stream_id: int

    @classmethod
    def checked(
        cls, channel: str, stream_id: int, control: str | None, answers_stream_id: int | None
    ) -> Route:
        """From the arguments of a requester.

        Raises:
            ConfigError: One of them is wrong.
        """
        return cls(
            channel,
            stream_id,
            answers_channel(channel, control),
            answers_stream(stream_id, answers_stream_id),
        )


class Exchange:
    """A publication of requests, and the subscription to their answers.

    Args:
        client: The client of the driver.
        route: Where they go.
        calls: Who gets the answers.
        on_lost: Called with this when a server's stream of answers ended, on the client's conductor thread.
        end_of: Given this and what a read raised: what the calls are told that wait for their answers.
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
        self.answers = client.add_subscription(
            route.answers_channel, route.answers_stream_id, on_unavailable_image=weakly(self._on_unavailable)
        )
        self.reader = ThreadReader(
            self.answers,
            calls,
            end_of=lambda error: end_of(self, error),
            is_abandoned=lambda: self.is_abandoned,
            missing=lambda: self.missing,
        )
        correlation = f"response-correlation-id={self.answers.registration_id}"
        try:
            self.requests = client.add_publication(with_params(route.channel, correlation), route.stream_id)
        except BaseException:
            self.answers.close()
            raise

    def send(self, message: tuple[Any, ...], deadline: Deadline) -> None:
        """Offer a request, and wait while its stream has no room.

        Takes the answers that come meanwhile: a server whose answers find no room reads no further request.

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
        # With the client all images end: what reads the answers then tells why.
        if not self.is_closed and all(image == lost for image in self.answers.images):
            self._on_lost(self)

    @property
    def missing(self) -> str:
        """What a call whose time is over has waited for."""
        if not self.requests.is_connected:
            return "no server is connected: one must run with this channel and stream_id"
        if not self.answers.images:
            same = "answers_control and answers_stream_id"
            return (
                f"a server is connected, but no stream of answers came: it must serve, with the same {same}"
            )
        return "the server has not answered"

    @property
    def is_abandoned(self) -> bool:
        """True when no server reads the requests and none answers: what was sent before gets no answer.

        A server that leaves before its stream of answers is there ends no image, which would tell of it.
        """
        return not self.requests.is_connected and not self.answers.images

    @property
    def is_closed(self) -> bool:
        """True once one of the two is closed, by the program or with the driver."""
        return self.requests.is_closed or self.answers.is_closed

    def close(self) -> None:
        """Give both up."""
        self.requests.close()
        self.answers.close()
