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
from headrace._arguments import checked_class
from headrace._checks import check_kind, check_names, wrong
from headrace._closing import EitherClosing
from headrace._config import default_directory, directory_text
from headrace._exceptions import DriverTimeoutError, ForkError, RegistrationError
from headrace._logging import CLIENT
from headrace._settings import ClientConfig
from headrace.client import _events
from headrace.client._channels import check_channel
from headrace.client._counters import Counters
from headrace.client._keywords import KEYWORDS, ClientKeywords, ClientOptions, options_of
from headrace.client._local_driver import check_driver
from headrace.client._pending import CLOSING_TIMEOUT_S, TEMPORARILY_UNAVAILABLE, Pending
from headrace.client._program_name import program_name
from headrace.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from typing import Self, Unpack

    from headrace._core import Counter, ExclusivePublication, Publication, Subscription
    from headrace.client._keywords import ImageHandler
    from headrace.client._local_driver import LocalDriver

__all__ = ["Client"]

_Added = TypeVar("_Added")

# How often to ask again for an endpoint that is being closed.
_CLOSING_RETRY_S = 0.001
_NO_SETTING = "is not a setting of a client, see headrace.ClientConfig"


@checked_class
class Client(EitherClosing):
    """A connection to a media driver, made with :meth:`connect`.

    Thread-safe. A context manager that closes the client; ``async with`` does so without blocking the event loop.
    What was made with a client keeps it open, so a client that is merely dropped goes with the last of its
    publications and subscriptions.

    Handlers given to a client run on its conductor thread, one at a time. They may close things, but a call that
    would wait for the driver is refused there with :class:`headrace.ReentrantError`. What a handler raises goes to
    ``sys.unraisablehook``.
    """

    def __init__(self, core: _core.Client, directory: str, clock: Clock) -> None:
        self._client = core
        self._directory = directory
        self._clock = clock

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
            directory: The driver's directory; ``AERON_DIR`` or the default of the specification if not given.
            config: All settings as one object; keywords override it.
            driver: A driver in this process, instead of a directory. One in invoker mode is run while this client
                waits, for it or for anything else. Also a node of a simulated world; see :mod:`headrace.testing`.
            use_invoker: No conductor thread: the program calls :meth:`invoke`, at least every few seconds.
            clock: A clock of the program, with ``use_invoker=True`` only, for a driver in invoker mode that is given as
                `driver`: all time-outs go by it, and each look of a call that waits sleeps a millisecond on it. Its
                time of day is not used: driver and client tell each other by that of the machine that they live. By
                default the clock of the machine; a node of a simulated world has one of its own.
            on_error: Told of faults that no caller is waiting for; by default they are logged as errors of
                ``headrace.client``, which stderr shows if the program does not set up ``logging``.
            on_close: Called when the client has closed, for any reason.
            on_available_image: For subscriptions that are added without their own.
            on_unavailable_image: For subscriptions that are added without their own.
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
        # A wait on another clock than the machine's is over at once for its user, and needs no word. Such a client has
        # no name of its process either: a simulated world is the same each time.
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
        check_channel(channel, "publication")
        return _once_endpoint_closed(self._clock, lambda: self._client.add_publication(channel, stream_id))

    def add_exclusive_publication(self, channel: str, stream_id: int) -> ExclusivePublication:
        """Add a publication with a session and log of its own and one writer at a time, which makes it faster.

        Blocks and raises as :meth:`add_publication`.
        """
        check_channel(channel, "publication")
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
        check_channel(channel, "subscription")
        return _once_endpoint_closed(
            self._clock, lambda: self._client.add_subscription(channel, stream_id, available, unavailable)
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
        check_channel(channel, "publication")
        return Pending(self._clock, lambda: self._client.request_publication(channel, stream_id))

    def request_exclusive_publication(self, channel: str, stream_id: int) -> Pending[ExclusivePublication]:
        """Ask for an exclusive publication without waiting for the driver; ``await`` it, or poll it.

        Arguments as for :meth:`add_exclusive_publication`. Raises as :meth:`request_publication`.
        """
        check_channel(channel, "publication")
        return Pending(self._clock, lambda: self._client.request_exclusive_publication(channel, stream_id))

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
        check_channel(channel, "subscription")
        return Pending(
            self._clock, lambda: self._client.request_subscription(channel, stream_id, available, unavailable)
        )

    def request_counter(self, type_id: int, key: bytes = b"", label: str = "") -> Pending[Counter]:
        """Ask for a counter without waiting for the driver; ``await`` it, or poll it.

        Arguments as for :meth:`add_counter`. Raises as :meth:`request_publication`.
        """
        return Pending(self._clock, lambda: self._client.request_counter(type_id, key, label))

    @property
    def counters(self) -> Counters:
        """All counters of the driver and its clients."""
        return Counters(self._client)

    @property
    def directory(self) -> str:
        """Directory of the driver."""
        return self._directory

    @property
    def clock(self) -> Clock:
        """What this client and all that uses it go by: the clock of the machine, of a node, or of the program."""
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


def _clock_of(driver: LocalDriver | None, options: ClientOptions) -> Clock:
    """What a client goes by.

    Raises:
        ConfigError: A clock was given where another one is used.
    """
    clock = options.get("clock")
    own = SYSTEM_CLOCK if driver is None else driver._clock
    if clock is None:
        return own
    if own is not SYSTEM_CLOCK:
        raise wrong("clock", clock, f"is not for clients of {driver!r}, which has a clock of its own")
    if not options.get("use_invoker"):
        rule = (
            "needs use_invoker=True: a clock of the program is asked on the program's thread, and on no other"
        )
        raise wrong("clock", clock, rule)
    return clock


def _handlers_of(options: ClientOptions, directory: str) -> dict[str, Any]:
    """The handlers by name; what was not given is as if it had been given as ``None``."""
    handlers: dict[str, Any] = {name: value for name, value in options.items() if name.startswith("on_")}
    handlers["on_error"] = handlers.get("on_error") or _events.fault
    handlers["on_lost_image"] = _events.on_lost_image(directory)
    for event in ("available", "unavailable"):
        name = f"on_{event}_image"
        handlers[name] = _events.on_image(handlers.get(name), event, always=True)
    return handlers


def _once_endpoint_closed(clock: Clock, add: Callable[[], _Added]) -> _Added:
    """What `add` gives, asking again while the driver is still closing the endpoint that a program just left.

    Without this a program that closes a subscription and adds it again at once is refused now and then.
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
