"""The codes of the archive's protocol."""

from __future__ import annotations

from headrace._base.named_number import NamedNumber

__all__ = ["ErrorCode", "RecordingSignal", "Response", "SourceLocation"]


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


class RecordingSignal(NamedNumber):
    """A change of a recording."""

    START = 0
    STOP = 1
    EXTEND = 2
    REPLICATE = 3
    MERGE = 4
    SYNC = 5
    DELETE = 6
    REPLICATE_END = 7


class SourceLocation(NamedNumber):
    """Where the recorded publisher is: LOCAL on the archive's own driver, REMOTE elsewhere."""

    LOCAL = 0
    REMOTE = 1


class Response(NamedNumber):
    """The codes of a control response."""

    OK = 0
    ERROR = 1
    RECORDING_UNKNOWN = 2
    SUBSCRIPTION_UNKNOWN = 3
