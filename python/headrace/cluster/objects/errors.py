"""The errors of a replicated object."""

from __future__ import annotations

from headrace.cluster.errors import ClusterError

__all__ = ["CallRefusedError", "CommandError", "ForgottenError"]


class CommandError(ClusterError):
    """The command raised, on every member. Changes that it made before stay.

    Attributes:
        kind: Name of the exception's class, such as ``ValueError``.
        text: The text of the exception.
    """

    def __init__(self, message: str, kind: str = "", text: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.text = text


class CallRefusedError(ClusterError):
    """The call was not carried out.

    The service has no such command, the types of its arguments differ, or the call is too long to send.
    """


class ForgottenError(ClusterError):
    """The service has forgotten this client. The call may have been carried out. Later calls work again."""
