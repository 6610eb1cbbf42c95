"""Publications of a Spark worker: a client for each driver, a publication for each stream, kept for later tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import PublicationTimeoutError
from headrace.client import Client

if TYPE_CHECKING:
    from headrace.client import Publication
    from headrace.spark._sink_options import SinkOptions

__all__ = ["publication_of", "send"]

_clients: dict[str, Client] = {}
_publications: dict[tuple[str, str, int], Publication] = {}


def publication_of(options: SinkOptions) -> Publication:
    """The publication that the options name, connected to a subscriber.

    Raises:
        PublicationTimeoutError: No subscriber connects.
    """
    key = options.aeron_directory, options.channel, options.stream_id
    publication = _publications.get(key)
    if publication is None or publication.is_closed:
        publication = _client(options.aeron_directory).add_publication(options.channel, options.stream_id)
        _publications[key] = publication
    if not publication.wait_until_connected(options.timeout_s):
        text = f"no subscriber to {options.channel} streamId={options.stream_id} connected for {options.timeout_s:g} s"
        raise PublicationTimeoutError(text)
    return publication


def send(options: SinkOptions, messages: Any) -> int:
    """Publish all messages, waiting for room as long as the options allow; gives the position after them."""
    return publication_of(options).offer_batch_blocking(messages, timeout_s=options.timeout_s)


def _client(directory: str) -> Client:
    client = _clients.get(directory)
    if client is None or client.is_closed:
        client = _clients[directory] = Client.connect(directory, client_name="headrace-spark")
    return client
