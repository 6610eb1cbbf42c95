"""Answers of several messages, sent as the client makes room, one listing of a session at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from headrace.archive.protocol.answers import RecordingSubscriptionDescriptor
from headrace.archive.protocol.codes import Response
from headrace.archive.protocol.messages import encode, header_of

if TYPE_CHECKING:
    from headrace.archive.files.catalog import Catalog, CatalogEntry
    from headrace.archive.server.control_session import ControlSession

__all__ = [
    "MessageListing",
    "RecordingListing",
    "SubscriptionListing",
    "encode_descriptor",
]

_ENTRIES_A_TURN = 64
_CC = 16


def encode_descriptor(session_id: int, correlation_id: int, entry: CatalogEntry) -> bytes:
    """A recording's description as a message: that of the catalog, with the request's ids."""
    ids = session_id.to_bytes(8, "little", signed=True) + correlation_id.to_bytes(8, "little", signed=True)
    return header_of("RecordingDescriptor") + ids + entry.descriptor.encode()[_CC:]


class RecordingListing:
    """At most a number of recordings, from an id on, that pass a filter."""

    def __init__(
        self,
        catalog: Catalog,
        correlation_id: int,
        from_id: int,
        count: int,
        is_wanted: Callable[[CatalogEntry], bool],
    ) -> None:
        self._catalog = catalog
        self._correlation_id = correlation_id
        self._next_id = from_id
        self._left = count
        self._is_wanted = is_wanted

    def do_work(self, session: ControlSession) -> int:
        """See :class:`headrace.archive.server.control_session.Listing`."""
        scanned = 0
        for entry in self._catalog.valid_from(self._next_id):
            if self._left <= 0 or scanned >= _ENTRIES_A_TURN:
                break
            if self._is_wanted(entry):
                message = encode_descriptor(session.session_id, self._correlation_id, entry)
                if not session.try_send(message):
                    return scanned
                self._left -= 1
            self._next_id = entry.recording_id + 1
            scanned += 1
        else:
            if self._left > 0:
                session.send_unknown(self._correlation_id, self._next_id, Response.RECORDING_UNKNOWN)
            session.listing = None
            return scanned + 1
        if self._left <= 0:
            session.listing = None
        return scanned


class SubscriptionListing:
    """Subscriptions that record, as (subscription id, stream id, channel)."""

    def __init__(self, correlation_id: int, found: list[tuple[int, int, str]], count: int) -> None:
        self._correlation_id = correlation_id
        self._is_short = len(found) < count
        self._found = found[:count]

    def do_work(self, session: ControlSession) -> int:
        """See :class:`headrace.archive.server.control_session.Listing`."""
        sent = 0
        while self._found:
            subscription_id, stream_id, channel = self._found[0]
            message = RecordingSubscriptionDescriptor(
                control_session_id=session.session_id,
                correlation_id=self._correlation_id,
                subscription_id=subscription_id,
                stream_id=stream_id,
                stripped_channel=channel,
            )
            if not session.try_send(encode(message)):
                return sent
            del self._found[0]
            sent += 1
        if self._is_short:
            session.send_unknown(self._correlation_id, 0, Response.SUBSCRIPTION_UNKNOWN)
        session.listing = None
        return sent + 1


class MessageListing:
    """Messages that are made already, and then OK."""

    def __init__(self, correlation_id: int, messages: Iterable[bytes]) -> None:
        self._correlation_id = correlation_id
        self._messages = deque(messages)

    def do_work(self, session: ControlSession) -> int:
        """See :class:`headrace.archive.server.control_session.Listing`."""
        sent = 0
        while self._messages and sent < _ENTRIES_A_TURN:
            if not session.try_send(self._messages[0]):
                return sent
            self._messages.popleft()
            sent += 1
        if not self._messages:
            session.send_ok(self._correlation_id)
            session.listing = None
        return sent + 1
