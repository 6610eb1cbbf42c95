"""Clients: publications, subscriptions and counters on a media driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.names import publish as _publish
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
    LogPlace,
    Message,
    MessageFilter,
    Publication,
    RecordedBlock,
    RecordedFrames,
    RecordingReader,
    Sequencer,
    SessionSender,
    SessionStreams,
    Subscription,
    Watcher,
    __commit__,
    __version__,
)
from headrace.client._client import Client
from headrace.client._connect import connect
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
from headrace.client._pending import Pending
from headrace.client._reconnecting import ReconnectingClient
from headrace.client._reconnecting_states import ConnectionState
from headrace.client._reconnecting_streams import (
    ReconnectingPublication,
    ReconnectingSubscription,
)

if TYPE_CHECKING:
    from headrace._core import Poller
else:
    from headrace.client._poller import Poller

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
    "LogPlace",
    "Message",
    "MessageFilter",
    "NoOpIdleStrategy",
    "Pending",
    "Poller",
    "Publication",
    "ReconnectingClient",
    "ReconnectingPublication",
    "ReconnectingSubscription",
    "RecordedBlock",
    "RecordedFrames",
    "RecordingReader",
    "Sequencer",
    "SessionSender",
    "SessionStreams",
    "SleepingIdleStrategy",
    "Subscription",
    "Watcher",
    "YieldingIdleStrategy",
    "__commit__",
    "__version__",
    "connect",
]

_publish(__name__, globals(), __all__)
