"""The calls of one client of an object, over successive sessions. They never wait.

Each call is sent until it is answered: again on a new session, to a new leader, and after a while without an answer.
The service carries it out once: it knows the call by its id.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import ClosedError, ConfigError, ForkError, HeadraceError
from headrace._base.logging import CLUSTER
from headrace.cluster.client.client import ClusterClient
from headrace.cluster.errors import ClusterAuthenticationError, ServiceError
from headrace.cluster.objects.commands import Command, Commands, encoded
from headrace.cluster.objects.errors import CallRefusedError, CommandError, ForgottenError
from headrace.cluster.objects.layout import (
    CLIENT_ID_LENGTH,
    WINDOW,
    Answer,
    AnswerKind,
    Request,
    RequestKind,
    decode_answer,
    decode_value,
)

if TYPE_CHECKING:
    from random import Random

    from headrace.client import Client
    from headrace.clock import Deadline
    from headrace.cluster.client.client import PendingClusterClient
    from headrace.cluster.client.session import ClusterMessage
    from headrace.cluster.client.settings import ClusterClientConfig

__all__ = ["Call", "Calls", "error_of"]

_RETRY_S = 1.0
_FIRST_PAUSE_S = 0.016
_LONGEST_PAUSE_S = 1.0
_MESSAGES_A_STEP = 256
_STEADY_S = 0.05
_BUSY_S = 0.001


class Call:
    """One call. Its owner asks :meth:`result` once :attr:`is_done`."""

    def __init__(self, command_id: int, command: Command, arguments: bytes) -> None:
        self.command_id = command_id
        self.command = command
        self.arguments = arguments
        self.on_done: Callable[[], object] | None = None
        self.answer: Answer | None = None
        self.error: Exception | None = None

    @property
    def is_done(self) -> bool:
        """Whether the answer, or an error, is there."""
        return self.answer is not None or self.error is not None

    def end(self, answer: Answer | None, error: Exception | None = None) -> None:
        """End with the answer, or with the error because of which none will come."""
        self.answer, self.error = answer, error
        if self.on_done is not None:
            self.on_done()

    def result(self) -> Any:
        """What the command returned.

        Raises:
            CommandError: It raised.
            ClusterError: It was carried out, but its result does not fit its annotation.
            CallRefusedError: It was not carried out.
            HeadraceError: It was abandoned, and may have been carried out.
        """
        if self.error is not None:
            raise self.error
        assert self.answer is not None
        if self.answer.kind is AnswerKind.OK:
            return self.command.unpacked_result(self.answer.value)
        raise error_of(self.answer, self.command.name)


def error_of(answer: Answer, name: str) -> Exception:
    """The error for an answer that refuses a call."""
    value = decode_value(answer.value)
    if answer.kind is AnswerKind.RAISED:
        kind, text = value
        return CommandError(f"{name}() raised {kind}: {text}", kind, text)
    return CallRefusedError(f"{name}() was refused: {value}")


class Calls:
    """The calls of a client. Stepped by its owner; used by one thread at a time.

    Args:
        client: The client to use.
        config: Where the cluster is.
        commands: What may be called.
        chance: Generates the id of this client.
    """

    def __init__(
        self, client: Client, config: ClusterClientConfig, commands: Commands, chance: Random
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._config = config
        self._commands = commands
        self._chance = chance
        self._client_id = chance.randbytes(CLIENT_ID_LENGTH)
        self._is_known = False
        self._next_id = 1
        # By id, oldest first. Not plain dicts, in which the oldest is the longer to find the more have gone before it.
        self._calls: OrderedDict[int, Call] = OrderedDict()
        self._to_send: OrderedDict[int, Call] = OrderedDict()
        self._retry = self._clock.deadline(0)
        self._pause_s = 0.0
        self._next_attempt = self._clock.deadline(0)
        self._pending: PendingClusterClient | None = None
        self.cluster: ClusterClient | None = None
        """The session, while there is one."""
        self.failure: HeadraceError | None = None
        """Why the last session ended, or could not be opened."""
        self.is_over = False
        """Whether no session will be opened any more."""

    @property
    def is_ready(self) -> bool:
        """Whether the service knows this client."""
        return self.cluster is not None and self._is_known

    @property
    def wait_s(self) -> float:
        """How long :meth:`step` has nothing to do, unless a message arrives."""
        cluster = self.cluster
        is_steady = cluster is not None and cluster._session.is_steady and not self._to_send
        return _STEADY_S if is_steady else _BUSY_S

    def deadline(self, timeout_s: float) -> Deadline:
        """The deadline of a call that begins now."""
        return self._clock.deadline(timeout_s)

    def submit(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Make a call; it is sent as soon as possible.

        Raises:
            AttributeError: There is no such command.
            TypeError: The arguments are not those of the command.
        """
        command = self._commands.get(name)
        if command is None:
            raise AttributeError(f"{self._commands.kind.__qualname__} has no command {name!r}")
        call = Call(self._next_id, command, command.packed(args, kwargs))
        if self.is_over:
            call.end(None, self.failure or ClosedError("the client of the object is closed"))
            return call
        self._next_id += 1
        self._calls[call.command_id] = call
        self._to_send[call.command_id] = call
        self._send()
        return call

    def abandon(self, call: Call) -> None:
        """Stop waiting for a call. It may be carried out, or may have been."""
        if self._calls.get(call.command_id) is call:
            self._taken(call.command_id)

    def step(self) -> None:
        """Do what can be done now."""
        if self.is_over:
            return
        try:
            if self.cluster is None:
                self._connect()
            else:
                self._converse(self.cluster)
        except (ConfigError, ClusterAuthenticationError, ForkError) as failure:
            self.fail(failure)
        except HeadraceError as failure:
            if self._client.is_closed:
                self.fail(failure)
            else:
                self._lose(failure)

    def wait(self, longest_s: float) -> None:
        """Block without the GIL until a message may have arrived; then call :meth:`step`."""
        wait_s = min(longest_s, self.wait_s)
        if self.cluster is None:
            self._clock.sleep(wait_s)
            return
        with contextlib.suppress(HeadraceError):
            # What ends the session is raised again in the step.
            message = self.cluster.receive(wait_s)
            if message is not None:
                self._accept(message)

    def close(self) -> None:
        """End the session, and have the service forget this client."""
        if self.cluster is not None and self._is_known and not self._calls:
            with contextlib.suppress(HeadraceError):
                self.cluster.offer(encoded(Request(RequestKind.CLOSE, self._client_id)))
        self.fail(ClosedError("the client of the object is closed"))

    def fail(self, failure: Exception) -> None:
        """End all calls with an error, and open no further session."""
        self.is_over = True
        if isinstance(failure, HeadraceError):
            self.failure = failure
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        if self.cluster is not None:
            self.cluster.close()
            self.cluster = None
        self._end_all(failure)

    # --- sessions --------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        if self._pending is None:
            if not self._next_attempt.is_over:
                return
            self._pending = ClusterClient.request(
                self._client, config=self._config, on_new_leader=lambda event: self._send_again()
            )
        connected = self._pending.poll()
        if connected is not None:
            self._pending, self.cluster, self.failure = None, connected, None
            self._pause_s = 0.0
            self._send_again()

    def _lose(self, failure: HeadraceError) -> None:
        """Note that the session has ended, or was not opened: another one is opened after a pause."""
        CLUSTER.info("a client of an object has no session: %s", failure)
        self.failure = failure
        self._pending = None
        if self.cluster is not None:
            self.cluster.close()
            self.cluster = None
        self._next_attempt = self._clock.deadline(self._pause_s)
        self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)

    def _converse(self, cluster: ClusterClient) -> None:
        for _ in range(_MESSAGES_A_STEP):
            try:
                message = cluster.poll_message()
            except ServiceError as failure:
                # At a message that is none of an object's client, or is sent again.
                CLUSTER.warning("the service of an object failed: %s", failure)
                continue
            if message is None:
                break
            self._accept(message)
        if self._calls or not self._is_known:
            if self._retry.is_over:
                self._send_again()
            self._send()

    # --- calls -----------------------------------------------------------------------------------------------------

    def _send_again(self) -> None:
        self._to_send = self._calls.copy()
        self._retry = self._clock.deadline(_RETRY_S)
        if not self._is_known and self.cluster is not None:
            self.cluster.offer(encoded(Request(RequestKind.OPEN, self._client_id)))

    def _send(self) -> None:
        cluster = self.cluster
        if cluster is None or not self._is_known:
            return
        while self._to_send:
            call = next(iter(self._to_send.values()))
            oldest_id = next(iter(self._calls))
            if call.command_id - oldest_id >= WINDOW:
                return
            request = Request(
                RequestKind.CALL,
                self._client_id,
                call.command_id,
                oldest_id,
                call.command.name,
                call.arguments,
            )
            try:
                if not cluster.offer(encoded(request)) > 0:
                    return
            except ConfigError as too_long:
                self._taken(call.command_id)
                call.end(None, CallRefusedError(f"{call.command.name}() was not sent: {too_long}"))
                continue
            self._to_send.popitem(last=False)
            self._retry = self._clock.deadline(_RETRY_S)

    def _accept(self, message: ClusterMessage) -> None:
        answer = decode_answer(message.payload)
        if answer is None or answer.client_id != self._client_id:
            return
        if answer.kind is AnswerKind.FORGOTTEN:
            self._forgotten()
        elif answer.command_id == 0:
            self._is_known = True
            self._send()
        else:
            call = self._taken(answer.command_id)
            if call is not None:
                call.end(answer)

    def _taken(self, command_id: int) -> Call | None:
        """Remove a call: it is no longer sent, and its answer no longer awaited."""
        self._to_send.pop(command_id, None)
        return self._calls.pop(command_id, None)

    def _forgotten(self) -> None:
        """End all calls: which of them were carried out is unknown. Later calls are made under another id."""
        self._end_all(
            ForgottenError("the service has forgotten this client: a call may have been carried out")
        )
        self._client_id, self._is_known = self._chance.randbytes(CLIENT_ID_LENGTH), False
        self._next_id = 1
        self._send_again()

    def _end_all(self, error: Exception) -> None:
        calls, self._calls = self._calls, OrderedDict()
        self._to_send.clear()
        for call in calls.values():
            call.end(None, error)
