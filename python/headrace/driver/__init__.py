"""The media driver, embedded in this process.

The driver moves the messages: it owns the shared logs, the sockets and the counters. One driver serves any number
of clients, in this process and in others, that connect to its directory.
"""

from __future__ import annotations

import dataclasses
import os
import uuid
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace import _core
from headrace._base.checks import check_kind, check_names, check_text, wrong
from headrace._base.closing import Closing
from headrace._base.exceptions import ClosedError
from headrace._base.names import publish as _publish
from headrace._settings.config import default_directory
from headrace._settings.keywords import DriverConfig, DriverSettings
from headrace.clock import SYSTEM_CLOCK
from headrace.driver import _events

if TYPE_CHECKING:
    from typing import Self, Unpack

    from headrace.client import Client
    from headrace.client._keywords import ClientKeywords
    from headrace.clock import Clock

__all__ = ["MediaDriver", "__version__"]

__version__ = _core.__version__


class MediaDriver(Closing):
    """A media driver running in this process.

    Starting takes some milliseconds and returns when clients can connect. Unless ``threading_mode`` is
    ``"INVOKER"`` the driver has native threads of its own, which never need the GIL. Settings come from the
    environment variables of the specification (``AERON_...``), overridden by ``properties``, overridden by
    keywords.

    Thread-safe. A context manager that closes the driver. The logger ``headrace.driver`` is told of its start and end,
    and within a second of what its error log gets, and of changes of state such as an image that timed out.

    Args:
        config: All settings as one object; keywords override it.
        properties: Settings by the specification's property names, such as ``{"aeron.mtu.length": "8k"}``.
        **settings: See :class:`headrace.DriverConfig`. Lengths are bytes, durations carry their unit.

    Raises:
        ConfigError: A setting is wrong or unknown.
        ActiveDriverError: Another driver is running on the directory.
        DriverError: The directory cannot be used, or there is no room for the files.
    """

    def __init__(
        self,
        config: DriverConfig | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        **settings: Unpack[DriverSettings],
    ) -> None:
        self._clock: Clock = SYSTEM_CLOCK
        names = DriverConfig.__dataclass_fields__
        check_names(settings, names, "is not a setting of the media driver, see headrace.DriverConfig")
        check_kind("config", config, DriverConfig, "must be a headrace.DriverConfig")
        config = dataclasses.replace(config or DriverConfig(), **settings)
        if properties is not None:
            config = dataclasses.replace(config, properties={**config.properties, **properties})
        values = config.to_properties()
        values.setdefault("aeron.dir", default_directory())
        for name, value in values.items():
            check_text("property", name)
            if not isinstance(value, str):
                raise wrong(name, value, "must be text, as in a properties file")
            check_text(name, value)
        self._driver = _core.MediaDriver.launch(list(values.items()))
        self._directory = os.fspath(self._driver.directory)
        _events.started(self._directory, self.settings, self._driver.chosen_threading)
        logs = _events.LogsReader.start(self._directory)
        if logs is None:
            _events.doubts(self._driver.doubts)
        # Ends the driver before the interpreter, in whatever order modules go.
        self._finalizer = weakref.finalize(self, _end, self._driver, self._directory, logs, os.getpid())

    @classmethod
    def embedded(
        cls, *, properties: Mapping[str, str] | None = None, **settings: Unpack[DriverSettings]
    ) -> Self:
        """A driver of this process alone: on a directory of its own, deleted when the driver is closed.

        The same settings as for the class, except that ``directory`` defaults to a fresh name beside the default
        directory.
        """
        settings.setdefault("directory", f"{default_directory()}-{uuid.uuid4()}")
        settings.setdefault("dir_delete_on_shutdown", True)
        return cls(properties=properties, **settings)

    @staticmethod
    def property_names() -> frozenset[str]:
        """The properties of the specification that a driver takes, those without effect and older names too."""
        declared = _core.setting_declarations()
        kinds = ("driver", "driver_aliases", "driver_ineffective")
        return frozenset(setting["property"] for kind in kinds for setting in declared[kind])

    def connect(self, **keywords: Unpack[ClientKeywords]) -> Client:
        """A client of this driver: :meth:`headrace.Client.connect` with this driver's directory.

        Raises:
            ClosedError: The driver is closed.
        """
        from headrace.client import Client

        if self.is_closed:
            raise ClosedError(f"media driver is closed: directory={self._directory}")
        return Client.connect(driver=self, **keywords)

    @property
    def directory(self) -> str:
        """Where clients find this driver."""
        return self._directory

    @property
    def settings(self) -> dict[str, str]:
        """Every setting that has an effect, by property name."""
        return dict(self._driver.settings)

    @property
    def is_closed(self) -> bool:
        """True once closed."""
        return not self._finalizer.alive

    @property
    def chosen_threading(self) -> str | None:
        """Which threading mode the driver chose, and for which limit of processors; ``None`` where it had no choice."""
        return self._driver.chosen_threading

    @property
    def is_terminated(self) -> bool:
        """True when the driver should be closed: a client asked for it and may, or an agent failed."""
        return self._driver.is_terminated

    @property
    def failure(self) -> str | None:
        """Why an agent stopped by itself, if one did."""
        return self._driver.failure

    def invoke(self) -> int:
        """Run one duty cycle of every agent; only with ``threading_mode="INVOKER"``. Releases the GIL.

        Returns:
            How much work was done; 0 when there was none.

        Raises:
            ConfigError: The driver has threads of its own.
        """
        work_count = self._driver.invoke()
        if work_count is None:
            mode = self.settings.get("aeron.threading.mode", "")
            raise wrong(
                "threading_mode", mode, 'must be "INVOKER" to invoke the driver: it has threads of its own'
            )
        return work_count

    def close(self) -> None:
        """Stop the agents and, if so set, delete the directory. Waits for the threads, without the GIL.

        Clients that are still connected lose their driver. Closing again does nothing.
        """
        self._finalizer()

    def __repr__(self) -> str:
        return f"MediaDriver(directory={self._directory!r}{', closed' if self.is_closed else ''})"


def _end(driver: _core.MediaDriver, directory: str, logs: _events.LogsReader | None, process_id: int) -> None:
    """Close a driver; in a forked child nothing, because it runs in the parent."""
    if os.getpid() != process_id:
        return
    try:
        driver.close()
    finally:
        if logs is not None:
            logs.close()
    _events.closed(directory)


_publish(__name__, globals(), __all__)
