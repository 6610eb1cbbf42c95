"""What goes wrong in a cluster.

ClusterError                       a cluster, or a member of it, cannot do what it was asked for
├── ClusterFileError               a file of a cluster's directory is damaged, or does not allow what it was asked for
├── ClusterTimeoutError            (also TimeoutError) no answer in time
├── ClusterAuthenticationError     the cluster does not accept who a client says it is
├── SessionClosedError             the cluster has closed a client's session, or is lost
└── AdminRequestError              the cluster refused what a client asked it to do; has .code
"""

from __future__ import annotations

from headrace._exceptions import HeadraceError

__all__ = [
    "AdminRequestError",
    "ClusterAuthenticationError",
    "ClusterError",
    "ClusterFileError",
    "ClusterTerminalError",
    "ClusterTimeoutError",
    "SessionClosedError",
]


class ClusterError(HeadraceError):
    """A cluster, or a member of it, cannot do what it was asked for; the text says why."""


class ClusterFileError(ClusterError):
    """A file of a cluster's directory is damaged, or does not allow what it was asked for."""


class ClusterTerminalError(ClusterError):
    """A member cannot go on at all: its log, its archive or a service is not what it must be."""


class ClusterTimeoutError(ClusterError, TimeoutError):
    """The cluster did not answer in time; the text says what was waited for."""


class ClusterAuthenticationError(ClusterError):
    """The cluster does not accept who this client says it is, or the client cannot say it."""


class SessionClosedError(ClusterError):
    """The session has ended, and not because this program closed it. Connect again for a new one.

    What was sent before and not answered may have been carried out.

    Attributes:
        detail: What the cluster said, such as ``TIMEOUT``; empty where it said nothing.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class AdminRequestError(ClusterError):
    """The cluster refused what a client asked it to do.

    Attributes:
        code: A :class:`headrace.cluster.AdminResponseCode`, as a number.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
