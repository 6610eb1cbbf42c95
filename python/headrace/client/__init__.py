"""Clients: publications, subscriptions and counters on a media driver."""

from __future__ import annotations

import atexit
import dataclasses
import os
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeVar, overload

from headrace import _core
from headrace._checks import check_names, wrong
from headrace._closing import EitherClosing
from headrace._config import default_directory, directory_text
from headrace._core import (
    BatchResult,
    Checksum,
    Claim,
    Counter,
    ExclusivePublication,
    FragmentBatch,
    FrameWalk,
    Header,
    Image,
    Message,
    Poller,
    Publication,
    RecordedBlock,
    RecordingReader,
    Subscription,
    Watcher,
)
from headrace._exceptions import ForkError, RegistrationError
from headrace._logging import CLIENT
from headrace._names import publish as _publish
from headrace._settings import ClientConfig, ClientSettings
from headrace.client import _events
from headrace.client._channels import check_channel
from headrace.client._counters import CounterRecord, Counters
from headrace.client._idle import (
    BackoffIdleStrategy,
    BlockingIdleStrategy,
    BusySpinIdleStrategy,
    IdleStrategy,
    NoOpIdleStrategy,
    SleepingIdleStrategy,
    YieldingIdleStrategy,
)
from headrace.client._pending import CLOSING_TIMEOUT_S, TEMPORARILY_UNAVAILABLE, Pending
from headrace.client._reconnecting import (
    ConnectionState,
    ReconnectingClient,
    ReconnectingPublication,
    ReconnectingSubscription,
)

if TYPE_CHECKING:
    from typing import Self, Unpack

    from headrace._exceptions import HeadraceError
    from headrace.client._local_driver import LocalDriver

__all__ = [
    "BackoffIdleStrategy",
    "BatchResult",
    "BlockingIdleStrategy",
    "BusySpinIdleStrategy",
    "Checksum",
    "Claim",
    "Client",
    "ConnectionState",
    "Counter",
    "CounterRecord",
    "Counters",
    "ExclusivePublication",
    "FragmentBatch",
    "FrameWalk",
    "Header",
    "IdleStrategy",
    "Image",
    "Message",
    "NoOpIdleStrategy",
    "Pending",
    "Poller",
    "Publication",
    "ReconnectingClient",
    "ReconnectingPublication",
    "ReconnectingSubscription",
    "RecordedBlock",
    "RecordingReader",
    "SleepingIdleStrategy",
    "Subscription",
    "Watcher",
    "YieldingIdleStrategy",
    "connect",
]

ImageHandler = Callable[[Image], object]
CounterHandler = Callable[[int, int], object]
_Added = TypeVar("_Added")

# How often to ask again for an endpoint that is being closed.
_CLOSING_RETRY_S = 0.001


class Client(EitherClosing):
    """A connection to a media driver, made with :meth:`connect`.

    Thread-safe. A context manager that closes the client; ``async with`` does so without blocking the event loop.
    What was made with a client keeps it open, so a client that is merely dropped goes with the last of its
    publications and subscriptions.

    Handlers given to a client run on its conductor thread, one at a time. They may close things, but a call that
    would wait for the driver is refused there with :class:`headrace.ReentrantError`. What a handler raises goes to
    ``sys.unraisablehook``.
    """

    def __init__(self, core: _core.Client, directory: str) -> None:
        self._client = core
        self._directory = directory

    @classmethod
    def connect(
        cls,
        directory: str | os.PathLike[str] | None = None,
        *,
        config: ClientConfig | None = None,
        driver: LocalDriver | None = None,
        use_invoker: bool = False,
        on_error: Callable[[HeadraceError], object] | None = None,
        on_close: Callable[[], object] | None = None,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
        on_available_counter: CounterHandler | None = None,
        on_unavailable_counter: CounterHandler | None = None,
        on_publication_error: Callable[[RegistrationError], object] | None = None,
        **settings: Unpack[ClientSettings],
    ) -> Self:
        """Connect to the driver of a directory, waiting for one to start.

        Blocks without the GIL for at most ``driver_timeout_ms``; Ctrl-C ends the wait. After a second without a
        driver, a warning of the logger ``headrace.client`` says what it waits for.

        Args:
            directory: The driver's directory; ``AERON_DIR`` or the default of the specification if not given.
            config: All settings as one object; keywords override it.
            driver: A driver in this process, instead of a directory. One in invoker mode is run while this client
                waits for it. Also a node of a simulated world; see :mod:`headrace.testing`.
            use_invoker: No conductor thread: the program calls :meth:`invoke`, at least every few seconds.
            on_error: Told of faults that no caller is waiting for; by default they are logged as errors of
                ``headrace.client``, which stderr shows if the program does not set up ``logging``.
            on_close: Called when the client has closed, for any reason.
            on_available_image: For subscriptions that are added without their own.
            on_unavailable_image: For subscriptions that are added without their own.
            on_available_counter: Called with registration id and counter id of a new counter.
            on_unavailable_counter: Called with both ids of a counter that was freed.
            on_publication_error: Called when a subscriber rejects one of this client's publications.
            **settings: See :class:`headrace.ClientConfig`.

        Raises:
            DriverTimeoutError: No driver answers on the directory.
            ConfigError: A setting is wrong.
            ClientError: The driver's files cannot be used.
        """
        rule = "is not a setting of a client, see headrace.ClientConfig"
        check_names(settings, ClientConfig.__dataclass_fields__, rule, others=_KEYWORDS)
        config = dataclasses.replace(config or ClientConfig(), **settings)
        if directory is None:
            directory = driver.directory if driver is not None else config.directory
        where = directory_text(default_directory() if directory is None else directory)
        handlers = {
            "on_error": on_error or _events.fault,
            "on_close": on_close,
            "on_available_image": _events.on_image(on_available_image, "available", always=True),
            "on_unavailable_image": _events.on_image(on_unavailable_image, "unavailable", always=True),
            "on_available_counter": on_available_counter,
            "on_unavailable_counter": on_unavailable_counter,
            "on_publication_error": on_publication_error,
        }
        with _events.await_driver(where, config.driver_timeout_ms):
            core = _core.Client.connect(
                where,
                settings=config.to_texts(),
                handlers=handlers,
                use_invoker=use_invoker,
                driver=None if driver is None else driver._driver,
            )
        CLIENT.info("headrace client: connected: directory=%s client_id=%d", where, core.client_id)
        return cls(core, where)

    def add_publication(self, channel: str, stream_id: int) -> Publication:
        """Add a publication that any number of threads, clients and processes may share.

        Blocks without the GIL until the driver answers, at most ``driver_timeout_ms``. Subscribers connect later:
        see ``Publication.wait_until_connected``.

        Args:
            channel: Where the stream goes, for example ``"aeron:ipc"`` or ``"aeron:udp?endpoint=127.0.0.1:40123"``.
            stream_id: Which flow on the channel; subscribers use the same.

        Raises:
            RegistrationError: The driver refused, with the reason.
            DriverTimeoutError: The driver did not answer.
            ClosedError: The client is closed.
            ConfigError: A number is longer than 32 bits.
            ReentrantError: Called from one of this client's handlers.
        """
        check_channel(channel)
        return _once_endpoint_closed(lambda: self._client.add_publication(channel, stream_id))

    def add_exclusive_publication(self, channel: str, stream_id: int) -> ExclusivePublication:
        """Add a publication with a session and log of its own and one writer at a time, which makes it faster.

        Blocks and raises as :meth:`add_publication`.
        """
        check_channel(channel)
        return _once_endpoint_closed(lambda: self._client.add_exclusive_publication(channel, stream_id))

    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> Subscription:
        """Add a subscription to every publisher of a channel and stream.

        Blocks and raises as :meth:`add_publication`.

        Args:
            channel: The channel of the publishers; port 0 lets the system choose one, see
                ``Subscription.resolved_endpoint``.
            stream_id: Which flow on the channel.
            on_available_image: Called with the :class:`headrace.Image` of a new publisher, on the conductor thread.
            on_unavailable_image: Called with the image of a publisher that is gone, whose last position can still be
                read.
        """
        available = _events.on_image(on_available_image, "available")
        unavailable = _events.on_image(on_unavailable_image, "unavailable")
        check_channel(channel)
        return _once_endpoint_closed(
            lambda: self._client.add_subscription(channel, stream_id, available, unavailable)
        )

    def add_counter(self, type_id: int, key: bytes = b"", label: str = "") -> Counter:
        """Allocate a counter that lives until it, or this client, is closed.

        Blocks and raises as :meth:`add_publication`.

        Args:
            type_id: What kind of counter; numbers from 1000 are free for applications.
            key: At most 112 bytes, whose meaning depends on the type.
            label: Text for people, at most 380 ASCII characters.
        """
        return self._client.add_counter(type_id, key, label)

    def add_static_counter(
        self, type_id: int, registration_id: int, key: bytes = b"", label: str = ""
    ) -> Counter:
        """Allocate a counter that lives as long as the driver, or find it if it is there already.

        Args:
            type_id: What kind of counter.
            registration_id: Chosen by the program; together with the type it names the counter.
            key: At most 112 bytes.
            label: Text for people, at most 380 ASCII characters.
        """
        return self._client.add_static_counter(type_id, key, label, registration_id)

    def request_publication(self, channel: str, stream_id: int) -> Pending[Publication]:
        """Ask for a publication without waiting for the driver; ``await`` it, or poll it.

        For programs with a loop that must not stand still; see :class:`headrace.client.Pending`. Arguments as for
        :meth:`add_publication`.

        Raises:
            ClosedError: The client is closed.
            ConfigError: A number is longer than 32 bits.
        """
        check_channel(channel)
        return Pending(lambda: self._client.request_publication(channel, stream_id))

    def request_exclusive_publication(self, channel: str, stream_id: int) -> Pending[ExclusivePublication]:
        """Ask for an exclusive publication without waiting for the driver; ``await`` it, or poll it.

        Arguments as for :meth:`add_exclusive_publication`. Raises as :meth:`request_publication`.
        """
        check_channel(channel)
        return Pending(lambda: self._client.request_exclusive_publication(channel, stream_id))

    def request_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> Pending[Subscription]:
        """Ask for a subscription without waiting for the driver; ``await`` it, or poll it.

        Images may be told of before the subscription is taken. Arguments as for :meth:`add_subscription`. Raises as
        :meth:`request_publication`.
        """
        available = _events.on_image(on_available_image, "available")
        unavailable = _events.on_image(on_unavailable_image, "unavailable")
        check_channel(channel)
        return Pending(lambda: self._client.request_subscription(channel, stream_id, available, unavailable))

    def request_counter(self, type_id: int, key: bytes = b"", label: str = "") -> Pending[Counter]:
        """Ask for a counter without waiting for the driver; ``await`` it, or poll it.

        Arguments as for :meth:`add_counter`. Raises as :meth:`request_publication`.
        """
        return Pending(lambda: self._client.request_counter(type_id, key, label))

    @property
    def counters(self) -> Counters:
        """All counters of the driver and its clients."""
        return Counters(self._client)

    @property
    def directory(self) -> str:
        """Directory of the driver."""
        return self._directory

    @property
    def client_id(self) -> int:
        """Identifies this client to its driver."""
        return self._client.client_id

    @property
    def is_closed(self) -> bool:
        """True once the client ended: closed by this program, or because the driver is gone."""
        return self._client.is_closed

    def next_correlation_id(self) -> int:
        """A number that no other client of the driver gets."""
        return self._client.next_correlation_id()

    def next_available_session_id(self, stream_id: int) -> int:
        """A session id that no publication of the stream uses. Blocks until the driver answers."""
        return self._client.next_available_session_id(stream_id)

    def invoke(self) -> int:
        """Run one turn of the conductor; only with ``use_invoker=True``. Handlers run inside this call.

        Returns:
            How much was done; 0 when there was nothing to do.

        Raises:
            ConfigError: The client has a conductor thread.
            ClosedError: The client is closed, or ended because the driver is gone.
        """
        return self._client.invoke()

    def close(self) -> None:
        """Close everything made with this client and leave the driver. Waits for the conductor, without the GIL.

        Closing again does nothing. Publications then answer ``CLOSED``, polls raise
        :class:`headrace.ClosedError`.

        Raises:
            ReentrantError: Called from one of this client's handlers.
        """
        try:
            is_first = not self._client.is_closed
        except ForkError:
            # It runs in the parent; a forked child has nothing to close.
            return
        self._client.close()
        if is_first:
            CLIENT.info("headrace client: closed: directory=%s", self._directory)

    def __repr__(self) -> str:
        try:
            state = ", closed" if self.is_closed else ""
        except ForkError:
            state = ", made before a fork"
        return f"Client(directory={self._directory!r}{state})"


@overload
def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: LocalDriver | None = None,
    reconnect: Literal[False] = False,
    **settings: Unpack[ClientSettings],
) -> Client: ...
@overload
def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: LocalDriver | None = None,
    reconnect: Literal[True],
    on_disconnect: Callable[[HeadraceError], object] | None = None,
    on_reconnect: Callable[[ReconnectingClient], object] | None = None,
    **settings: Unpack[ClientSettings],
) -> ReconnectingClient: ...
def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: LocalDriver | None = None,
    reconnect: bool = False,
    on_disconnect: Callable[[HeadraceError], object] | None = None,
    on_reconnect: Callable[[ReconnectingClient], object] | None = None,
    **settings: Unpack[ClientSettings],
) -> Client | ReconnectingClient:
    """Connect to the driver of a directory, waiting for one to start: short for :meth:`Client.connect`.

    Args:
        directory: As for :meth:`Client.connect`.
        driver: As for :meth:`Client.connect`.
        reconnect: Connect again when the driver ended and another one started in the directory; publications and
            subscriptions then come back. The first driver is waited for as without it.
        on_disconnect: Given the reason when the driver ended. With ``reconnect`` only, as the next; both run on a
            thread of the client and may call anything.
        on_reconnect: Called with the client when its publications and subscriptions are back.
        **settings: See :class:`headrace.ClientConfig`.

    Raises:
        DriverTimeoutError: No driver answers on the directory.
        ConfigError: A setting is wrong.
        ClientError: The driver's files cannot be used.
    """
    if not reconnect:
        if on_disconnect is not None or on_reconnect is not None:
            name = "on_reconnect" if on_disconnect is None else "on_disconnect"
            raise wrong(name, on_disconnect or on_reconnect, "is only called with reconnect=True")
        return Client.connect(directory, driver=driver, **settings)
    if driver is not None:
        # The next driver is another object, in the same directory.
        directory = driver.directory
    return ReconnectingClient(
        lambda on_close: Client.connect(directory, on_close=on_close, **settings),
        on_disconnect=on_disconnect,
        on_reconnect=on_reconnect,
    )


# What else a misspelt keyword may have been meant for.
_KEYWORDS = [name for each in (Client.connect, connect) for name in each.__kwdefaults__ or ()]


def _once_endpoint_closed(add: Callable[[], _Added]) -> _Added:
    """What `add` gives, asking again while the driver is still closing the endpoint that a program just left.

    Without this a program that closes a subscription and adds it again at once is refused now and then.
    """
    deadline = time.monotonic() + CLOSING_TIMEOUT_S
    while True:
        try:
            return add()
        except RegistrationError as refusal:
            if refusal.code != TEMPORARILY_UNAVAILABLE or time.monotonic() > deadline:
                raise
        # The driver has no event for it; its sockets are closed within a turn of its agents.
        time.sleep(_CLOSING_RETRY_S)


# Exit hooks run last to first: archives end, then clients, then drivers; then daemon threads are held where they are.
# Finalizers end the drivers, from one hook of `weakref` that the process's first finalizer registers: this one, before
# the clients' hook. A client whose driver went first would say so on stderr.
atexit.register(_core.hold_threads)
weakref.finalize(Client, int)
# Ends the conductors before the interpreter, and with them the calls into Python that they make.
atexit.register(_core.close_clients)

_publish(__name__, globals(), __all__)
