"""Why the archive refuses a request, or ends a session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.archive.errors import SegmentError
from headrace.archive.protocol.codes import ErrorCode

__all__ = ["RequestError", "SessionFailure", "refused_as"]


class RequestError(Exception):
    """Refuses a request; the control session turns this into the protocol's answer."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def refused_as(code: ErrorCode) -> Iterator[None]:
    """Turn errors of the archive's files into a refusal with a code.

    Raises:
        RequestError: The files do not allow the request.
    """
    try:
        yield
    except SegmentError as wrong:
        raise RequestError(code, str(wrong)) from None


@dataclass(frozen=True, slots=True)
class SessionFailure:
    """Why a recording or a replay ended early; its client gets the code and the text."""

    code: ErrorCode
    text: str
    is_clients_doing: bool = False
    """Whether the client can do better; otherwise it is a failure of the archive."""
    cause: Exception | None = None
