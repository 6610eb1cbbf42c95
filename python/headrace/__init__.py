"""Headrace: messages between processes and machines at memory speed, compatible with Aeron.

::

    import headrace

    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
        subscription = client.add_subscription("aeron:ipc", 1001)
        publication = client.add_publication("aeron:ipc", 1001)
        publication.offer_blocking(b"hello")
        print(subscription.receive(timeout_s=5).payload)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import (
    ActiveDriverError,
    ArchiveError,
    ArchiveTimeoutError,
    AuthenticationError,
    ClientError,
    ClosedError,
    ConfigError,
    DriverError,
    DriverTimeoutError,
    ForkError,
    HeadraceError,
    MaxPositionExceededError,
    MissingExtraError,
    PublicationClosedError,
    PublicationError,
    PublicationTimeoutError,
    ReentrantError,
    RegistrationError,
    RemoteError,
    RequestError,
    RequestTimeoutError,
    ServerLostError,
)
from headrace._base.names import publish as _publish
from headrace._base.results import Action, OfferResult, accepted
from headrace._base.signals import exit_on_sigterm
from headrace._settings.config import default_directory
from headrace._settings.keywords import ClientConfig, DriverConfig
from headrace.client import (
    BackoffIdleStrategy,
    BatchResult,
    BlockingIdleStrategy,
    BusySpinIdleStrategy,
    Claim,
    Client,
    Counter,
    CounterRecord,
    Counters,
    ExclusivePublication,
    FragmentBatch,
    Header,
    IdleStrategy,
    Image,
    Message,
    MessageFilter,
    NoOpIdleStrategy,
    Poller,
    Publication,
    RecordedFrames,
    RecordingReader,
    SleepingIdleStrategy,
    Subscription,
    YieldingIdleStrategy,
    connect,
)
from headrace.driver import MediaDriver
from headrace.driver import __version__ as __version__

if TYPE_CHECKING:
    from headrace import aio as aio
    from headrace import cluster as cluster
    from headrace import event_log as event_log
    from headrace import rpc as rpc
    from headrace import sbe as sbe
    from headrace import security as security
    from headrace import spark as spark
    from headrace import testing as testing
    from headrace import tools as tools
    from headrace.archive import Archive, ArchiveServer, ArchivingMediaDriver
    from headrace.rpc import Requester, Server

__all__ = [
    "Action",
    "ActiveDriverError",
    "Archive",
    "ArchiveError",
    "ArchiveServer",
    "ArchiveTimeoutError",
    "ArchivingMediaDriver",
    "AuthenticationError",
    "BackoffIdleStrategy",
    "BatchResult",
    "BlockingIdleStrategy",
    "BusySpinIdleStrategy",
    "Claim",
    "Client",
    "ClientConfig",
    "ClientError",
    "ClosedError",
    "ConfigError",
    "Counter",
    "CounterRecord",
    "Counters",
    "DriverConfig",
    "DriverError",
    "DriverTimeoutError",
    "ExclusivePublication",
    "ForkError",
    "FragmentBatch",
    "Header",
    "HeadraceError",
    "IdleStrategy",
    "Image",
    "MaxPositionExceededError",
    "MediaDriver",
    "Message",
    "MessageFilter",
    "MissingExtraError",
    "NoOpIdleStrategy",
    "OfferResult",
    "Poller",
    "Publication",
    "PublicationClosedError",
    "PublicationError",
    "PublicationTimeoutError",
    "RecordedFrames",
    "RecordingReader",
    "ReentrantError",
    "RegistrationError",
    "RemoteError",
    "RequestError",
    "RequestTimeoutError",
    "Requester",
    "Server",
    "ServerLostError",
    "SleepingIdleStrategy",
    "Subscription",
    "YieldingIdleStrategy",
    "accepted",
    "connect",
    "default_directory",
    "exit_on_sigterm",
]

# Loaded when they are first used: most programs do without them.
_ARCHIVE = frozenset(("Archive", "ArchiveServer", "ArchivingMediaDriver"))
_RPC = frozenset(("Requester", "Server"))
_PACKAGES = frozenset(
    ("aio", "archive", "cluster", "event_log", "rpc", "sbe", "security", "spark", "testing", "tools")
)


def __getattr__(name: str) -> Any:
    if name in _ARCHIVE:
        from headrace import archive

        return getattr(archive, name)
    if name in _RPC:
        from headrace import rpc

        return getattr(rpc, name)
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")


_publish(__name__, globals(), __all__)
