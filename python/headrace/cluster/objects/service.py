"""The service that carries out the commands of an object.

Whether a call is carried out, refused or forgotten follows from the log, and not from the class that reads it: in each
leadership term the service of the leader announces its commands and its limit of clients as a message to the cluster
itself. From that entry on the announcement decides, on each member and in each replay. Older logs and snapshots have no
announcements; in those the class decides until the first.

    term begins ── undecided calls are left unanswered, and sent again ── announcement ── all calls are decided
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import ConfigError
from headrace._base.extras import needs
from headrace.cluster.errors import ClusterError
from headrace.cluster.objects.commands import Command, Commands, StateLayout, encoded
from headrace.cluster.objects.layout import (
    CLIENT_ID_LENGTH,
    WINDOW,
    Answer,
    AnswerKind,
    Request,
    RequestKind,
    Terms,
    decode_request,
    decode_terms,
)
from headrace.cluster.objects.results import Results
from headrace.cluster.protocol.header import HEADER_LENGTH
from headrace.cluster.service.callbacks import HandlerRaised, handled
from headrace.cluster.service.clustered_service import ClusteredService
from headrace.cluster.service.log_adapter import ContainerError

with needs("objects"):
    import msgspec

if TYPE_CHECKING:
    from headrace.cluster.service.cluster import Cluster
    from headrace.cluster.service.session import ClientSession

__all__ = ["ObjectService", "current_cluster"]

_CHUNK_LENGTH = 32 * 1024
# The longest that the stream of any client takes.
_ANSWER_MAX = (16 << 20) - HEADER_LENGTH
# What the control stream between a service and its consensus module takes at its default length.
_TERMS_MAX = 16 * 1024 - HEADER_LENGTH
_current: contextvars.ContextVar[Cluster] = contextvars.ContextVar("headrace_cluster")


class _Stored(msgspec.Struct, array_like=True):
    """A snapshot."""

    kind: str
    state: bytes
    clients: list[tuple[bytes, int, dict[int, bytes]]]
    terms: Terms | None = None
    awaits_terms: bool = False


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
        clients_max: The most clients whose answers are kept; beyond that, the one that was not heard for longest is
            forgotten. If it comes back, its calls fail with :class:`ForgottenError`: none is carried out twice. A
            changed value applies from the next leadership term on, which each start begins.

    Attributes:
        object: The object.
        undecodable_count: How many messages were not from a client of an object.

    Raises:
        TypeError: `instance` is a class.
        ConfigError: The class has no command, or an attribute that is not annotated, or one whose value would
            change in a snapshot.
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
        self._results = Results()
        self._cluster: Cluster | None = None
        self._own_terms = Terms(type(instance).__qualname__, self._commands.digests, clients_max)
        self._announcement = encoded(
            Request(RequestKind.COMMANDS, bytes(CLIENT_ID_LENGTH), arguments=encoded(self._own_terms))
        )
        if len(self._announcement) > _TERMS_MAX:
            rule = f"must have fewer commands: their names and digests must be at most {_TERMS_MAX} bytes"
            raise ConfigError(f"{self._own_terms.kind}: {rule}", "instance", self._own_terms.kind, rule)
        self._terms: Terms | None = None
        self._awaits_terms = False
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
        self._terms, self._awaits_terms = stored.terms, stored.awaits_terms

    def on_take_snapshot(self) -> Iterator[bytes]:
        """See :class:`ClusteredService`. The object then goes on with the state in the snapshot.

        Raises:
            ConfigError: A value of the object would change in the snapshot.
        """
        state = self._layout.stored(self.object)
        # What compares alike may still differ: one list in two attributes is two, and the order of a set another.
        # At once, not when the first chunk is asked for: where in the log this happens must not go by the archive.
        self._layout.restore(self.object, state)
        kind, clients = type(self.object).__qualname__, self._results.stored()
        whole = encoded(_Stored(kind, state, clients, self._terms, self._awaits_terms))
        return (whole[begin : begin + _CHUNK_LENGTH] for begin in range(0, len(whole), _CHUNK_LENGTH))

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """See :class:`ClusteredService`."""
        request = decode_request(message)
        if request is None or (session is None) != (request.kind is RequestKind.COMMANDS):
            self.undecodable_count += 1
            return
        if session is None:
            self._take_terms(request)
            return
        answer = self._answer(request)
        if answer is not None:
            self._send(session, request, answer)

    def on_new_leadership_term(self, *values: Any) -> None:
        """See :class:`ClusteredService`. One announcement for each term, whatever is known: a replay makes as many."""
        assert self._cluster is not None
        self._awaits_terms = True
        self._cluster.offer(self._announcement)

    def _take_terms(self, request: Request) -> None:
        terms = decode_terms(request.arguments)
        # Of another object in the same cluster.
        if terms is not None and terms.kind == self._own_terms.kind:
            self._terms, self._awaits_terms = terms, False

    @staticmethod
    def _send(session: ClientSession, request: Request, answer: bytes) -> None:
        """Send an answer. If there is no room for it, the client sends the call again, and is answered then."""

        # Not kept: what is kept must not go by the channel of one client.
        def instead(longest: int) -> bytes:
            text = f"was carried out, and its result cannot be sent: {_too_long(answer, longest)}"
            return _encoded(request, AnswerKind.RAISED, ("ResultTooLongError", text))

        session._offer_or(answer, instead)

    def _answer(self, request: Request) -> bytes | None:
        if request.kind is RequestKind.CLOSE:
            self._results.close(request.client_id)
            return None
        if request.kind is RequestKind.OPEN:
            self._results.open(request.client_id, (self._terms or self._own_terms).clients_max)
            # It asks again until the calls that it has are decided upon as it will hear.
            return None if self._awaits_terms else _encoded(request, AnswerKind.OK, None)
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
            known = self._carried_out(request)
            if known is None:
                return None
            calls.answers[request.command_id] = known
        return known

    def _command(self, request: Request) -> Command | None:
        """The command of a call, if the log says that there is one.

        Raises:
            ContainerError: This class lacks the command that the class which wrote the log carried out.
        """
        command, terms = self._commands.get(request.name), self._terms
        if terms is None:
            return command
        digest = terms.commands.get(request.name)
        if digest is None:
            return None
        if command is None or command.digest != digest:
            assert self._cluster is not None
            what = "has no" if command is None else "has another"
            raise ContainerError(
                f"the log has a call of the command {request.name!r} at log_position={self._cluster.log_position}, and "
                f"class {terms.kind} {what} such command now, so the state would differ. Start the "
                "version of the class that wrote the log, end it with a snapshot (headrace cluster shutdown), then "
                "start this one"
            )
        return command

    def _carried_out(self, request: Request) -> bytes | None:
        if self._awaits_terms and self._terms is not None:
            # The term that has begun may have other commands than the one before: the client asks again.
            return None
        command = self._command(request)
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
                answer = _encoded(request, AnswerKind.OK, result)
        except HandlerRaised as raised:
            failure = raised.failure
            return _encoded(request, AnswerKind.RAISED, (type(failure).__name__, _text_of(failure)))
        finally:
            _current.reset(token)
        if len(answer) > _ANSWER_MAX:
            # No stream takes it: the same for every client, on every member.
            text = f"was carried out, and its result cannot be sent: {_too_long(answer, _ANSWER_MAX)}"
            return _encoded(request, AnswerKind.RAISED, ("ResultTooLongError", text))
        return answer

    def __repr__(self) -> str:
        return f"ObjectService({type(self.object).__qualname__}, clients={len(self._results)})"


def _text_of(failure: BaseException) -> str:
    """The text of a failure, fit to be sent. The exception's own code makes the text, and may itself fail."""
    try:
        text = str(failure)
    except Exception as another:
        return f"no text, because its str() raises {type(another).__name__}"
    return text.encode(errors="replace").decode()


def _too_long(answer: bytes, longest: int) -> str:
    return f"an answer of {len(answer)} bytes, where the client's stream takes at most {longest}"


def _encoded(request: Request, kind: AnswerKind, value: object) -> bytes:
    return encoded(Answer(kind, request.client_id, request.command_id, encoded(value)))
