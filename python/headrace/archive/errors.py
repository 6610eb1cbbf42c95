"""What can go wrong in an archive's files and requests, and the numbers the protocol has for it."""

from __future__ import annotations

from dataclasses import dataclass

from headrace._exceptions import ArchiveError, HeadraceError
from headrace._named_number import NamedNumber

__all__ = [
    "ArchiveError",
    "ArchiveFileError",
    "CatalogError",
    "ErrorCode",
    "MarkFileError",
    "RequestError",
    "SegmentError",
    "SessionFailure",
]


class ErrorCode(NamedNumber):
    """Why an archive refused a request: :attr:`headrace.ArchiveError.code`."""

    GENERIC = 0
    ACTIVE_LISTING = 1
    ACTIVE_RECORDING = 2
    ACTIVE_SUBSCRIPTION = 3
    UNKNOWN_SUBSCRIPTION = 4
    UNKNOWN_RECORDING = 5
    UNKNOWN_REPLAY = 6
    MAX_REPLAYS = 7
    MAX_RECORDINGS = 8
    INVALID_EXTENSION = 9
    AUTHENTICATION_REJECTED = 10
    STORAGE_SPACE = 11
    UNKNOWN_REPLICATION = 12
    UNAUTHORISED_ACTION = 13
    REPLICATION_CONNECTION_FAILURE = 14
    EMPTY_RECORDING = 15
    INVALID_POSITION = 16


class ArchiveFileError(HeadraceError):
    """A file of an archive is damaged, missing, or used by another archive."""


class CatalogError(ArchiveFileError):
    """The catalog cannot be used; the text names the place and the reason."""


class MarkFileError(ArchiveFileError):
    """The mark file cannot be used, or another archive is running on the directory."""


class SegmentError(ArchiveFileError):
    """A segment file is missing, too short or damaged."""


class RequestError(Exception):
    """A request is refused; the control session turns it into the protocol's answer."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class SessionFailure:
    """Why a recording or a replay ended before it should; its client is told the code and the text."""

    code: ErrorCode
    text: str
    is_clients_doing: bool = False
    """Whether the client can do better; otherwise it is a failure of the archive."""
    cause: Exception | None = None
