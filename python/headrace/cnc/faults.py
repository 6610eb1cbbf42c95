"""What a reader says when a file is missing or is not what it claims to be."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from headrace._base.exceptions import HeadraceError


class FileFormatError(HeadraceError, ValueError):
    """A file breaks a rule of its format. Nothing of it was used.

    The text names the file, the value found and the rule it breaks, so that a reader of the message needs
    nothing else to act on it.

    Attributes:
        path: The file.
        found: The value found, with its name.
        rule: The rule that it breaks.
    """

    def __init__(self, path: Path, found: str, rule: str) -> None:
        super().__init__(f"{path}: {found}; {rule}")
        self.path = path
        self.found = found
        self.rule = rule


class DriverFileMissingError(HeadraceError, FileNotFoundError):
    """The file does not exist: no driver has used this directory, or it removed the file when it stopped.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, advice: str) -> None:
        super().__init__(f"{path} does not exist; {advice}")
        self.path = path


class DriverFileRefusedError(HeadraceError, PermissionError):
    """The system does not let this program's user read the file.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        owner = ""
        for owned in (path, *path.parents):
            # A directory that may not be entered hides its files.
            with contextlib.suppress(OSError):
                found = owned.stat()
                owner = (
                    f" {owned} has uid={found.st_uid} gid={found.st_gid} mode={found.st_mode & 0o777:04o};"
                )
                break
        super().__init__(
            f"{path}: Permission denied:{owner} this program has uid={os.geteuid()}. Run it as the driver's user, or "
            "with the driver's group and a driver whose umask is 0007"
        )
        self.path = path


class DriverNotReadyError(HeadraceError, TimeoutError):
    """The file is there, but its driver has not finished writing it.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} has version=0; its driver is still starting, or died while it was")
        self.path = path


class DriverGoneError(HeadraceError, ConnectionError):
    """The file is there, but its driver is not: it stopped, or shows no life any more.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, pid: int, heartbeat_age_ms: int | None) -> None:
        how = "has stopped" if heartbeat_age_ms is None else f"has shown no life for {heartbeat_age_ms} ms"
        super().__init__(f"{path}: the driver, process {pid}, {how}; start one with `headrace driver`")
        self.path = path
