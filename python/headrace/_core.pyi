"""The compiled half of Headrace. Import its classes from ``headrace``."""

import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import Buffer, disjoint_base

from headrace._base.results import Action, OfferResult

__all__ = [
    "BatchResult",
    "Checksum",
    "Claim",
    "Client",
    "Counter",
    "EventLog",
    "EventReader",
    "ExclusivePublication",
    "FragmentBatch",
    "FrameWalk",
    "Header",
    "IdleStrategy",
    "Image",
    "LogPlace",
    "MediaDriver",
    "Message",
    "MessageFilter",
    "Node",
    "Pending",
    "Poller",
    "Publication",
    "RecordedBlock",
    "RecordedFrames",
    "RecordingReader",
    "Sequencer",
    "SessionSender",
    "SessionStreams",
    "Subscription",
    "Watcher",
    "World",
    "__commit__",
    "__version__",
    "close_clients",
    "hold_threads",
    "setting_declarations",
    "state_tables",
]

__commit__: str
__version__: str

_Added = TypeVar("_Added")
_Handler = Callable[[bytes, Header], object]
_ViewHandler = Callable[[memoryview, Header], object]
_ChannelStatus = Literal["initializing", "active", "closing", "errored", "closed"]
_Bytes = Buffer | npt.NDArray[Any]
_Data = _Bytes | tuple[_Bytes, ...] | list[Any]
_RecordValues = tuple[int, int, str, int, int, int, int, bytes]

@final
class Header:
    """Position, session and other fields of a message or fragment, without its bytes.

    Cheap: a poll reuses one object for the next message unless a handler keeps it. A header that is kept does not
    change.
    """

    @property
    def position(self) -> int:
        """Stream position after the message, in bytes since the stream began."""

    @property
    def reserved_value(self) -> int:
        """64 bits that the publisher may set, 0 if it did not."""

    @property
    def session_id(self) -> int:
        """Which publisher."""

    @property
    def stream_id(self) -> int:
        """Which flow on the channel."""

    @property
    def term_id(self) -> int:
        """Term of the message's first frame."""

    @property
    def term_offset(self) -> int:
        """Offset of the message's first frame in its term, in bytes."""

    @property
    def frame_length(self) -> int:
        """Bytes of header and payload; for an assembled message, 32 and all of its payload."""

    @property
    def flags(self) -> int:
        """Flags of the frame: 0x80 begins a message, 0x40 ends it; 0xC0 for a whole message."""

@final
class Message:
    """A whole message that was received. Immutable; compares by value; can be pickled.

    Subscriptions return messages; a program makes them only for its tests.

    Args:
        payload: The bytes of the message.
        position: Stream position after the message.
        session_id: Which publisher.
        stream_id: Which flow on the channel.
        reserved_value: 64 bits that the publisher may set.

    Raises:
        ConfigError: A number does not fit its 32 or 64 bits.
    """

    def __new__(
        cls,
        payload: bytes,
        position: int = 0,
        session_id: int = 0,
        stream_id: int = 0,
        reserved_value: int = 0,
    ) -> Self: ...
    @property
    def payload(self) -> bytes:
        """The bytes of the message."""

    @property
    def position(self) -> int:
        """Stream position after the message, in bytes since the stream began."""

    @property
    def session_id(self) -> int:
        """Which publisher."""

    @property
    def stream_id(self) -> int:
        """Which flow on the channel."""

    @property
    def reserved_value(self) -> int:
        """64 bits that the publisher may set, 0 if it did not."""

    def __bytes__(self) -> bytes: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Claim:
    """One frame in the log that this program fills in place.

    A context manager: entering returns :attr:`view`; leaving commits, or aborts after an exception. Subscribers cannot
    read past an open claim, so fill it without delay; the driver turns it into padding after the publication unblock
    time-out (15 s). A claim that the program drops is aborted. Always true, unlike the :class:`headrace.OfferResult`
    that ``try_claim`` returns when it refuses.
    """

    @property
    def view(self) -> memoryview:
        """The payload, writable. Not zeroed. Raises ``ValueError`` if used after the claim ended.

        Raises:
            ClosedError: The claim was committed or aborted.
        """

    @property
    def position(self) -> int:
        """Stream position after this frame."""

    @property
    def length(self) -> int:
        """Bytes of payload."""

    @property
    def reserved_value(self) -> int:
        """64 bits that the frame carries besides its payload; may be set until the claim ends.

        Raises:
            ClosedError: The claim was committed or aborted.
            ConfigError: The new value does not fit 64 bits.
        """

    @reserved_value.setter
    def reserved_value(self, value: int) -> None: ...
    @property
    def flags(self) -> int:
        """Flags that the frame carries, for publishers that fragment by themselves.

        Raises:
            ClosedError: The claim was committed or aborted.
            ConfigError: The new value does not fit 8 bits.
        """

    @flags.setter
    def flags(self, value: int) -> None: ...
    def commit(self) -> int:
        """Make the frame visible to subscribers.

        Returns:
            The stream position after the frame.

        Raises:
            BufferError: The program still holds a slice or an array made from the view. The claim was aborted.
            ClosedError: The message is not sent: the claim was committed or aborted before, its publication was closed
                more than a second ago, or the program held it longer than the driver's
                ``publication_unblock_timeout_ns``, and the driver skipped it.
        """

    def abort(self) -> None:
        """Turn the space into padding, which subscribers skip. Aborting again does nothing.

        Raises:
            BufferError: The claim is aborted, but the program still holds a slice or an array made from its view.
                Writing into that would overwrite other messages.
        """

    def __enter__(self) -> memoryview: ...
    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...

@final
class BatchResult:
    """The result of offering a batch without waiting. True when all messages were accepted."""

    def __new__(
        cls,
        accepted: int,
        requested: int,
        *,
        position: int | None = None,
        stopped_by: OfferResult | None = None,
    ) -> Self: ...
    @property
    def accepted(self) -> int:
        """How many messages were accepted, counted from the first."""

    @property
    def requested(self) -> int:
        """How many messages the batch has."""

    @property
    def position(self) -> int | None:
        """Stream position after the last accepted message; ``None`` when no message was accepted."""

    @property
    def stopped_by(self) -> OfferResult | None:
        """Why the next message was refused; ``None`` when all were accepted."""

    @property
    def is_complete(self) -> bool:
        """True when all messages were accepted."""

    def __bool__(self) -> bool: ...

@disjoint_base
class Publication:
    """A stream to any number of subscribers, shared by any number of writers. Made by ``Client.add_publication``.

    Thread-safe. A context manager that closes it. Attributes that depend on the log are ``None`` once closed.
    """

    def offer(self, data: _Data, /, *, reserved_value: int | None = None) -> int | OfferResult:
        """Send one message if the position limit allows it now. Never blocks and keeps the GIL.

        Args:
            data: A bytes-like object, or a tuple or list of them sent as one message. Up to
                :attr:`max_message_length` bytes; more than :attr:`max_payload_length` are sent as several frames.
            reserved_value: A 64-bit number for the header of each of the message's frames, where subscribers find it as
                :attr:`Header.reserved_value` and :attr:`Message.reserved_value`; 0 if not given.

        Returns:
            The stream position after the message, which is above 0; or the :class:`headrace.OfferResult` that says why
            the message was refused, which is below 0 and false.

        Raises:
            ConfigError: The message is longer than :attr:`max_message_length`, or the reserved value does not fit 64
                bits.
            ReentrantError: Another thread is writing to this exclusive publication.
            ForkError: The process was forked after the client was made.
        """

    def offer_blocking(
        self,
        data: _Data,
        /,
        *,
        reserved_value: int | None = None,
        timeout_s: float | None = 5.0,
        idle: str | IdleStrategy | None = None,
    ) -> int:
        """Send one message, waiting for a subscriber and for room.

        Waits without the GIL; Ctrl-C ends the wait.

        Args:
            data: As for :meth:`offer`.
            reserved_value: As for :meth:`offer`.
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.
            idle: How to wait: a strategy, or its name; ``"blocking"`` by default. See :class:`headrace.IdleStrategy`.

        Returns:
            The stream position after the message.

        Raises:
            PublicationTimeoutError: The time is over; ``.result`` says what was missing.
            PublicationClosedError: The publication is closed.
            MaxPositionExceededError: The stream is at its greatest position.
            ConfigError: The message is longer than :attr:`max_message_length`, or the reserved value does not fit 64
                bits.
        """

    async def offer_async(
        self, data: _Data, /, *, reserved_value: int | None = None, timeout_s: float | None = 5.0
    ) -> int:
        """Send one message, waiting for a subscriber and for room without blocking the event loop.

        Arguments and exceptions as for :meth:`offer_blocking`. ``data`` is not copied: do not change it until this
        returns. A call that is cancelled sends nothing.
        """

    def try_claim(self, length: int, /) -> Claim | OfferResult:
        """Claim one frame to fill in place, if the position limit allows it now. Never blocks.

        ::

            claim = publication.try_claim(16)
            if claim:
                with claim as view:
                    struct.pack_into("<qd", view, 0, key, price)

        Args:
            length: Bytes of payload, at most :attr:`max_payload_length`.

        Returns:
            A :class:`headrace.Claim`; or the :class:`headrace.OfferResult` that says why the claim was refused, which
            is false.

        Raises:
            ConfigError: The length is below 0 or exceeds one frame.
        """

    def claim_blocking(
        self, length: int, /, *, timeout_s: float | None = 5.0, idle: str | IdleStrategy | None = None
    ) -> Claim:
        """Claim one frame to fill in place, waiting for a subscriber and for room.

        Waits, and raises, as :meth:`offer_blocking`.

        Args:
            length: Bytes of payload, at most :attr:`max_payload_length`.
            timeout_s: As for :meth:`offer_blocking`.
            idle: As for :meth:`offer_blocking`.

        Raises:
            ConfigError: The length is below 0 or exceeds one frame.
        """

    def offer_batch(self, messages: Any, /) -> BatchResult:
        """Send many messages in one call, until one is refused. Never waits; releases the GIL meanwhile.

        Args:
            messages: A list or tuple of bytes-like objects; a numpy array of two dimensions, each row a message; a
                numpy array of records, each a message; or an Arrow array or chunked array of binary, large binary
                or fixed-size binary. The only copy is the one into the log: do not change the memory during the call.

        Returns:
            How many messages were accepted, and why the next one was refused.

        Raises:
            ConfigError: A message is too long; none was sent.
            TypeError: ``messages`` is of another type.
        """

    def offer_batch_blocking(
        self, messages: Any, /, *, timeout_s: float | None = 5.0, idle: str | IdleStrategy | None = None
    ) -> int:
        """Send all of many messages, waiting for room. See :meth:`offer_batch` and :meth:`offer_blocking`.

        Returns:
            The stream position after the last message.

        Raises:
            PublicationTimeoutError: The time is over; ``.accepted`` says how many messages were sent.
            PublicationClosedError: The publication is closed.
            MaxPositionExceededError: The stream is at its greatest position.
        """

    def wait_until_connected(
        self, timeout_s: float | None = 5.0, *, idle: str | IdleStrategy | None = None
    ) -> bool:
        """Wait for a subscriber, without the GIL. False when the time is over or the publication is closed."""

    @property
    def subscriber_count(self) -> int | None:
        """Number of subscribers now; ``None`` where the driver knows only whether the publication has a receiver.

        Over IPC these are the subscriptions of any program on this driver. Over a network it is ``None``, except with
        the flow control ``min`` or ``tagged``: there it counts the receivers, one for each receiving driver. Reads all
        counters of the driver, so do not call it for every message.
        """

    def wait_for_subscribers(
        self, count: int, /, timeout_s: float | None = 5.0, *, idle: str | IdleStrategy | None = None
    ) -> bool:
        """Wait for a number of subscribers, without the GIL. False when the time is over or the publication is closed.

        Args:
            count: How many, as :attr:`subscriber_count` counts them.
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.
            idle: How to wait: a strategy, or its name; ``"blocking"`` by default. See :class:`headrace.IdleStrategy`.

        Raises:
            ConfigError: The count is above 1 on a channel whose receivers the driver does not count.
        """

    @property
    def position(self) -> int | None:
        """Stream position after everything written so far, in bytes."""

    @property
    def position_limit(self) -> int | None:
        """Stream position from which offers are refused until subscribers have read on."""

    @property
    def available_window(self) -> int | None:
        """Bytes that can be written before the limit is reached."""

    @property
    def is_connected(self) -> bool:
        """True while a subscriber is connected."""

    @property
    def is_closed(self) -> bool:
        """True once closed, by this program or with the client."""

    @property
    def is_original(self) -> bool:
        """True for the publication that made the driver create the log."""

    @property
    def channel(self) -> str:
        """The channel as the program passed it."""

    @property
    def stream_id(self) -> int:
        """Which flow on the channel."""

    @property
    def session_id(self) -> int:
        """Which publisher this is, to subscribers."""

    @property
    def initial_term_id(self) -> int:
        """Id of the stream's first term."""

    @property
    def term_length(self) -> int:
        """Bytes of one of the log's three terms."""

    @property
    def max_possible_position(self) -> int:
        """Stream position at the end of 2**31 terms, where the stream ends."""

    @property
    def max_payload_length(self) -> int:
        """Bytes of the longest message that fits one frame."""

    @property
    def max_message_length(self) -> int:
        """Bytes of the longest message."""

    @property
    def registration_id(self) -> int:
        """Identifies this publication in commands and counters."""

    @property
    def original_registration_id(self) -> int:
        """Identifies the log, which publications of one channel and stream share."""

    @property
    def position_limit_id(self) -> int:
        """Id of the counter with the position limit."""

    @property
    def channel_status_id(self) -> int:
        """Id of the counter with the channel's status; -1 when there is none, as for IPC."""

    @property
    def channel_status(self) -> _ChannelStatus:
        """State of the channel's endpoint."""

    @property
    def local_socket_addresses(self) -> list[str]:
        """Addresses to which the endpoint's sockets are bound, once it is active."""

    def add_destination(self, channel: str, /) -> int:
        """Send to one more address from now on; for channels with ``control-mode=manual``.

        Blocks without the GIL until the driver answers, at most ``driver_timeout_ms``; Ctrl-C ends the wait. The
        driver answers when its first lookup of a name has ended, with or without an address. The destination
        belongs to the publication's transport: all publications that share it send there, until it is removed. A
        receiver there reads the stream from now on. An address that is added twice gets each packet twice. The driver
        starts to send to a name without an address once the name has one.

        Args:
            channel: Where to: ``"aeron:udp?endpoint=host:port"``, with the endpoint on which a subscription listens.

        Returns:
            An id of the destination, for :meth:`remove_destination_by_id`.

        Raises:
            RegistrationError: The driver refused, with the reason: the publication's channel has no
                ``control-mode=manual``, or the destination is not of this form.
            DriverTimeoutError: The driver did not answer.
            ClosedError: The publication, or its client, is closed.
            ReentrantError: Called from one of the client's handlers.
        """

    def remove_destination(self, channel: str, /) -> None:
        """Stop sending to an address. Removes one of several equal destinations; does nothing if there is none.

        Blocks and raises as :meth:`add_destination`. A receiver there loses its image when it has heard nothing for
        the driver's ``aeron.image.liveness.timeout``.

        Args:
            channel: As for :meth:`add_destination`. Only its address counts: the text may differ.
        """

    def remove_destination_by_id(self, registration_id: int, /) -> None:
        """Stop sending to a destination. Does nothing if it is not there.

        Blocks and raises as :meth:`remove_destination`.

        Args:
            registration_id: The id that :meth:`add_destination` returned.

        Raises:
            ConfigError: The number does not fit 64 bits.
        """

    async def add_destination_async(self, channel: str, /) -> int:
        """As :meth:`add_destination`, without blocking the event loop.

        The request is sent when this is called, not when it is awaited. A cancelled call may have added the
        destination: remove it by its channel.
        """

    async def remove_destination_async(self, channel: str, /) -> None:
        """As :meth:`remove_destination`, without blocking the event loop.

        The request is sent when this is called, not when it is awaited, and cancelling the call does not undo it.
        """

    async def remove_destination_by_id_async(self, registration_id: int, /) -> None:
        """As :meth:`remove_destination_by_id`, without blocking the event loop.

        The request is sent when this is called, not when it is awaited, and cancelling the call does not undo it.
        """

    def request_destination(self, channel: str, /) -> Pending[int]:
        """As :meth:`add_destination`, without waiting: poll the returned request for the registration id.

        For programs whose loop must not stall. With ``use_invoker=True``, :meth:`headrace.Client.invoke` reads the
        answers.
        """

    def request_destination_removal(self, channel: str, /) -> Pending[int]:
        """As :meth:`remove_destination`, without waiting: poll the returned request until it is not ``None``."""

    def close(self) -> None:
        """Close. Messages that were sent are still delivered. Does not wait; closing again does nothing.

        Offers then return ``OfferResult.CLOSED``.
        """

    def revoke(self) -> None:
        """Close the whole stream, also for its other writers, and discard all unread messages."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class ExclusivePublication(Publication):
    """A publication that shares neither session nor log. One thread at a time writes to it, which makes it faster.

    A second thread that writes at the same moment gets a :class:`headrace.ReentrantError`. Otherwise as
    :class:`headrace.Publication`. Made by ``Client.add_exclusive_publication``.
    """

    def offer_block(self, block: _Bytes, /) -> int | OfferResult:
        """Send whole frames that were made for exactly this place in the stream. All become visible at once.

        Args:
            block: Frames with their headers, each padded to a multiple of 32 bytes, together not longer than the rest
                of the term.

        Returns:
            As :meth:`offer`.

        Raises:
            ConfigError: The first frame's header does not fit this place.
        """

    def offer_recorded(
        self, read: Callable[[memoryview, memoryview], int], length: int, within: int
    ) -> RecordedBlock | OfferResult:
        """Send frames of a recording, read straight into the log, under the session and stream of this publication.

        The frames must have been recorded at exactly the position that this publication is at. All frames that are sent
        become visible at once.

        Args:
            read: Called once, with two writable views that are valid during the call only: the first has 32 bytes and
                takes the first frame's header, the second takes the bytes that follow that header. Returns how many
                bytes it filled in both. An exception that it raises is raised here, and nothing is sent. Not called
                when the result is an ``OfferResult``.
            length: Most bytes to read. The end of the term limits it too.
            within: Only frames that begin less than this many bytes after the position are sent.

        Returns:
            How much was sent and why it ended there; or why nothing was read, as for :meth:`offer`.

        Raises:
            ConfigError: The length is shorter than a header, or ``within`` is below 0.
            BufferError: ``read`` kept a slice or an array made from its views.
        """

    def append_padding(self, length: int, /) -> int | OfferResult:
        """Send padding, which subscribers skip, as long as a frame with ``length`` bytes of payload.

        Returns:
            As :meth:`offer`.

        Raises:
            ConfigError: The length is below 0 or exceeds the longest message.
        """

@final
class RecordedBlock:
    """The result of sending a block of recorded frames."""

    @property
    def length(self) -> int:
        """Bytes of the stream that were sent, whole data frames."""

    @property
    def padding(self) -> int:
        """Length field of the padding frame that follows those frames; 0 without one."""

    @property
    def is_malformed(self) -> bool:
        """True when the bytes that follow those frames are not a frame of this position and stream."""

@final
class Image:
    """One publisher's stream, as one subscription receives it.

    Attributes may be read from any thread; one thread polls at a time. Once closed, polls deliver nothing and the
    other values stay as they were.
    """

    def poll(
        self,
        handler: _Handler | _ViewHandler,
        limit: int = 10,
        *,
        assemble: bool = True,
        view: bool = False,
    ) -> int:
        """As :meth:`Subscription.poll`, for this publisher only."""

    def bounded_poll(
        self,
        handler: _Handler | _ViewHandler,
        limit_position: int,
        limit: int = 10,
        *,
        assemble: bool = True,
        view: bool = False,
    ) -> int:
        """As :meth:`poll`, for fragments that begin before ``limit_position``.

        Raises:
            ConfigError: Also for a position that does not fit 64 bits.
        """

    def controlled_poll(
        self,
        handler: Callable[[bytes, Header], Action | None] | Callable[[memoryview, Header], Action | None],
        limit: int = 10,
        *,
        limit_position: int | None = None,
        assemble: bool = True,
        view: bool = False,
    ) -> int:
        """As :meth:`Subscription.controlled_poll`, optionally up to fragments that begin before a position.

        Raises:
            ConfigError: Also for a position that does not fit 64 bits.
        """

    def poll_entries(
        self,
        deliver: Callable[[Any, int, bytes, int], object],
        sessions: dict[int, Any],
        place: LogPlace,
        handler: Callable[[bytes, Header], Action | None],
        limit: int,
        limit_position: int,
    ) -> int:
        """Deliver the entries of a cluster's log that begin before a position to a service. Never blocks.

        Args:
            deliver: Called for each message of a session, and of a service to itself, with the session of `sessions` or
                ``None``, the timestamp, the message, and the log position after it.
            sessions: Sessions by id.
            place: Updated with ``session_id``, ``time`` and ``position`` of each message before `deliver` is called.
            handler: Called for all other entries, as by :meth:`controlled_poll`.
            limit: Most fragments to take.
            limit_position: The commit position.

        Raises:
            TypeError: The handler is not callable, or returned a wrong type.
            ConfigError: A number is out of range. Otherwise as :meth:`poll`.
        """

    def follow_entries(
        self, handler: Callable[[bytes, Header], Action | None], limit: int, limit_position: int
    ) -> int:
        """Read the entries of a cluster's log that begin before a position for a consensus module.

        Never blocks. Skips the messages of clients.

        Args:
            handler: Called for all other entries, as by :meth:`controlled_poll`.
            limit: Most fragments to take.
            limit_position: Where to stop.

        Raises:
            TypeError: The handler is not callable, or returned a wrong type.
            ConfigError: A number is out of range. Otherwise as :meth:`poll`.
        """

    def take_fragments(self, previous: Image, /) -> None:
        """Continue the half-read message of another image, so that polls deliver it whole.

        For a stream that continues here where the program stopped reading `previous`: a replay, or the log of a
        cluster's next leader. Call it before the first poll. It does nothing if `previous` stopped between two
        messages.

        Raises:
            ReentrantError: One of the images is being polled, or both are the same image.
            TypeError: `previous` is not an image.
        """

    def block_poll(
        self,
        handler: Callable[[bytes, int, int, int], object] | Callable[[memoryview, int, int, int], object],
        limit_bytes: int,
        *,
        view: bool = False,
    ) -> int:
        """As :meth:`Subscription.block_poll`, for this publisher only."""

    def poll_batch(self, limit: int = 4096, *, assemble: bool = True) -> FragmentBatch:
        """As :meth:`Subscription.poll_batch`, for this publisher only."""

    @property
    def position(self) -> int:
        """Stream position up to which fragments were consumed."""

    @property
    def join_position(self) -> int:
        """Stream position at which this image began."""

    @property
    def session_id(self) -> int:
        """Which publisher."""

    @property
    def stream_id(self) -> int:
        """Which flow on the channel."""

    @property
    def correlation_id(self) -> int:
        """Identifies this image in commands and counters."""

    @property
    def source_identity(self) -> str:
        """Where the stream comes from: an address, or ``aeron:ipc``."""

    @property
    def subscriber_position_id(self) -> int:
        """Id of the counter with the position."""

    @property
    def is_end_of_stream(self) -> bool:
        """True when the publisher ended and everything it sent was consumed."""

    @property
    def end_of_stream_position(self) -> int | None:
        """Stream position at which the publisher ended; ``None`` while it has not."""

    @property
    def is_publication_revoked(self) -> bool:
        """True when the publisher revoked the stream, which discarded all messages that were not consumed."""

    @property
    def active_transport_count(self) -> int:
        """Number of live network transports; 0 for IPC and once closed."""

    @property
    def is_closed(self) -> bool:
        """True once the publisher, the subscription or the client is gone."""

    @property
    def initial_term_id(self) -> int:
        """Id of the stream's first term."""

    @property
    def term_length(self) -> int:
        """Bytes of one of the log's three terms."""

    @property
    def mtu_length(self) -> int:
        """Bytes of the longest frame of the stream."""

    def reject(self, reason: str, /) -> None:
        """Reject this publisher and send it the reason. Blocks without the GIL until the driver answers.

        Args:
            reason: At most 1023 bytes.

        Raises:
            ClosedError: The image is closed.
            DriverTimeoutError: The driver did not answer.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class FragmentBatch:
    """Received messages as columns. Indexing and iterating return ``bytes``; the arrays share one memory.

    Immutable and thread-safe. The batch owns the memory, which lives as long as any array made from it.
    ``FragmentBatch()`` is empty.
    """

    def __new__(cls) -> Self: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> bytes: ...
    def __iter__(self) -> Iterator[bytes]: ...
    @property
    def payload(self) -> npt.NDArray[np.uint8]:
        """All payloads, one after another. Read-only, not copied."""

    @property
    def offsets(self) -> npt.NDArray[np.int32]:
        """Where each payload begins in :attr:`payload`, and where the last ends: one entry more than messages."""

    @property
    def positions(self) -> npt.NDArray[np.int64]:
        """Stream position after each message."""

    @property
    def session_ids(self) -> npt.NDArray[np.int32]:
        """Publisher of each message."""

    @property
    def stream_ids(self) -> npt.NDArray[np.int32]:
        """Stream of each message: the same value for all."""

    @property
    def reserved_values(self) -> npt.NDArray[np.int64]:
        """Reserved value of each message."""

    @property
    def stream_id(self) -> int:
        """Stream of all messages."""

    @property
    def payload_length(self) -> int | None:
        """Bytes of each payload if all have the same length; ``None`` if they differ or the batch is empty."""

    def as_array(self, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """The payloads as an array over the batch's memory.

        Args:
            dtype: Type of one message, such as a record type, or of one item in it; without it the result has one
                row of bytes for each message.

        Raises:
            ValueError: The payloads differ in length, or their length is not a multiple of the type's size.
        """

    def to_arrow(self) -> pa.RecordBatch:
        """An Arrow record batch over the batch's memory.

        Columns: ``payload`` (binary), ``position``, ``session_id``, ``stream_id``, ``reserved_value``.
        """

    def to_list(self) -> list[bytes]:
        """All payloads, copied."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class RecordedFrames:
    """The properties of a recording's frames, which a :class:`RecordingReader` checks. Immutable.

    Args:
        recording_id: Which recording. The archive's catalog has all numbers except ``stream_id``.
        start_position: Where the recording begins.
        initial_term_id: Term at position 0.
        term_length: Bytes of a term.
        segment_length: Bytes of a segment file; ignored for a replay.
        stream_id: The stream of the frames: the recording's in files, the requested one in a replay.
        session_id: The session id that messages get instead of the one in their frames: frames of a replay have the
            replay's session id, and frames with a checksum have the checksum in its place. ``None`` keeps the frames'
            session ids.
        checksum: The checksum that the archive wrote into frames in place of their session id. Each frame is checked.

    Raises:
        ConfigError: A number does not fit its type.
    """

    def __new__(
        cls,
        recording_id: int,
        *,
        start_position: int,
        initial_term_id: int,
        term_length: int,
        segment_length: int,
        stream_id: int,
        session_id: int | None = None,
        checksum: Checksum | None = None,
    ) -> Self: ...

@final
class MessageFilter:
    """Which messages a :class:`RecordingReader` returns. Immutable.

    Args:
        session_id: Only messages of this publisher; ``None`` for all publishers.
        reserved_value_min: Only messages with at least this reserved value.
        reserved_value_max: Only messages with at most this reserved value.

    Raises:
        ConfigError: A number does not fit its type.
    """

    def __new__(
        cls,
        *,
        session_id: int | None = None,
        reserved_value_min: int = ...,
        reserved_value_max: int = ...,
    ) -> Self: ...

@final
class RecordingReader:
    """Reads messages of a recording in batches: from an archive's segment files, or from a replay.

    Returns the messages that begin in ``[start, stop)``, assembled from their fragments, and reads past ``stop`` to
    finish the last of them. Two ranges, of which one begins where the other stops, therefore return every message once.
    Opens no file before the first read. Thread-safe.

    Args:
        source: The archive's directory; or the image of a replay that began at ``start``, or at the beginning of its
            term if no frame is known to begin at ``start``. Nothing else may read the image.
        frames: The properties of the recording's frames.
        start: First position at which a message may begin.
        stop: Messages that begin at this position or after it are not read.
        limit: Where the recording ends; the reader does not look at bytes from here on.
        is_frame_at_start: A frame begins at ``start``. Otherwise the reader walks to it through the term.
        filter: Which messages to return; ``None`` for all.
        with_payload: False leaves all payloads empty, which is faster when only their headers are needed.

    Raises:
        ConfigError: A position, length or id is one that no recording can have.
    """

    def __new__(
        cls,
        source: str | os.PathLike[str] | Image,
        frames: RecordedFrames,
        *,
        start: int,
        stop: int,
        limit: int,
        is_frame_at_start: bool = False,
        filter: MessageFilter | None = None,
        with_payload: bool = True,
    ) -> Self: ...
    def read_batch(self, count_max: int, length_max: int = ..., timeout_s: float = 0.0) -> FragmentBatch:
        """Read the next messages. Releases the GIL.

        The batch is empty at the end of the range. From a replay it has the messages that arrived within ``timeout_s``,
        which may be none; :attr:`is_at_end` tells the two cases apart. A replay that ends early looks like one that
        sends nothing more.

        Args:
            count_max: Most messages to read.
            length_max: Add no message once the batch has this many bytes of payload.
            timeout_s: How long to wait for a replay to fill the batch. Files never wait.

        Raises:
            ConfigError: A count, length or time is below 0.
            headrace.archive.SegmentError: A file is missing, cut short or damaged, or a replay is of another recording;
                the text names it.
        """

    def skip_to_boundary(self, timeout_s: float = 0.0) -> int:
        """Read on without returning the messages; returns :attr:`boundary`.

        Reads to the end of the range, or to the end of what a replay sent within ``timeout_s``; see :attr:`is_at_end`.

        Raises:
            headrace.archive.SegmentError: As :meth:`read_batch`.
        """

    @property
    def is_at_end(self) -> bool:
        """True when the range has no more messages."""

    @property
    def position(self) -> int:
        """Stream position of the next frame."""

    @property
    def boundary(self) -> int:
        """The last position before which no message is half read."""

    @property
    def incomplete_count(self) -> int:
        """Messages of the range that the reader left out because fragments of them are missing.

        Does not count the last message of a recording, whose rest may still come, nor messages of which no fragment was
        recorded.
        """

    @property
    def incomplete_position(self) -> int | None:
        """Position of the first recorded fragment of the first incomplete message; ``None`` if all are complete."""

@final
class Subscription:
    """A stream of messages from any number of publishers. Made by ``Client.add_subscription``.

    Attributes may be read from any thread; one thread polls at a time. A context manager that closes it. An iterator
    of :class:`headrace.Message`, for ``for`` and for ``async for``.
    """

    def poll(
        self,
        handler: _Handler | _ViewHandler,
        limit: int = 10,
        *,
        assemble: bool = True,
        view: bool = False,
    ) -> int:
        """Call a handler for what has arrived, taking turns between publishers. Never blocks.

        When the handler raises, the poll stops and raises the same exception; the message counts as consumed, and the
        next poll begins after it.

        Args:
            handler: Called with the payload and its :class:`headrace.Header`.
            limit: Most fragments to take.
            assemble: Assemble messages of several fragments, up to 16 MiB; the handler is called when the last fragment
                has arrived. ``False`` delivers each fragment by itself.
            view: Pass a read-only ``memoryview`` of the log instead of a copy. It is released when the handler
                returns and raises ``ValueError`` if used afterwards.

        Returns:
            How many fragments were taken; 0 when there was nothing to read.

        Raises:
            TypeError: The handler is not callable.
            ClosedError: The subscription is closed.
            ConfigError: The limit is below 0.
            ReentrantError: Polled by another thread, or from inside its own handler.
            ClientError: The process did not run for so long that the stream went on without this reader.
            BufferError: With ``view``, the handler kept a slice or an array made from the view.
            DriverTimeoutError: The client ended because the driver is gone.
        """

    def controlled_poll(
        self,
        handler: Callable[[bytes, Header], Action | None] | Callable[[memoryview, Header], Action | None],
        limit: int = 10,
        *,
        assemble: bool = True,
        view: bool = False,
    ) -> int:
        """As :meth:`poll`, but the handler decides after each message how to go on.

        Args:
            handler: Returns a member of :class:`headrace.Action`, or ``None`` to continue.
            limit: As for :meth:`poll`.
            assemble: As for :meth:`poll`.
            view: As for :meth:`poll`.

        Raises:
            TypeError: The handler is not callable, or returned a wrong type.
            ConfigError: The limit is below 0. Otherwise as :meth:`poll`.
        """

    def sequence(
        self,
        sequencer: Sequencer,
        handler: Callable[[bytes, Header], Action | None],
        timestamp: int,
        limit: int,
    ) -> int:
        """Put the messages of a cluster's clients into its log, and pass all others to a handler. Never blocks.

        If the log has no room for a message, that message and all later ones wait for the next call.

        Args:
            sequencer: Knows the log, the term and the open sessions.
            handler: Called as by :meth:`controlled_poll` for messages outside of sessions, for messages of a session
                without a stream, and for messages that can never enter the log.
            timestamp: The timestamp of the entries, in the cluster's time.
            limit: Most fragments to take.

        Raises:
            TypeError: The handler is not callable, or returned a wrong type.
            ConfigError: A number is out of range. Otherwise as :meth:`poll`.
        """

    def block_poll(
        self,
        handler: Callable[[bytes, int, int, int], object] | Callable[[memoryview, int, int, int], object],
        limit_bytes: int,
        *,
        view: bool = False,
    ) -> int:
        """Call a handler with whole runs of frames, headers included, one run from each publisher.

        A run is not consumed if its handler raises: the next poll delivers it again.

        Args:
            handler: Called with the frames, the session id, the term id and the term offset of the first frame.
            limit_bytes: Longest run. A padding frame is a separate run, of which only the header is passed.
            view: Pass a read-only view of the log instead of a copy; it ends with the call.

        Returns:
            Bytes of log that were consumed.

        Raises:
            ConfigError: The limit is below 0. Otherwise as :meth:`poll`.
        """

    def poll_batch(self, limit: int = 4096, *, assemble: bool = True) -> FragmentBatch:
        """Take what has arrived, copied out in one call. Never waits; a large limit releases the GIL meanwhile.

        To wait for a publisher, call :meth:`wait_until_connected` first. To wait for the next messages, let the loop
        idle: ``idle.idle(len(batch))`` with ``idle = headrace.BlockingIdleStrategy(subscription)`` sleeps until a
        message wakes it, 20 ms at most, and only when the batch is empty.

        Args:
            limit: Most fragments to take.
            assemble: As for :meth:`poll`.

        Returns:
            The messages; an empty batch when there was nothing to read.

        Raises:
            ClosedError: The subscription is closed.
            ConfigError: The limit is below 0.
            ReentrantError: Polled by another thread.
            ClientError: The process did not run for so long that the stream went on without this reader.
            DriverTimeoutError: The client ended because the driver is gone.
        """

    def poll_native(self, handler: Any, context: int = 0, limit: int = 4096, *, assemble: bool = True) -> int:
        """Call a compiled handler for what has arrived, without the interpreter. Releases the GIL.

        The handler's C declaration is in :mod:`headrace.client.native`. **Nothing checks the address**: if it is not
        the address of such a function, or the context is wrong, the process crashes.

        Args:
            handler: A numba ``cfunc``, a ctypes function, a cffi function pointer or an address.
            context: Passed to the handler: an address, such as ``array.ctypes.data``. The program must keep its memory
                until the call returns.
            limit: Most fragments to take.
            assemble: As for :meth:`poll`.

        Returns:
            How many fragments were taken.

        Raises:
            ConfigError: The context is not an address, or the limit is below 0. Otherwise as :meth:`poll`.
        """

    def poll_message(self) -> Message | None:
        """Take one message; ``None`` if no whole message has arrived. Never blocks.

        Raises:
            ClosedError: The subscription is closed.
            ReentrantError: Polled by another thread.
            ClientError: The process did not run for so long that the stream went on without this reader.
            DriverTimeoutError: The client ended because the driver is gone.
        """

    def receive(
        self, timeout_s: float | None = None, *, idle: str | IdleStrategy | None = None
    ) -> Message | None:
        """Wait for one message, without the GIL; Ctrl-C ends the wait.

        Args:
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.
            idle: How to wait: a strategy, or its name; ``"blocking"`` by default. See :class:`headrace.IdleStrategy`.

        Returns:
            The message; ``None`` when the time is over.

        Raises:
            ClosedError: The subscription is closed, or is closed meanwhile.
            ConfigError: The time is below 0, or no strategy has this name.
            ReentrantError: Polled by another thread.
            ClientError: The process did not run for so long that the stream went on without this reader.
            DriverTimeoutError: The client ended because the driver is gone.
        """

    def wait_until_connected(
        self, timeout_s: float | None = 5.0, *, idle: str | IdleStrategy | None = None
    ) -> bool:
        """Wait for a publisher, without the GIL. False when the time is over or the subscription is closed."""

    def __iter__(self) -> Self:
        """The subscription itself: an iteration has no state that an exception could end."""

    def __next__(self) -> Message:
        """Wait without the GIL for the next message; the iteration ends when this program closes the subscription.

        Blocks until a message arrives, without a time limit; Ctrl-C ends the wait, and the iteration can continue
        afterwards. Leaving a loop loses no message: the next reader gets the next message.

        Raises:
            DriverTimeoutError: The client ended because the driver is gone.
            ClientError: The client ended for another reason.
            ReentrantError: Polled by another thread.
            ClientError: The process did not run for so long that the stream went on without this reader.
        """

    def __aiter__(self) -> AsyncIterator[Message]: ...
    @property
    def images(self) -> list[Image]:
        """The images of the publishers that are connected now."""

    @property
    def image_count(self) -> int:
        """Number of publishers now."""

    def image_by_session_id(self, session_id: int, /) -> Image | None:
        """The image of one publisher; ``None`` if that publisher is not connected.

        Raises:
            ConfigError: The session id does not fit 32 bits.
        """

    @property
    def is_connected(self) -> bool:
        """True while at least one publisher is connected."""

    @property
    def is_closed(self) -> bool:
        """True once closed, by this program or with the client."""

    @property
    def channel(self) -> str:
        """The channel as the program passed it."""

    @property
    def stream_id(self) -> int:
        """Which flow on the channel."""

    @property
    def registration_id(self) -> int:
        """Identifies this subscription in commands and counters."""

    @property
    def channel_status_id(self) -> int:
        """Id of the counter with the channel's status; -1 when there is none, as for IPC."""

    @property
    def channel_status(self) -> _ChannelStatus:
        """State of the channel's endpoint."""

    @property
    def local_socket_addresses(self) -> list[str]:
        """Addresses to which the endpoint's sockets are bound, once it is active."""

    @property
    def resolved_endpoint(self) -> str | None:
        """The bound address, ``ip:port``, once known: with port 0 in the channel, the one the system chose."""

    @property
    def resolved_channel(self) -> str | None:
        """The channel with port 0 replaced by the one the system chose; ``None`` until that is known."""

    def add_destination(self, channel: str, /) -> int:
        """Receive from one more destination from now on; for channels with ``control-mode=manual``.

        Blocks without the GIL until the driver answers, at most ``driver_timeout_ms``; Ctrl-C ends the wait. Sockets
        that receive the same stream feed one image, which delivers each byte once, from the socket that has it first. A
        socket belongs to the subscription's transport: all subscriptions that share it, by a channel tag, read from it.

        Args:
            channel: A socket to listen on, ``"aeron:udp?endpoint=host:port"``, also a multicast group; or what clients
                of this driver publish, ``"aeron:ipc"`` and ``"aeron-spy:aeron:udp?..."``.

        Returns:
            An id of the destination, for :meth:`remove_destination_by_id`.

        Raises:
            RegistrationError: The driver refused, with the reason: the subscription's channel has no
                ``control-mode=manual``, the address is in use or not known, or the channel cannot be a destination.
            DriverTimeoutError: The driver did not answer.
            ClosedError: The subscription, or its client, is closed.
            ReentrantError: Called from one of the client's handlers.
        """

    def remove_destination(self, channel: str, /) -> None:
        """Stop receiving from a destination. Removes one of several equal destinations.

        Blocks and raises as :meth:`add_destination`. When this returns, the socket is closed and its port is free; for
        a socket that is not there it does nothing. An image lives on while another destination receives its stream, and
        ends when none has for the driver's ``aeron.image.liveness.timeout``; images of ``aeron:ipc`` and of spies end
        soon after this returns.

        Args:
            channel: As for :meth:`add_destination`. For a socket only its addresses must be written alike, for other
                destinations the whole text.

        Raises:
            RegistrationError: Also for an ``aeron:ipc`` or a spy that is not there.
        """

    def remove_destination_by_id(self, registration_id: int, /) -> None:
        """Stop receiving from a destination. Does nothing if it is not there.

        Blocks and raises as :meth:`remove_destination`. Aeron's drivers may support this for publications only, and
        refuse.

        Args:
            registration_id: The id that :meth:`add_destination` returned.

        Raises:
            ConfigError: The number does not fit 64 bits.
        """

    async def add_destination_async(self, channel: str, /) -> int:
        """As :meth:`add_destination`, without blocking the event loop.

        The request is sent when this is called, not when it is awaited. A cancelled call may have added the
        destination: remove it by its channel.
        """

    async def remove_destination_async(self, channel: str, /) -> None:
        """As :meth:`remove_destination`, without blocking the event loop.

        The request is sent when this is called, not when it is awaited, and cancelling the call does not undo it.
        """

    async def remove_destination_by_id_async(self, registration_id: int, /) -> None:
        """As :meth:`remove_destination_by_id`, without blocking the event loop.

        The request is sent when this is called, not when it is awaited, and cancelling the call does not undo it.
        """

    def request_destination(self, channel: str, /) -> Pending[int]:
        """As :meth:`add_destination`, without waiting: poll the returned request for the registration id.

        For programs whose loop must not stall. With ``use_invoker=True``, :meth:`headrace.Client.invoke` reads the
        answers.
        """

    def request_destination_removal(self, channel: str, /) -> Pending[int]:
        """As :meth:`remove_destination`, without waiting: poll the returned request until it is not ``None``."""

    def close(self) -> None:
        """Close, with all images. Waits for handlers that are running, without the GIL; closing again does nothing.

        Polls then raise :class:`headrace.ClosedError`.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

class _Polled(Protocol):
    """A subscription, also of a reconnecting client."""

    def poll_message(self) -> Message | None:
        """As of a :class:`Subscription`."""

_PollerHandler = Callable[[Subscription, bytes, Header], object]
_PollerViewHandler = Callable[[Subscription, memoryview, Header], object]

@final
class Poller:
    """Receives from several subscriptions in turn, and says which subscription each message came from.

    ``Poller(first, second)``. Fair: a subscription with many messages does not delay one with few. The program may also
    poll the subscriptions directly. Skips a subscription that the program has closed. One thread at a time polls a
    subscription.

    With subscriptions of a reconnecting client it follows them to the next driver. While there is no driver, nothing
    arrives from them, and waiting calls wait for the next one.
    """

    def __new__(cls, *subscriptions: _Polled) -> Self: ...
    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """The subscriptions, in the order of the arguments."""

    def poll(
        self,
        handler: _PollerHandler | _PollerViewHandler,
        limit: int = 10,
        *,
        assemble: bool = True,
        view: bool = False,
    ) -> int:
        """Call a handler for what has arrived, taking turns between subscriptions. Never blocks.

        Args:
            handler: Called with the subscription, the payload and a :class:`Header`, as by :meth:`Subscription.poll`.
            limit: Most fragments to take, from all subscriptions together.
            assemble: Assemble messages of several fragments; ``False`` delivers each fragment by itself.
            view: Pass views of the log instead of copies, valid inside the handler only.

        Returns:
            How many fragments were taken.

        Raises:
            TypeError: The handler is not callable.
            ClosedError: The program has closed all subscriptions.
            DriverTimeoutError: A client ended because the driver is gone.
            ReentrantError: Polled by another thread.
            ClientError: The process did not run for so long that the stream went on without this reader.
        """

    def poll_message(self) -> tuple[Subscription, Message] | None:
        """Take one message; ``None`` if no whole message has arrived. Never blocks.

        Begins with the subscription after the one that the last message came from.

        Raises:
            ClosedError: The program has closed all subscriptions.
            DriverTimeoutError: A client ended because the driver is gone.
            ReentrantError: Polled by another thread.
            ClientError: The process did not run for so long that the stream went on without this reader.
        """

    def receive(
        self, timeout_s: float | None = None, *, idle: str | IdleStrategy | None = None
    ) -> tuple[Subscription, Message] | None:
        """Wait for one message, without the GIL; Ctrl-C ends the wait.

        Args:
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.
            idle: How to wait: a strategy, or its name; ``"blocking"`` by default. See :class:`headrace.IdleStrategy`.

        Returns:
            The subscription and its message; ``None`` when the time is over.

        Raises:
            ClosedError: The program has closed all subscriptions, or closes them meanwhile.
            DriverTimeoutError: A client ended because the driver is gone.
            ReentrantError: Polled by another thread.
            ClientError: The process did not run for so long that the stream went on without this reader.
        """

    def __iter__(self) -> Self:
        """The poller itself: an iteration has no state that an exception could end."""

    def __next__(self) -> tuple[Subscription, Message]:
        """Wait without the GIL for the next message; returns its subscription and the message.

        Blocks without a time limit; Ctrl-C ends the wait. Ends when the program has closed all subscriptions.
        """

    def __aiter__(self) -> AsyncIterator[tuple[Subscription, Message]]: ...

@final
class Counter:
    """A 64-bit value that every process on the driver can see. Made by ``Client.add_counter``.

    Thread-safe. A context manager that closes it.
    """

    @property
    def value(self) -> int:
        """The value. Setting it publishes it.

        Raises:
            ClosedError: The counter is closed; the driver may have reused its place for another counter.
            ConfigError: The new value does not fit 64 bits.
        """

    @value.setter
    def value(self, value: int) -> None: ...
    def get_and_add(self, delta: int, /) -> int:
        """Add atomically and return the value before.

        Raises:
            ClosedError: The counter is closed.
            ConfigError: ``delta`` does not fit 64 bits.
        """

    def set_reference_id(self, reference_id: int, /) -> None:
        """Set what this counter refers to, for tools; the meaning depends on the counter's type.

        Raises:
            ClosedError: The counter is closed.
            ConfigError: The counter is static, or the number does not fit 64 bits.
        """

    @property
    def counter_id(self) -> int:
        """Index in the counters file."""

    @property
    def registration_id(self) -> int:
        """Identifies this counter in commands."""

    @property
    def is_static(self) -> bool:
        """True for a counter that lives as long as the driver."""

    @property
    def is_closed(self) -> bool:
        """True once closed, by this program or with the client. Static counters never close."""

    def close(self) -> None:
        """Return the counter to the driver. Does not wait. Does nothing to a closed or a static counter."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@disjoint_base
class IdleStrategy:
    """How a loop waits after a turn without work. Use one of its subclasses, one object for each loop.

    Args:
        name: ``"blocking"``, ``"backoff"``, ``"yield"``, ``"spin"``, ``"noop"``, ``"sleep-ns"`` or ``"sleep-ms"``.
        init_args: A duration for ``"sleep-ns"``; ``"spins-yields-minPark-maxPark"`` for ``"backoff"``.
        awaited: Subscriptions and publications that end a sleep of ``"blocking"`` or ``"backoff"``.
    """

    def __new__(
        cls,
        name: str = "backoff",
        init_args: str | None = None,
        awaited: Sequence[Subscription | Publication] = ...,
    ) -> Self: ...
    def idle(self, work_count: int = 0, /) -> None:
        """Call this after each turn with its work count. Returns at once if that is above 0, and otherwise waits.

        Releases the GIL while it waits.
        """

    def rest(self, found: bool, longest_ns: int, /) -> None:
        """Sleep after a turn that took all that was there, until one of `awaited` has more; for the turns of a cluster.

        Doorbells are armed again when the sleep ends, so the turn that follows needs no other one before the next
        sleep. Only for ``"backoff"`` and ``"blocking"``. Releases the GIL while it waits.

        Args:
            found: Whether the turn found something.
            longest_ns: How long it sleeps at most.
        """

    def reset(self) -> None:
        """Begin again with the shortest wait, as after a turn that did work."""

    @property
    def name(self) -> str:
        """Name of the strategy."""

@final
class Watcher:
    """Wakes one event loop when something that its coroutines wait for may have happened. Used by ``headrace.aio``.

    Takes one of a driver's 64 slots for waiters, however many coroutines wait, and frees it when it is dropped.
    All calls come from the loop's thread; none blocks.

    Raises:
        OSError: The process has reached its limit of descriptors.
    """

    def __new__(cls) -> Self: ...
    def fileno(self) -> int:
        """A descriptor that becomes readable when :meth:`take_rung` has something to look at."""

    def watch(self, *awaited: Subscription | Publication) -> int | None:
        """Begin a wait for a message, or for room, in the first of several.

        Returns:
            A ticket; ``None`` if there already is a message, or room.
        """

    def cancel(self, ticket: int, /) -> None:
        """End a wait. Does nothing if it is over."""

    def take_rung(self) -> list[int]:
        """The tickets of finished waits, among those whose writers woke the loop."""

    def take_ready(self) -> list[int]:
        """The tickets of all finished waits. Call it when ``look_after_s`` has passed."""

    @property
    def look_after_s(self) -> float | None:
        """How long the loop may sleep at most, in seconds, before it looks by itself; ``None`` without a wait.

        20 ms; 1 ms if writers do not wake it.
        """

@final
class Sequencer:
    """Puts the messages of a cluster's clients into its log, where the member leads. See ``Subscription.sequence``.

    Thread-safe.

    Args:
        log: The publication of the log.
        leadership_term_id: The leader's term. Messages of other terms are skipped.

    Raises:
        ConfigError: The term does not fit 64 bits.
    """

    def __new__(cls, log: ExclusivePublication, leadership_term_id: int) -> Self: ...
    def open(self, cluster_session_id: int, stream: tuple[int, int] | None, /) -> None:
        """Put messages of a session into the log from now on, if they come on its stream.

        Args:
            cluster_session_id: Which session.
            stream: Registration id of the subscription, and session id of the publisher; ``None`` passes the session's
                messages to the handler.

        Raises:
            ConfigError: The number does not fit 64 bits.
            TypeError: The stream is not such a pair.
        """

    def close(self, cluster_session_id: int, /) -> None:
        """Skip the messages of a session from now on.

        Raises:
            ConfigError: The number does not fit 64 bits.
        """

    def take_heard(self) -> list[int]:
        """The sessions with messages that entered the log since the last call."""

@disjoint_base
class LogPlace:
    """A service's place in the log of a cluster, and whether it may send. One thread writes, any thread reads."""

    def __new__(cls) -> Self: ...
    @property
    def term_id(self) -> int:
        """The leadership term of the last entry; -1 before the first."""

    @term_id.setter
    def term_id(self, value: int) -> None: ...
    @property
    def time(self) -> int:
        """The time of the last entry, in the cluster's unit."""

    @time.setter
    def time(self, value: int) -> None: ...
    @property
    def position(self) -> int:
        """The log position after the last entry."""

    @position.setter
    def position(self, value: int) -> None: ...
    @property
    def session_id(self) -> int:
        """The session of the last message; -1 before the first."""

    @session_id.setter
    def session_id(self, value: int) -> None: ...
    @property
    def output_count(self) -> int:
        """How often the service has asked for something: shows whether a long-running handler makes progress."""

    def note_output(self) -> None:
        """Count that the service asks for something."""

    @property
    def is_leader(self) -> bool:
        """Whether the member leads."""

    @is_leader.setter
    def is_leader(self, value: bool) -> None: ...
    @property
    def is_silent(self) -> bool:
        """Whether a handler runs that must not send: :meth:`check_may_send` is called before anything is sent."""

    @is_silent.setter
    def is_silent(self, value: bool) -> None: ...
    def check_may_send(self) -> None:
        """Check whether the running handler may send. A subclass raises if it must not."""

    def answer(
        self,
        sessions: dict[int, Any],
        columns: tuple[Any, Any, Any],
        answers: Any,
        first: int,
    ) -> int:
        """Send the clients of a batch their answers, until a stream has no room for one. Never waits.

        Skips messages of sessions that are closed or have no stream. Calls :meth:`SessionSender.on_refused` for an
        answer that is too long for its client's stream.

        Args:
            sessions: The :class:`SessionSender` of each open session.
            columns: Session ids, timestamps and log positions of the batch, as contiguous buffers of 64-bit numbers.
            answers: One for each message, as for :meth:`Publication.offer_batch`.
            first: The index of the first message to answer.

        Returns:
            The index of the first message whose answer found no room. If all found room, and on a member that does not
            lead, the number of messages.

        Raises:
            ConfigError: The number of answers differs from that of messages, or an answer is longer than 16 MiB.
            TypeError: The answers are of a type that ``offer_batch`` does not take.
        """

@final
class SessionStreams:
    """The streams of a client's session with a cluster: sends the program's messages, and sorts what comes.

    Any thread may call its methods; one at a time takes messages. None but :meth:`receive` waits.

    Args:
        egress: What the cluster sends.
        cluster_session_id: The session.
        leadership_term_id: The term of the leader.
        make: Makes a message of a tuple: payload, timestamp, term, log position.
        length_max: The longest message that the cluster's log takes; ``None`` if unknown.
        keep_alive_interval_ns: After so long without a message a keepalive is due; 0 for never.

    Attributes:
        publication: The stream to the leader; ``None`` while there is none.
        is_steady: Whether nothing but the stream needs a look: the session is connected, and holds no messages.
    """

    def __new__(
        cls,
        egress: Subscription,
        cluster_session_id: int,
        leadership_term_id: int,
        make: Callable[[tuple[bytes, int, int, int]], Any],
        length_max: int | None,
        keep_alive_interval_ns: int,
    ) -> Self: ...
    @property
    def publication(self) -> Publication | None:
        """The stream to the leader; ``None`` while there is none."""

    @publication.setter
    def publication(self, value: Publication | None) -> None: ...
    @property
    def is_steady(self) -> bool:
        """Whether nothing but the stream needs a look: the session is connected, and holds no messages."""

    @is_steady.setter
    def is_steady(self, value: bool) -> None: ...
    @property
    def is_connected(self) -> bool:
        """Whether the leader's stream to this client is there."""

    @property
    def seen_position(self) -> int:
        """The furthest that a service had read the log, by its messages; 0 before the first."""

    @property
    def is_keep_alive_due(self) -> bool:
        """Whether nothing was sent for so long that a keepalive is due."""

    def follow(self, leadership_term_id: int, image: Image | None) -> None:
        """Another member leads: its term, and its stream to this client."""

    def offer(self, data: _Data, /) -> int | OfferResult:
        """Send a message of the program, with its header; ``NOT_CONNECTED`` without a publication.

        Raises:
            ConfigError: The message is too long for the stream or the log.
            TypeError: The message is not bytes-like.
        """

    def send(self, data: _Data, /) -> int | OfferResult:
        """Send a message of the client itself as it is."""

    def take(self) -> Any:
        """Take a message, as `make` made it; a :class:`headrace.Message` that is not a service's, or ``None``."""

    def receive(self, timeout_s: float, /) -> Any:
        """As :meth:`take`, waiting for one without the GIL; ``None`` also for one of another session."""

    def poll(
        self,
        handler: Callable[[Any], object],
        limit: int,
        accept: Callable[[Message], object],
        reading: Any,
    ) -> tuple[int, bool]:
        """Call a handler with the messages that are there, while the session is steady and no keepalive is due.

        Args:
            handler: Called with each message. What it raises ends the poll.
            limit: Most messages to take.
            accept: Called with each message that is not a service's.
            reading: The lock of those who take messages, held while one is taken, and not while the handler runs.

        Returns:
            How many messages were taken; and whether that is all, so that the session needs no other look.
        """

@disjoint_base
class SessionSender:
    """Sends messages of a cluster's service to one client, with the service's log position.

    Args:
        place: The service's place in the log.
        cluster_session_id: The client's session.

    Raises:
        TypeError: The place is not a LogPlace.
        ConfigError: The session id does not fit 64 bits.
    """

    def __new__(cls, place: LogPlace, cluster_session_id: int) -> Self: ...
    @property
    def publication(self) -> Publication | None:
        """The publication to the client; ``None`` if there is no stream to it."""

    @publication.setter
    def publication(self, value: Publication | None) -> None: ...
    def offer(self, message: _Data) -> int | OfferResult:
        """Send the client a message, if this member leads; never waits.

        The message carries the log position after the handled entry: ``ClusterMessage.log_position``.

        Args:
            message: A bytes-like object, or a tuple or list of them sent as one message.

        Returns:
            A number above zero if the message was sent, and always on a member that does not lead; otherwise the reason
            why it was not. The service's state must not depend on the result. If the message is too long for the
            client's stream, the client gets an error that says so instead.

        Raises:
            ClusterError: The handler must not send.
            ConfigError: The message is longer than any stream takes, 16 MiB less 32 bytes.
            TypeError: The message is not bytes-like. Every member, and every replay, raises all of these alike.
        """

    def on_refused(self, reason: str, position: int) -> int | OfferResult:
        """Called when a message is too long for the client's stream; a subclass sends the client an error.

        Args:
            reason: Why.
            position: The log position after the entry that is answered.

        Returns:
            The result for :meth:`offer`.
        """

@final
class Checksum:
    """A checksum that frames and catalog entries of an archive may carry.

    Args:
        name: ``"CRC-32"`` or ``"CRC-32C"``.
    """

    def __new__(cls, name: str) -> Self: ...
    def __call__(self, data: _Data, /) -> int:
        """The checksum of some bytes as a signed 32-bit number, as files store it. Releases the GIL."""

    def put(self, block: _Data, /) -> bytes:
        """Copy a run of frames and replace each data frame's session id by its checksum. Releases the GIL."""

    def first_wrong(self, block: _Data, limit: int, /) -> int | None:
        """Offset of the first whole data frame before ``limit`` whose checksum is wrong.

        Releases the GIL.

        Raises:
            ConfigError: The limit is below 0.
        """

@final
class FrameWalk:
    """Looks at the frames of a recording in blocks of its segment files. Thread-safe: one call runs at a time.

    Args:
        recording_id: Which recording, for texts.
        start_position: Where the recording begins.
        initial_term_id: Term at position 0.
        term_length: Bytes of a term.
        stream_id: The stream of every frame.
        session_id: The publisher, for frames without a checksum.
        checksum: The checksum that frames may carry in place of the session id.

    Raises:
        ConfigError: A number does not fit its type, or no recording can have it.
    """

    def __new__(
        cls,
        recording_id: int,
        *,
        start_position: int,
        initial_term_id: int,
        term_length: int,
        stream_id: int,
        session_id: int,
        checksum: Checksum | None = None,
    ) -> Self: ...
    def walk(self, block: _Data, position: int, limit: int, /) -> tuple[int, int | None, str | None]:
        """Go from header to header through a block that begins with a frame at ``position``. Releases the GIL.

        Args:
            block: Bytes of a segment file.
            position: Stream position of the first byte.
            limit: Stream position at which the file ends; no data frame may end after it.

        Returns:
            Position after the last frame that belongs there; position of that frame; the fault of the header that
            follows it, ``None`` if the block ended first.

        Raises:
            ConfigError: A position does not fit its type.
        """

    def doubts(self, block: _Data, position: int, /) -> tuple[int, list[tuple[int, int, bool]]]:
        """The frames of a walked block that may be incomplete on disk. Releases the GIL.

        A right checksum shows that a frame is whole, and so does a byte other than zero in each page after the frame's
        first. All other frames are in doubt.

        Returns:
            Position of the first frame that is not whole in the block; of each frame in doubt its position, its end,
            and whether its checksum is wrong.

        Raises:
            ConfigError: The position does not fit its type.
        """

@final
class Pending(Generic[_Added]):
    """A request that the driver may not have answered yet. Wrapped by ``headrace.client.Pending``."""

    def poll(self) -> _Added | None: ...
    def cancel(self) -> None: ...

@final
class Client:
    """A connection to a media driver. Wrapped by ``headrace.Client``, which documents it."""

    @staticmethod
    def connect(
        directory: str | os.PathLike[str],
        *,
        settings: list[tuple[str, str]],
        handlers: dict[str, Any],
        use_invoker: bool,
        driver: MediaDriver | Node | None,
        clock: object | None,
    ) -> Client: ...
    def add_publication(self, channel: str, stream_id: int) -> Publication: ...
    def add_exclusive_publication(self, channel: str, stream_id: int) -> ExclusivePublication: ...
    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        on_available_image: Callable[[Image], object] | None = None,
        on_unavailable_image: Callable[[Image], object] | None = None,
        starts_now: bool = False,
    ) -> Subscription: ...
    def add_counter(self, type_id: int, key: bytes, label: str) -> Counter: ...
    def add_static_counter(self, type_id: int, key: bytes, label: str, registration_id: int) -> Counter: ...
    def request_publication(self, channel: str, stream_id: int) -> Pending[Publication]: ...
    def request_exclusive_publication(
        self, channel: str, stream_id: int
    ) -> Pending[ExclusivePublication]: ...
    def request_subscription(
        self,
        channel: str,
        stream_id: int,
        on_available_image: Callable[[Image], object] | None = None,
        on_unavailable_image: Callable[[Image], object] | None = None,
        starts_now: bool = False,
    ) -> Pending[Subscription]: ...
    def request_counter(self, type_id: int, key: bytes, label: str) -> Pending[Counter]: ...
    def counters(self) -> list[_RecordValues]: ...
    def counter_record(self, counter_id: int, /) -> _RecordValues | None: ...
    def counter_value(self, counter_id: int, /) -> int | None: ...
    def compare_and_set_counter(
        self, counter_id: int, expected: int, value: int, registration_id: int
    ) -> bool | None: ...
    def find_counter(self, type_id: int, registration_id: int) -> int | None: ...
    def next_correlation_id(self) -> int: ...
    def next_available_session_id(self, stream_id: int, /) -> int: ...
    @property
    def client_id(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    def invoke(self) -> int: ...
    def keep_alive(self) -> None: ...
    def close(self) -> None: ...

@final
class MediaDriver:
    """A running media driver. Wrapped by ``headrace.MediaDriver``, which documents it."""

    @staticmethod
    def launch(properties: list[tuple[str, str]]) -> MediaDriver: ...
    @property
    def directory(self) -> os.PathLike[str]: ...
    @property
    def settings(self) -> list[tuple[str, str]]: ...
    @property
    def chosen_threading(self) -> str | None: ...
    @property
    def doubts(self) -> list[str]: ...
    @property
    def is_terminated(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...
    def invoke(self) -> int | None: ...
    def close(self) -> None: ...

_LinkValues = tuple[float, float, float, int, int, int | None]

@final
class World:
    """Nodes on one simulated network. Wrapped by ``headrace.testing.World``, which documents it."""

    def __new__(cls, seed: int, directory: str | os.PathLike[str], checks: bool) -> Self: ...
    @property
    def seed(self) -> int: ...
    @property
    def now_ns(self) -> int: ...
    @property
    def socket_count(self) -> int: ...
    def add_node(self, name: str, properties: list[tuple[str, str]]) -> Node: ...
    def set_links(self, values: _LinkValues) -> None: ...
    def set_lookup_ns(self, lookup_ns: int) -> None: ...
    def set_programs(self, turn: Callable[[], int]) -> None: ...
    def step(self, end_ns: int) -> int: ...
    def set_rest_ns(self, rest_max_ns: int) -> None: ...
    def set_programs_due_ns(self, due_ns: int) -> None: ...
    def note_work(self) -> None: ...
    def note(self, text: str) -> None: ...
    def trace(self, count: int) -> str: ...
    def digest(self) -> tuple[int, int]: ...

@final
class Node:
    """A machine of a world. Wrapped by ``headrace.testing.Node``, which documents it."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def address_v6(self) -> str: ...
    @property
    def directory(self) -> os.PathLike[str]: ...
    @property
    def is_up(self) -> bool: ...
    @property
    def is_paused(self) -> bool: ...
    def clock_ns(self) -> tuple[int, int]: ...
    def start(self) -> None: ...
    def crash(self) -> None: ...
    def close(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def wake(self) -> None: ...
    def set_clock_skew_ns(self, skew_ns: int) -> None: ...
    def jump_clock_ns(self, by_ns: int) -> None: ...
    def set_disk_room(self, bytes: int | None) -> None: ...
    def crash_client(self, client: Client) -> None: ...
    def set_stalled(self, client: Client, is_stalled: bool) -> None: ...
    def set_link_to(self, other: Node, values: _LinkValues | None) -> None: ...
    def set_cut_to(self, other: Node, is_cut: bool) -> None: ...

@final
class EventLog:
    """The writing side of an event log, ``events.dat`` in ``directory``, with room for ``limit`` events.

    A file that another process left there is replaced. Thread-safe.

    Raises:
        OSError: The file cannot be made.
    """

    def __new__(cls, directory: str | os.PathLike[str], limit: int, start_timestamp_ms: int) -> Self: ...
    def append(
        self,
        time_ns: int,
        kind: str,
        id: int,
        old: str,
        new: str,
        reason: str,
        *,
        parent_id: int | None = None,
        stream_id: int | None = None,
        session_id: int | None = None,
        detail: str = "",
        is_fault: bool = False,
    ) -> bool:
        """Append an event. Never blocks. Returns False if it was dropped; the file counts dropped events."""

@final
class EventReader:
    """Reads a file of events, the oldest first. Wrapped by ``headrace.event_log.EventReader``, which documents it."""

    def __new__(cls, path: str | os.PathLike[str]) -> Self: ...
    @property
    def pid(self) -> int: ...
    @property
    def start_timestamp_ms(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def dropped_count(self) -> int: ...
    def drain(self) -> tuple[list[tuple[Any, ...]], int]: ...

def hold_threads() -> None:
    """Keep all other threads from returning into Python. Runs as the last of the package's exit hooks."""

def setting_declarations() -> dict[str, list[dict[str, Any]]]:
    """Every setting of driver and client, for ``scripts/settings.py``."""

def state_tables() -> list[dict[str, Any]]:
    """Every kind of long-lived thing of the driver with its states, for ``scripts/states.py``."""

def close_clients() -> None:
    """Close every client of this process that is still open. Runs before the interpreter ends."""
