"""Sessions with archives that answer requests, and replays from them, in the processes of Spark.

A process keeps its driver and its session for the next task or look, until something goes wrong.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.exceptions import (
    ArchiveError,
    ArchiveTimeoutError,
    AuthenticationError,
    ClientError,
    DriverError,
    DriverTimeoutError,
    HeadraceError,
    PublicationError,
    RegistrationError,
)
from headrace._base.own_address import own_address
from headrace.archive import Archive, ArchiveFileError, ErrorCode
from headrace.channel import ChannelUri
from headrace.client import Client
from headrace.security import FileCredentials
from headrace.spark._option_values import refuse
from headrace.spark._own_driver import OwnDriver

if TYPE_CHECKING:
    from headrace.archive import Replay
    from headrace.client import Image
    from headrace.spark._archive_options import ArchiveService
    from headrace.spark._ranges import RecordingRange

__all__ = ["RangeReplay", "close_sessions", "replayed", "requests"]

_CLIENT_NAME = "headrace-spark"
_WAIT_S = 0.05
# What goes wrong with an archive or the way to it, and not with what a caller does meanwhile.
_FAILURES = (
    ArchiveError,
    ArchiveFileError,
    ClientError,
    DriverError,
    DriverTimeoutError,
    PublicationError,
    RegistrationError,
)


@dataclass(frozen=True, slots=True)
class _Session:
    archive: Archive
    replay_channel: str
    resources: ExitStack


_sessions: dict[ArchiveService, _Session] = {}


@contextmanager
def requests(service: ArchiveService, what: str) -> Iterator[Archive]:
    """A session with the archive, to do ``what``.

    Raises:
        ArchiveError: The archive refused or cannot be reached; says what was to be done. The next attempt begins with
            a new session.
    """
    with _attempt(service, what) as session:
        yield session.archive


class RangeReplay:
    """The replay of one range, as the archive sends it."""

    def __init__(self, replay: Replay, image: Image, part: RecordingRange, timeout_s: float) -> None:
        self.image = image
        self._replay = replay
        self._limit = part.limit
        self._timeout_s = timeout_s
        self._position = part.first
        self._deadline = replay.clock.deadline(timeout_s)

    def check(self, position: int) -> None:
        """Called when nothing came after ``position``, where the reader is: is there still something to wait for?

        Raises:
            ArchiveError: The replay ended.
            ArchiveTimeoutError: The archive has sent nothing for too long.
        """
        if self._replay.has_ended:
            self._replay.confirm_end()
            text = (
                f"it ended at position={position}, and when the query was planned, {self._limit} was recorded: the "
                "recording was truncated or purged meanwhile"
            )
            raise ArchiveError(text, recording_id=self._replay.recording_id)
        if position > self._position:
            self._position, self._deadline = position, self._replay.clock.deadline(self._timeout_s)
        elif self._deadline.is_over:
            text = f"nothing came after position={position} for {self._timeout_s:g} s (option timeoutMs)"
            raise ArchiveTimeoutError(text, recording_id=self._replay.recording_id)


@contextmanager
def replayed(service: ArchiveService, part: RecordingRange) -> Iterator[RangeReplay]:
    """A replay of what it takes to read a range, stopped at the end.

    Raises:
        ArchiveError: The archive refused, or ended the replay early.
        ArchiveTimeoutError: The archive is not there, or sends nothing.
    """
    what = f"replay recording_id={part.recording_id} from position={part.first} to {part.limit}"
    with (
        _attempt(service, what) as session,
        _start(session, service, part) as replay,
    ):
        try:
            while (image := replay.image) is None:
                replay.subscription.wait_until_connected(_WAIT_S)
                _ = replay.has_ended  # raises when the replay cannot begin any more
            yield RangeReplay(replay, image, part, service.timeout_s)
        except _FAILURES:
            # With the session gone, ending the replay waits for no answer: what went wrong is known.
            session.archive.close()
            raise


def _start(session: _Session, service: ArchiveService, part: RecordingRange) -> Replay:
    clock = session.archive.clock
    deadline = clock.deadline(service.timeout_s)
    while True:
        try:
            return session.archive.replay(
                part.recording_id,
                position=part.first,
                length=part.limit - part.first,
                channel=session.replay_channel,
                stream_id=service.replay_stream_id,
            )
        except ArchiveError as refusal:
            # Other tasks have all there are, and will end.
            if refusal.code != ErrorCode.MAX_REPLAYS or deadline.is_over:
                raise
        clock.sleep(_WAIT_S)


@contextmanager
def _attempt(service: ArchiveService, what: str) -> Iterator[_Session]:
    try:
        yield _session(service)
    except _FAILURES as failure:
        _forget(service)
        text = f"cannot {what}: {service}: {failure}{_advice(service, failure)}"
        kind = ArchiveTimeoutError if isinstance(failure, TimeoutError) else ArchiveError
        code, name = (failure.code, failure.code_name) if isinstance(failure, ArchiveError) else (-1, "")
        raise kind(text, code, name, getattr(failure, "recording_id", None)) from failure


def _advice(service: ArchiveService, failure: HeadraceError) -> str:
    if isinstance(failure, ArchiveError) and failure.code == ErrorCode.MAX_REPLAYS:
        return (
            ". Each task takes one: raise aeron.archive.max.concurrent.replays, or give tasks more to do "
            "(option bytesPerPartition)"
        )
    if isinstance(failure, AuthenticationError):
        return " (option credentialsFile)"
    if isinstance(failure, DriverTimeoutError):
        return " (option aeronDirectory; without it every process starts a driver of its own)"
    if not isinstance(failure, ArchiveTimeoutError):
        return ""
    return (
        f". Waited timeoutMs={service.timeout_s * 1000:.0f}. Is an archive running with this control channel and "
        f"stream, and does it reach this host at {service.response_channel or _own_channel(service)}? "
        "(Options controlResponseChannel and replayChannel)"
    )


def _session(service: ArchiveService) -> _Session:
    kept = _sessions.get(service)
    if kept is not None and not kept.archive.is_connected:
        _forget(service)
        kept = None
    if kept is None:
        kept = _sessions[service] = _open(service)
    return kept


def _open(service: ArchiveService) -> _Session:
    own_channel = _own_channel(service)
    with ExitStack() as resources:
        if service.aeron_directory is None:
            own = OwnDriver()
            resources.callback(own.close)
            client = own.driver.connect(client_name=_CLIENT_NAME)
        else:
            client = Client.connect(service.aeron_directory, client_name=_CLIENT_NAME)
        resources.callback(client.close)
        archive = Archive.connect(
            client,
            control_channel=service.control_channel,
            control_stream_id=service.control_stream_id,
            response_channel=service.response_channel or own_channel,
            response_stream_id=service.response_stream_id,
            message_timeout_s=service.timeout_s,
            client_name=_CLIENT_NAME,
            credentials=b""
            if service.credentials_file is None
            else FileCredentials(service.credentials_file),
        )
        resources.callback(archive.close)
        return _Session(archive, service.replay_channel or own_channel, resources.pop_all())


def _own_channel(service: ArchiveService) -> str:
    """Where this process listens by default: its address as the archive sees it, on a free port."""
    control = ChannelUri(service.control_channel)
    if control.media == "ipc":
        return "aeron:ipc"
    try:
        own = own_address(control.get("endpoint") or "")
    except (OSError, ValueError) as failure:
        refuse(
            "controlChannel", service.control_channel, f"its endpoint is not an address and a port: {failure}"
        )
    return f"aeron:udp?endpoint={own}:0"


def _forget(service: ArchiveService) -> None:
    kept = _sessions.pop(service, None)
    if kept is not None:
        # The reason why it is left is told; what goes wrong now adds nothing to it.
        with contextlib.suppress(HeadraceError):
            kept.resources.close()


@atexit.register
def close_sessions() -> None:
    """End all sessions that this process keeps, and their drivers."""
    for service in list(_sessions):
        _forget(service)
