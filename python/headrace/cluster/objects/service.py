"""The service that carries out the commands of an object."""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headrace._exceptions import ConfigError
from headrace._extras import needs
from headrace.cluster.errors import ClusterError
from headrace.cluster.objects.commands import Command, Commands, StateLayout, encoded
from headrace.cluster.objects.layout import WINDOW, Answer, AnswerKind, Request, RequestKind, decode_request
from headrace.cluster.objects.results import Results
from headrace.cluster.service.callbacks import HandlerRaised, handled
from headrace.cluster.service.clustered_service import ClusteredService

with needs("objects"):
    import msgspec

if TYPE_CHECKING:
    from headrace.cluster.service.cluster import Cluster
    from headrace.cluster.service.session import ClientSession

__all__ = ["ObjectService", "current_cluster"]

_CHUNK_LENGTH = 32 * 1024
_current: contextvars.ContextVar[Cluster] = contextvars.ContextVar("headrace_cluster")


class _Stored(msgspec.Struct, array_like=True):
    """A snapshot."""

    kind: str
    state: bytes
    clients: list[tuple[bytes, int, dict[int, bytes]]]


_SNAPSHOTS = msgspec.msgpack.Decoder(_Stored)


def current_cluster() -> Cluster:
    """The cluster of the command that calls this; the time of a command is ``current_cluster().time``.

    Raises:
        ClusterError: No command is being carried out.
    """
    cluster = _current.get(None)
    if cluster is None:
        raise ClusterError(
            "current_cluster() must be called in a method with @command that a service carries out"
        )
    return cluster


class ObjectService(ClusteredService):
    """Carries out the commands of an object, each once, whatever clients send again.

    The state of the object is its annotated attributes, of types that msgspec knows: numbers, text, bytes, dates,
    lists, dicts, sets, dataclasses and more. It goes into snapshots, with the last answers to each client.

    Args:
        instance: The object, in the state that a new cluster begins with. Its class has methods with ``@command``,
            which depend on their arguments and its state alone: no clock, no random numbers, no files.
        clients_max: Most clients whose answers are kept; the one that was not heard for longest is forgotten. It is
            told so if it comes back, and its calls fail: none is carried out twice.

    Attributes:
        object: The object.
        undecodable_count: Messages that were not of a client of objects.

    Raises:
        TypeError: A class is given, and not an object.
        ConfigError: The class has no command, or an attribute that is not annotated, or one whose value would be
            another after a snapshot.
    """

    def __init__(self, instance: object, *, clients_max: int = 10_000) -> None:
        if clients_max < 1:
            rule = "must be at least 1"
            raise ConfigError(f"clients_max={clients_max}: {rule}", "clients_max", str(clients_max), rule)
        if isinstance(instance, type):
            name = instance.__qualname__
            raise TypeError(f"instance={instance!r}: must be the object, and not its class: give {name}()")
        self.object = instance
        self._commands = Commands(type(instance))
        self._layout = StateLayout(type(instance))
        self._layout.check(instance)
        self._results = Results(clients_max)
        self._cluster: Cluster | None = None
        self.undecodable_count = 0

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        """See :class:`ClusteredService`."""
        self._cluster = cluster
        if snapshot is None:
            return
        name = type(self.object).__qualname__
        try:
            stored = _SNAPSHOTS.decode(b"".join(snapshot))
            if stored.kind != name:
                raise ClusterError(
                    f"the snapshot is of an object of class {stored.kind}, and this is a {name}"
                )
            self._layout.restore(self.object, stored.state)
        except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
            raise ClusterError(f"the snapshot is not one of class {name}: {wrong}") from None
        self._results.restore(stored.clients)

    def on_take_snapshot(self) -> Iterator[bytes]:
        """See :class:`ClusteredService`. The object then goes on with the state in the snapshot.

        Raises:
            ConfigError: A value of the object would be another one after a start with the snapshot.
        """
        state = self._layout.stored(self.object)
        # What compares alike may still differ: one list in two attributes is two, and the order of a set another.
        # At once, not when the first chunk is asked for: where in the log this happens must not go by the archive.
        self._layout.restore(self.object, state)
        whole = encoded(_Stored(type(self.object).__qualname__, state, self._results.stored()))
        return (whole[begin : begin + _CHUNK_LENGTH] for begin in range(0, len(whole), _CHUNK_LENGTH))

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """See :class:`ClusteredService`."""
        request = decode_request(message)
        if session is None or request is None:
            self.undecodable_count += 1
            return
        answer = self._answer(request)
        if answer is not None:
            self._send(session, request, answer)

    @staticmethod
    def _send(session: ClientSession, request: Request, answer: bytes) -> None:
        """An answer that finds no room is asked for again by the client, and given then."""
        try:
            session.offer(answer)
        except ConfigError as too_long:
            # Not kept: what is kept must not go by the channel of one client.
            text = f"was carried out, and its result cannot be sent: {too_long}"
            session.offer(_encoded(request, AnswerKind.RAISED, ("ResultTooLongError", text)))

    def _answer(self, request: Request) -> bytes | None:
        if request.kind is RequestKind.CLOSE:
            self._results.close(request.client_id)
            return None
        if request.kind is RequestKind.OPEN:
            self._results.open(request.client_id)
            return _encoded(request, AnswerKind.OK, None)
        calls = self._results.heard(request.client_id)
        if calls is None:
            return _encoded(request, AnswerKind.FORGOTTEN, "the service has forgotten this client")
        calls.advance(request.oldest_id)
        if request.command_id < calls.oldest_id:
            # It was answered, and the client has the answer.
            return None
        if request.command_id - calls.oldest_id >= WINDOW:
            return _encoded(request, AnswerKind.REFUSED, f"{WINDOW} calls or more ahead of the oldest one")
        known = calls.answers.get(request.command_id)
        if known is None:
            known = calls.answers[request.command_id] = self._carried_out(request)
        return known

    def _carried_out(self, request: Request) -> bytes:
        command = self._commands.get(request.name)
        if command is None:
            text = f"{type(self.object).__qualname__} has no command {request.name[:80]!r}"
            return _encoded(request, AnswerKind.REFUSED, text)
        try:
            arguments = command.unpacked(request.arguments)
        except Exception as wrong:
            # Also what a value nested too deep raises.
            return _encoded(request, AnswerKind.REFUSED, f"{command.name}(): {wrong}")
        return self._called(request, command, arguments)

    def _called(self, request: Request, command: Command, arguments: dict[str, object]) -> bytes:
        assert self._cluster is not None
        token = _current.set(self._cluster)
        try:
            with handled():
                result = getattr(self.object, command.name)(**arguments)
                return _encoded(request, AnswerKind.OK, result)
        except HandlerRaised as raised:
            failure = raised.failure
            return _encoded(request, AnswerKind.RAISED, (type(failure).__name__, _text_of(failure)))
        finally:
            _current.reset(token)

    def __repr__(self) -> str:
        return f"ObjectService({type(self.object).__qualname__}, clients={len(self._results)})"


def _text_of(failure: BaseException) -> str:
    """What a failure says, as a text that can be sent. Its own code makes that, which may fail as well."""
    try:
        text = str(failure)
    except Exception as another:
        return f"no text: its str() raises {type(another).__name__}"
    return text.encode(errors="replace").decode()


def _encoded(request: Request, kind: AnswerKind, value: object) -> bytes:
    return encoded(Answer(kind, request.client_id, request.command_id, encoded(value)))
