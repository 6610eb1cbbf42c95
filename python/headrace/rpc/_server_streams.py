"""The streams of a server at one driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.rpc._channels import prototype_of, with_params
from headrace.rpc._sessions import Losses, Session

if TYPE_CHECKING:
    from headrace.client import Client, Image
    from headrace.rpc._requester_streams import Route

__all__ = ["Listening"]


class Listening:
    """A subscription to requests, and over UDP the publication that keeps the response socket open.

    Args:
        client: The client of the driver.
        route: The channels and streams of requests and responses.
        on_image: Called when a requester came or went, on the client's conductor thread.
    """

    def __init__(self, client: Client, route: Route, on_image: Callable[[Image], object]) -> None:
        self.client = client
        self._route = route
        # First, so that an address that cannot be bound is refused here.
        prototype = prototype_of(route.response_channel)
        self._prototype = prototype and client.add_publication(prototype, route.response_stream_id)
        try:
            self.requests = client.add_subscription(
                route.channel, route.stream_id, on_available_image=on_image, on_unavailable_image=on_image
            )
        except BaseException:
            self._close_prototype()
            raise

    def session(self, image: Image, losses: Losses) -> Session:
        """Ask the driver for the response stream of a requester."""
        channel = with_params(self._route.response_channel, f"response-correlation-id={image.correlation_id}")
        asked = self.client.request_publication(channel, self._route.response_stream_id)
        return Session(image, asked, losses, clock=self.client.clock, is_local=self._prototype is None)

    @property
    def is_closed(self) -> bool:
        """True once the subscription is closed, by the program or with the driver."""
        return self.requests.is_closed

    def close(self) -> None:
        """Close both."""
        self.requests.close()
        self._close_prototype()

    def _close_prototype(self) -> None:
        if self._prototype:
            self._prototype.close()
