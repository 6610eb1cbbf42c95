"""The first line of most programs: `headrace.connect`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, overload

from headrace import _core
from headrace._base.checks import wrong
from headrace.client._client import Client
from headrace.client._local_driver import check_driver
from headrace.client._reconnecting import ReconnectingClient
from headrace.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    import os
    from typing import Unpack

    from headrace._base.exceptions import HeadraceError
    from headrace.client._keywords import ClientKeywords
    from headrace.client._local_driver import LocalDriver

__all__ = ["connect"]


@overload
def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: LocalDriver | None = None,
    reconnect: Literal[False] = False,
    **keywords: Unpack[ClientKeywords],
) -> Client: ...
@overload
def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: LocalDriver | None = None,
    reconnect: Literal[True],
    on_disconnect: Callable[[HeadraceError], object] | None = None,
    on_reconnect: Callable[[ReconnectingClient], object] | None = None,
    **keywords: Unpack[ClientKeywords],
) -> ReconnectingClient: ...
def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: LocalDriver | None = None,
    reconnect: bool = False,
    on_disconnect: Callable[[HeadraceError], object] | None = None,
    on_reconnect: Callable[[ReconnectingClient], object] | None = None,
    **keywords: Unpack[ClientKeywords],
) -> Client | ReconnectingClient:
    """Connect to the driver of a directory, waiting for one to start: short for :meth:`Client.connect`.

    Args:
        directory: As for :meth:`Client.connect`.
        driver: As for :meth:`Client.connect`. With ``reconnect`` it must have threads of its own: not a driver in
            invoker mode, and not a node of a simulated world.
        reconnect: Connect again when the driver ended and another one started in the directory; publications and
            subscriptions then come back. Does not change how long this call waits for the first driver.
        on_disconnect: Called with the reason when the driver ended. Like `on_reconnect` only with ``reconnect``; both
            run on a thread of the client and may call anything.
        on_reconnect: Called with the client when its publications and subscriptions are back.
        **keywords: See :meth:`Client.connect`.

    Raises:
        DriverTimeoutError: No driver answers on the directory.
        ConfigError: A setting is wrong.
        ClientError: The driver's files cannot be used.
    """
    if not reconnect:
        if on_disconnect is not None or on_reconnect is not None:
            name = "on_reconnect" if on_disconnect is None else "on_disconnect"
            raise wrong(name, on_disconnect or on_reconnect, "is only called with reconnect=True")
        return Client.connect(directory, driver=driver, **keywords)
    check_driver(driver)
    if driver is not None:
        if driver._clock is not SYSTEM_CLOCK:
            rule = "a reconnecting client has its own thread, and all nodes of a world share one"
            raise wrong("reconnect", reconnect, rule)
        if _is_invoked(driver):
            rule = (
                "a reconnecting client runs no driver, and this one is in invoker mode: give it threads, as with "
                'threading_mode="SHARED", or connect without reconnect'
            )
            raise wrong("reconnect", reconnect, rule)
        # The next driver is another object, in the same directory.
        directory = driver.directory
    handler = keywords.get("on_close")
    if handler is not None:
        raise wrong("on_close", handler, "is not called with reconnect=True; on_disconnect is")

    def connect_again(on_close: Callable[[], object]) -> Client:
        again: ClientKeywords = {**keywords, "on_close": on_close}
        return Client.connect(directory, **again)

    return ReconnectingClient(connect_again, on_disconnect=on_disconnect, on_reconnect=on_reconnect)


def _is_invoked(driver: LocalDriver) -> bool:
    """Whether a driver has no threads, and runs only while its program or one of its clients runs it."""
    core = driver._driver
    return isinstance(core, _core.MediaDriver) and dict(core.settings)["aeron.threading.mode"] == "INVOKER"
