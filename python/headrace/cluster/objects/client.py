"""An object of a cluster, called like a local one."""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from headrace._base.closing import Closing
from headrace._base.fork import is_own
from headrace.client import Client
from headrace.cluster.client.local_node import driver_directory, named_node
from headrace.cluster.client.settings import ClusterClientConfig, ClusterClientSettings
from headrace.cluster.errors import ClusterTimeoutError
from headrace.cluster.objects.calls import Call, Calls
from headrace.cluster.objects.commands import Command, Commands

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from headrace.client._local_driver import LocalDriver

__all__ = ["CALL_TIMEOUT_S", "ObjectClient", "too_late"]

T = TypeVar("T")
CALL_TIMEOUT_S = 30.0


class _Proxy:
    """Has the commands of a class as methods."""

    def __init__(self, commands: Commands, call: Callable[..., Any]) -> None:
        self._kind = commands.kind.__qualname__
        self._names = tuple(commands)
        for name in commands:
            setattr(self, name, _bound(commands[name], call))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self._kind}.{name} is not a command; the commands are {', '.join(self._names)}. A client cannot see the "
            "state: to read it, give the class a method with @command that returns it",
            name=name,
            obj=self,
        )


def _bound(made: Command, call: Callable[..., Any]) -> Callable[..., Any]:
    def command(*args: Any, **kwargs: Any) -> Any:
        return call(made.name, args, kwargs)

    command.__name__ = command.__qualname__ = made.name
    command.__doc__ = made.text
    command.__signature__ = made.signature  # type: ignore[attr-defined]
    return command


class ObjectClient(Closing, Generic[T]):
    """A client of a replicated object, made with :meth:`connect`.

    Each call is carried out once, even if leaders and sessions are lost. It blocks until a service has answered.
    Thread-safe: one call at a time. A context manager that closes it.

    Attributes:
        object: The object: the commands of its class, as methods.
    """

    def __init__(self, calls: Calls, commands: Commands, owned: Client | None, timeout_s: float) -> None:
        """Called by :meth:`connect`."""
        self._calls = calls
        self._owned = owned
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self.object: T = cast(T, _Proxy(commands, self._call))

    @classmethod
    def connect(
        cls,
        kind: type[T],
        client: Client | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        node_directory: str | os.PathLike[str] | None = None,
        driver: LocalDriver | None = None,
        config: ClusterClientConfig | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
        chance: random.Random | None = None,
        **settings: Unpack[ClusterClientSettings],
    ) -> ObjectClient[T]:
        """Connect to the service of an object.

        Blocks without the GIL until the service knows this client.

        Args:
            kind: The class of the object, with methods that are commands.
            client: The client of the driver to use; without it this makes one and closes it.
            directory: The driver's directory, if there is no `client`.
            node_directory: The directory of a node on this machine, instead of the driver's: its mark file names the
                driver. Both channels are then ``aeron:ipc`` by default.
            driver: The driver, if it runs in this process and there is no `client`.
            config: Where the cluster is; keywords override it.
            timeout_s: How long this, and each call, may take.
            chance: Generates the id of this client; by default the system's random numbers.
            **settings: See :class:`headrace.cluster.ClusterClientConfig`.

        Raises:
            ClusterTimeoutError: No service has answered; the text says why.
            ClusterAuthenticationError: The cluster does not accept the credentials.
            TypeError: `kind` is not a class.
            ConfigError: A setting is wrong, or the class has no commands.
            ClusterFileError: No node has run on `node_directory`.
        """
        commands = Commands(kind)
        directory = driver_directory(node_directory, directory, client, driver, config, settings)
        made = ClusterClientConfig.of(config, **settings)
        owned = None
        if client is None:
            with named_node(node_directory):
                client = owned = Client.connect(directory, driver=driver)
        connected = cls(
            Calls(client, made, commands, chance or random.SystemRandom()), commands, owned, timeout_s
        )
        try:
            connected._open()
        except BaseException:
            connected.close()
            raise
        return connected

    def _open(self) -> None:
        calls = self._calls
        deadline = calls.deadline(self._timeout_s)
        while not calls.is_ready:
            calls.step()
            if calls.is_over and calls.failure is not None:
                raise calls.failure
            left_s = deadline.left_s() or 0.0
            if left_s == 0:
                raise too_late("the service of the object has not answered", self._timeout_s, calls)
            if not calls.is_ready:
                calls.wait(left_s)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._lock:
            calls = self._calls
            call = calls.submit(name, args, kwargs)
            try:
                self._await(call)
            finally:
                calls.abandon(call)
        return call.result()

    def _await(self, call: Call) -> None:
        calls = self._calls
        deadline = calls.deadline(self._timeout_s)
        while not call.is_done:
            calls.step()
            left_s = deadline.left_s() or 0.0
            if not call.is_done and left_s == 0:
                raise too_late(
                    f"no answer to {call.command.name}(); the call may still be carried out",
                    self._timeout_s,
                    calls,
                )
            if not call.is_done:
                calls.wait(left_s)

    def close(self) -> None:
        """Leave the cluster. Closing again does nothing, nor does closing in a forked child.

        Waits for a call that another thread makes.
        """
        if not is_own(self._pid):
            return
        with self._lock:
            self._calls.close()
        if self._owned is not None:
            self._owned.close()

    def __repr__(self) -> str:
        return f"ObjectClient({self._calls._commands.kind.__qualname__}, session={self._calls.cluster!r})"


def too_late(what: str, timeout_s: float, calls: Calls) -> ClusterTimeoutError:
    """The error of a time-out, with the known state of the cluster."""
    reason = f": {calls.failure}" if calls.failure is not None else ""
    return ClusterTimeoutError(f"{what}: {timeout_s:g} s are over{reason}")
