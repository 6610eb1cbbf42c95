"""An object of a cluster, called from coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from headrace import aio
from headrace._base.checks import wrong
from headrace._base.closing import AsyncClosing
from headrace._base.logging import CLUSTER
from headrace.cluster.client.async_client import look_up
from headrace.cluster.client.local_node import driver_directory, named_node
from headrace.cluster.client.settings import ClusterClientConfig, ClusterClientSettings
from headrace.cluster.objects.calls import Calls
from headrace.cluster.objects.client import CALL_TIMEOUT_S, _Proxy, too_late
from headrace.cluster.objects.commands import Commands

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine
    from typing import Unpack

    from headrace.client import Client
    from headrace.client._local_driver import LocalDriver

__all__ = ["AsyncObjectClient"]

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class AwaitedCommands(Protocol):
    """The commands of an object, as methods to await. Type checkers know neither their names nor their types."""

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]: ...


class AsyncObjectClient(AsyncClosing, Generic[T]):
    """A client of a replicated object for asyncio, made with :meth:`connect`.

    Many calls may be in flight. A cancelled call may have been carried out, or may still be.

    Attributes:
        object: The object: its commands, as methods to await. With :meth:`call` type checkers know their types too.
    """

    def __init__(self, calls: Calls, commands: Commands, owned: Client | None, timeout_s: float) -> None:
        """Called by :meth:`connect`."""
        self._calls = calls
        self._commands = commands
        self._owned = owned
        self._timeout_s = timeout_s
        self.object = cast("AwaitedCommands", _Proxy(commands, self._call))
        self._task = asyncio.create_task(self._run())

    @classmethod
    async def connect(
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
    ) -> AsyncObjectClient[T]:
        """See :meth:`headrace.cluster.objects.ObjectClient.connect`."""
        commands = Commands(kind)
        directory = driver_directory(node_directory, directory, client, driver, config, settings)
        made = ClusterClientConfig.of(config, **settings)
        await look_up(made)
        owned = None
        if client is None:
            with named_node(node_directory):
                client = owned = await aio.connect(directory, driver=driver)
        connected = cls(
            Calls(client, made, commands, chance or random.SystemRandom()), commands, owned, timeout_s
        )
        try:
            await connected._open()
        except BaseException:
            await connected.close()
            raise
        return connected

    async def _open(self) -> None:
        calls = self._calls
        deadline = calls.deadline(self._timeout_s)
        while not calls.is_ready:
            if calls.is_over and calls.failure is not None:
                raise calls.failure
            if deadline.is_over:
                raise too_late("the service of the object has not answered", self._timeout_s, calls)
            await asyncio.sleep(calls.wait_s)

    async def _run(self) -> None:
        """Steps the calls, until they are over."""
        calls = self._calls
        try:
            while not calls.is_over:
                calls.step()
                if calls.cluster is None:
                    await asyncio.sleep(calls.wait_s)
                else:
                    await aio.wait_for_messages(calls.cluster._session.subscription, calls.wait_s)
        except Exception as failure:
            # A defect: it ends the calls, and does not disappear with this task.
            CLUSTER.exception("a client of an object cannot go on")
            calls.fail(failure)

    async def call(self, command: Callable[Concatenate[T, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a command, named by its method: ``await client.call(Accounts.deposit, "alice", 10)``.

        The same as ``await client.object.deposit("alice", 10)``, but type checkers check it.

        Args:
            command: The method of the object's class.
            *args: Its arguments.
            **kwargs: Its arguments by name.

        Returns:
            The result of the command.

        Raises:
            ConfigError: The class of the object has no such command.
        """
        name = getattr(command, "__name__", "")
        if getattr(self._commands.kind, name, None) is not command or name not in self._commands:
            kind = self._commands.kind.__qualname__
            rule = f"must be a command of the object's class, such as {kind}.{next(iter(self._commands))}"
            raise wrong("command", command, rule)
        result: R = await self._call(name, args, kwargs)
        return result

    async def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        calls = self._calls
        call = calls.submit(name, args, kwargs)
        if not call.is_done:
            answered = asyncio.Event()
            call.on_done = answered.set
            try:
                async with asyncio.timeout(self._timeout_s):
                    await answered.wait()
            except TimeoutError:
                text = f"no answer to {name}(); the call may still be carried out"
                raise too_late(text, self._timeout_s, calls) from None
            finally:
                calls.abandon(call)
        return call.result()

    async def close(self) -> None:
        """Leave the cluster."""
        self._calls.close()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._owned is not None:
            await aio.close(self._owned)

    def __repr__(self) -> str:
        return f"AsyncObjectClient({self._commands.kind.__qualname__}, session={self._calls.cluster!r})"
