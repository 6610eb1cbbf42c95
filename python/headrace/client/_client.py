"""A connection to a media driver."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from headrace import _core
from headrace._base.checks import check_kind, check_names, wrong
from headrace._base.closing import EitherClosing
from headrace._base.exceptions import DriverTimeoutError, ForkError, RegistrationError
from headrace._base.logging import CLIENT
from headrace._settings.config import default_directory, directory_text
from headrace._settings.keywords import ClientConfig
from headrace.client import _events
from headrace.client._counters import Counters
from headrace.client._keywords import KEYWORDS, ClientKeywords, ClientOptions, options_of
from headrace.client._local_driver import check_driver
from headrace.client._pending import CLOSING_TIMEOUT_S, TEMPORARILY_UNAVAILABLE, Pending
from headrace.client._program_name import program_name
from headrace.client._reserved import STREAMS, check_stream
from headrace.client._start import is_now
from headrace.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from typing import Self, Unpack

    from headrace._core import Counter, ExclusivePublication, Publication, Subscription
    from headrace.client._keywords import ImageHandler
    from headrace.client._local_driver import LocalDriver
    from headrace.client._start import Start

__all__ = ["Client"]

_Added = TypeVar("_Added")

# How often to ask again for an endpoint that is being closed.
_CLOSING_RETRY_S = 0.001
_NO_SETTING = "is not a setting of a client, see headrace.ClientConfig"


class Client(EitherClosing):
    """A connection to a media driver, made with :meth:`connect`.

    Thread-safe. A context manager that closes the client; ``async with`` does so without blocking the event loop.
    Its publications and subscriptions keep a client open: one that the program merely drops ends with the last of them.

    The handlers of a client run on its conductor thread, one at a time. They may close things, but calls that would
    wait for the driver raise :class:`headrace.ReentrantError` there. Exceptions that a handler raises go to
    ``sys.unraisablehook``.
    """

    def __init__(self, core: _core.Client, directory: str, clock: Clock) -> None:
        self._client = core
        self._directory = directory
        self._clock = clock
        self._counters = Counters(core)
        # Of an archive or of a cluster's member, whose streams it adds.
        self._is_part = False

    @classmethod
    def connect(
        cls,
        directory: str | os.PathLike[str] | None = None,
        *,
        config: ClientConfig | None = None,
        driver: LocalDriver | None = None,
        **keywords: Unpack[ClientKeywords],
    ) -> Self:
        """Connect to the driver of a directory, waiting for one to start.

        Blocks without the GIL for at most ``driver_timeout_ms``; Ctrl-C ends the wait. After a second without a
        driver, a warning of the logger ``headrace.client`` says what it waits for.

        Args:
            directory: The driver's directory; by default ``AERON_DIR``, or else the default of the specification.
            config: All settings as one object; keywords override it.
            driver: A driver in this process, instead of a directory. While this client waits, it runs a driver that is
                in invoker mode. Also a node of a simulated world; see :mod:`headrace.testing`.
            use_invoker: Start no conductor thread: the program calls :meth:`invoke`, at least every few seconds.
            clock: A clock of the program, only with ``use_invoker=True`` and a `driver` in invoker mode. All time-outs
                use it, and a waiting call sleeps on it for a millisecond between two looks. The sign of life between
                driver and client still uses the machine's time of day. By default the clock of the machine; a node of a
                simulated world brings its own.
            on_error: Called with each failure that no caller waits for. By default they are logged as errors of
                ``headrace.client``, which stderr shows if the program does not set up ``logging``.
            on_close: Called when the client has closed, for any reason.
            on_available_image: Default handler for subscriptions that are added without one.
            on_unavailable_image: Default handler for subscriptions that are added without one.
            on_available_counter: Called with registration id and counter id of a new counter.
            on_unavailable_counter: Called with both ids of a counter that was freed.
            on_publication_error: Called when a subscriber rejects one of this client's publications.
            **keywords: ``use_invoker``, ``clock`` and the seven handlers above, and settings: see
                :class:`headrace.ClientConfig`.

        Raises:
            DriverTimeoutError: No driver answers on the directory.
            ConfigError: A setting is wrong.
            ClientError: The driver's files cannot be used.
        """
        options = options_of(keywords)
        settings = {name: value for name, value in keywords.items() if name not in options}
        check_names(settings, ClientConfig.__dataclass_fields__, _NO_SETTING, others=KEYWORDS)
        check_kind("config", config, ClientConfig, "must be a headrace.ClientConfig")
        check_driver(driver)
        config = dataclasses.replace(config or ClientConfig(), **settings)  # type: ignore[arg-type]
        if directory is None:
            directory = driver.directory if driver is not None else config.directory
        where = directory_text(default_directory() if directory is None else directory)
        clock = _clock_of(driver, options)
        handlers = _handlers_of(options, where)
        # On another clock than the machine's the user does not wait, so no warning is needed. Nor has such a client the
        # name of its process: a simulated world must be the same each time.
        if clock is SYSTEM_CLOCK:
            config = dataclasses.replace(config, client_name=config.client_name or program_name())
            handlers["on_no_driver"] = functools.partial(_events.no_driver, where, config.driver_timeout_ms)
        try:
            core = _core.Client.connect(
                where,
                settings=config.to_texts(),
                handlers=handlers,
                use_invoker=options.get("use_invoker", False),
                driver=None if driver is None else driver._driver,
                clock=options.get("clock"),
            )
        except DriverTimeoutError as absent:
            raise DriverTimeoutError(f"{absent}; {_events.how_to_start_a_driver(where)}") from None
        CLIENT.info("headrace client: connected: directory=%s client_id=%d", where, core.client_id)
        return cls(core, where, clock)

    def _check(self, channel: str, stream_id: int) -> None:
        """Warn of a stream that belongs to an archive or a cluster on this driver."""
        if stream_id in STREAMS and not self._is_part:
            check_stream(self.counters, channel, stream_id)

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
            ConfigError: A number does not fit 32 bits.
            ReentrantError: Called from one of this client's handlers.
        """
        self._check(channel, stream_id)
        return _once_endpoint_closed(self._clock, lambda: self._client.add_publication(channel, stream_id))

    def add_exclusive_publication(self, channel: str, stream_id: int) -> ExclusivePublication:
        """Add a publication that shares neither session nor log and has one writer at a time, which makes it faster.

        Blocks and raises as :meth:`add_publication`.
        """
        self._check(channel, stream_id)
        return _once_endpoint_closed(
            self._clock, lambda: self._client.add_exclusive_publication(channel, stream_id)
        )

    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
        start: Start | None = None,
    ) -> Subscription:
        """Add a subscription to every publisher of a channel and stream.

        Blocks and raises as :meth:`add_publication`.

        Args:
            channel: The channel of the publishers; port 0 lets the system choose one, see
                ``Subscription.resolved_endpoint``.
            stream_id: Which flow on the channel.
            on_available_image: Called with the :class:`headrace.Image` of a new publisher, on the conductor thread.
            on_unavailable_image: Called with the image of a publisher that is gone. Its last position can still be
                read.
            start: ``"now"`` skips everything that was published before, also by a publisher that has ended or died. By
                default the driver decides where the subscription joins each stream. Over IPC that is before the
                messages that another reader has not read, or left unread when it closed. Streams of later publishers
                are always read from their beginning.
        """
        available = _events.on_image(on_available_image, "available")
        unavailable = _events.on_image(on_unavailable_image, "unavailable")
        self._check(channel, stream_id)
        starts_now = is_now(start)
        return _once_endpoint_closed(
            self._clock,
            lambda: self._client.add_subscription(channel, stream_id, available, unavailable, starts_now),
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
            registration_id: Chosen by the program; together with the type it identifies the counter.
            key: At most 112 bytes.
            label: Text for people, at most 380 ASCII characters.
        """
        return self._client.add_static_counter(type_id, key, label, registration_id)

    def request_publication(self, channel: str, stream_id: int) -> Pending[Publication]:
        """Ask for a publication without waiting for the driver; ``await`` it, or poll it.

        For programs whose loop must not stall; see :class:`headrace.client.Pending`. Arguments as for
        :meth:`add_publication`.

        Raises:
            ClosedError: The client is closed.
            ConfigError: A number does not fit 32 bits.
        """
        self._check(channel, stream_id)
        return Pending(self._clock, lambda: self._client.request_publication(channel, stream_id))

    def request_exclusive_publication(self, channel: str, stream_id: int) -> Pending[ExclusivePublication]:
        """Ask for an exclusive publication without waiting for the driver; ``await`` it, or poll it.

        Arguments as for :meth:`add_exclusive_publication`. Raises as :meth:`request_publication`.
        """
        self._check(channel, stream_id)
        return Pending(self._clock, lambda: self._client.request_exclusive_publication(channel, stream_id))

    def request_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
        start: Start | None = None,
    ) -> Pending[Subscription]:
        """Ask for a subscription without waiting for the driver; ``await`` it, or poll it.

        Image handlers may run before the program takes the subscription. Arguments as for :meth:`add_subscription`.
        Raises as :meth:`request_publication`.
        """
        available = _events.on_image(on_available_image, "available")
        unavailable = _events.on_image(on_unavailable_image, "unavailable")
        self._check(channel, stream_id)
        starts_now = is_now(start)
        return Pending(
            self._clock,
            lambda: self._client.request_subscription(channel, stream_id, available, unavailable, starts_now),
        )

    def request_counter(self, type_id: int, key: bytes = b"", label: str = "") -> Pending[Counter]:
        """Ask for a counter without waiting for the driver; ``await`` it, or poll it.

        Arguments as for :meth:`add_counter`. Raises as :meth:`request_publication`.
        """
        return Pending(self._clock, lambda: self._client.request_counter(type_id, key, label))

    @property
    def counters(self) -> Counters:
        """All counters of the driver and its clients."""
        return self._counters

    @property
    def directory(self) -> str:
        """Directory of the driver."""
        return self._directory

    @property
    def clock(self) -> Clock:
        """The clock of this client and of everything that uses it: the machine's, a node's, or the program's."""
        return self._clock

    @property
    def client_id(self) -> int:
        """Identifies this client to its driver."""
        return self._client.client_id

    @property
    def is_closed(self) -> bool:
        """True once the client ended: closed by this program, or because the driver is gone."""
        return self._client.is_closed

    def next_correlation_id(self) -> int:
        """Return a number that is unique on the driver."""
        return self._client.next_correlation_id()

    def next_available_session_id(self, stream_id: int) -> int:
        """Return a session id that no publication of the stream uses. Blocks until the driver answers."""
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

    def _keep_alive(self) -> None:
        """Tell the driver that the client lives while its program does not invoke it. Any thread may call it.

        Raises:
            ClosedError: The client is closed.
        """
        self._client.keep_alive()

    def close(self) -> None:
        """Close everything made with this client and leave the driver. Waits for the conductor, without the GIL.

        Closing again does nothing. Offers then return ``CLOSED``, polls raise
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


def _clock_of(driver: LocalDriver | None, options: ClientOptions) -> Clock:
    """The clock of a new client.

    Raises:
        ConfigError: The program set a clock for a client that must use another one.
    """
    clock = options.get("clock")
    own = SYSTEM_CLOCK if driver is None else driver._clock
    if clock is None:
        return own
    if own is not SYSTEM_CLOCK:
        raise wrong("clock", clock, f"does not apply to clients of {driver!r}, which has its own clock")
    if not options.get("use_invoker"):
        rule = "needs use_invoker=True: only the program's thread may read the program's clock"
        raise wrong("clock", clock, rule)
    return clock


def _handlers_of(options: ClientOptions, directory: str) -> dict[str, Any]:
    """The handlers by name; a missing one counts as ``None``."""
    handlers: dict[str, Any] = {name: value for name, value in options.items() if name.startswith("on_")}
    handlers["on_error"] = handlers.get("on_error") or _events.fault
    handlers["on_lost_image"] = _events.on_lost_image(directory)
    for event in ("available", "unavailable"):
        name = f"on_{event}_image"
        handlers[name] = _events.on_image(handlers.get(name), event, always=True)
    return handlers


def _once_endpoint_closed(clock: Clock, add: Callable[[], _Added]) -> _Added:
    """The result of `add`, which is called again while the driver still closes the endpoint that a program just left.

    Without this the driver would sometimes refuse a program that closes a subscription and at once adds it again.
    """
    deadline = clock.deadline(CLOSING_TIMEOUT_S)
    while True:
        try:
            return add()
        except RegistrationError as refusal:
            if refusal.code != TEMPORARILY_UNAVAILABLE or deadline.is_over:
                raise
        # The driver has no event for it; its sockets are closed within a turn of its agents.
        clock.sleep(_CLOSING_RETRY_S)


# Exit hooks run last to first: archives end, then clients, then drivers; then daemon threads are held where they are.
# Finalizers end the drivers, from one hook of `weakref` that the process's first finalizer registers: this one, before
# the clients' hook. A client whose driver went first would say so on stderr.
atexit.register(_core.hold_threads)
weakref.finalize(Client, int)
# Ends the conductors before the interpreter, and with them the calls into Python that they make.
atexit.register(_core.close_clients)
