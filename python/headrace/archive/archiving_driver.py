"""A media driver and an archive on it, started and stopped together."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headrace._base.closing import Closing
from headrace.archive.client.archive import Archive
from headrace.archive.server.archive_server import ArchiveServer
from headrace.archive.server.config import ArchiveConfig
from headrace.driver import MediaDriver

if TYPE_CHECKING:
    from typing import Self, Unpack

    from headrace._base.exceptions import ArchiveError
    from headrace._settings.keywords import ArchiveSettings, DriverConfig
    from headrace.archive.client.settings import ArchiveClientConfig, ArchiveClientSettings
    from headrace.archive.client.signals import Signal
    from headrace.client import Client

__all__ = ["ArchivingMediaDriver"]


class ArchivingMediaDriver(Closing):
    """A media driver with an archive, in this process. A context manager that closes both.

    Args:
        driver_config: Settings of the driver.
        archive_config: Settings of the archive; keywords override it.
        driver_properties: Settings of the driver by property names.
        archive_properties: Settings of the archive by property names.
        **archive_settings: See :class:`headrace.archive.ArchiveConfig`. Without a ``control_channel`` the archive
            serves only clients of its own driver.

    Attributes:
        driver: The driver.
        archive: The archive, an :class:`ArchiveServer`.

    Raises:
        ConfigError: A setting is wrong.
        ActiveDriverError: Another driver runs on the directory.
        ArchiveFileError: Another archive runs on the directory, or a file is damaged.
    """

    # What is deleted at the end.
    _made: str | None = None

    def __init__(
        self,
        driver_config: DriverConfig | None = None,
        archive_config: ArchiveConfig | None = None,
        *,
        driver_properties: Mapping[str, str] | None = None,
        archive_properties: Mapping[str, str] | None = None,
        **archive_settings: Unpack[ArchiveSettings],
    ) -> None:
        self.driver = MediaDriver(driver_config, properties=driver_properties)
        self._serve(archive_config, archive_properties, archive_settings)

    def _serve(
        self,
        config: ArchiveConfig | None,
        properties: Mapping[str, str] | None,
        settings: ArchiveSettings,
    ) -> None:
        # The archive is on this driver, whatever directory the environment names for others.
        settings.setdefault("aeron_directory", self.driver.directory)
        try:
            self.archive = ArchiveServer(config, properties=properties, driver=self.driver, **settings)
        except BaseException:
            self.driver.close()
            raise

    @classmethod
    def embedded(cls, **archive_settings: Unpack[ArchiveSettings]) -> Self:
        """Start a driver for this process only. Its files, and the archive's, are in temporary directories.

        They are deleted at the end. With ``archive_directory``, or ``AERON_ARCHIVE_DIR`` in the environment, the
        archive's files are in that directory and stay.
        """
        self = cls.__new__(cls)
        self.driver = MediaDriver.embedded(threading_mode="SHARED")
        if not archive_settings.get("control_channel"):
            archive_settings.setdefault("control_channel_enabled", False)
        named = {**ArchiveConfig.from_environment(os.environ), **archive_settings}
        if named.get("archive_directory") is None:
            self._made = archive_settings["archive_directory"] = tempfile.mkdtemp(prefix="headrace-archive-")
        try:
            self._serve(None, None, archive_settings)
        except BaseException:
            self._delete_made()
            raise
        return self

    def connect(self) -> Client:
        """A client of the driver."""
        return self.driver.connect()

    def connect_archive(
        self,
        client: Client | None = None,
        *,
        config: ArchiveClientConfig | None = None,
        on_signal: Callable[[Signal], object] | None = None,
        on_error: Callable[[ArchiveError], object] | None = None,
        **settings: Unpack[ArchiveClientSettings],
    ) -> Archive:
        """A session with the archive: :meth:`headrace.Archive.connect`."""
        return Archive.connect(
            client, driver=self.driver, config=config, on_signal=on_signal, on_error=on_error, **settings
        )

    @property
    def directory(self) -> str:
        """The driver's directory."""
        return self.driver.directory

    def close(self) -> None:
        """Stop the archive, then the driver. Closing again does nothing."""
        self.archive.close()
        self.driver.close()
        self._delete_made()

    def _delete_made(self) -> None:
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)

    def __repr__(self) -> str:
        return f"ArchivingMediaDriver({self.driver!r}, {self.archive!r})"
