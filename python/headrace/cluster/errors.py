"""The errors of a cluster.

ClusterError                       a cluster, or a member of it, cannot carry out a request
├── ClusterFileError               a file of a cluster's directory is damaged, or does not allow a change
├── ClusterTimeoutError            (also TimeoutError) no answer in time
├── ClusterAuthenticationError     the cluster does not accept a client's credentials
├── SessionClosedError             the cluster has closed a client's session, or is lost
├── ServiceError                   a service failed at a message, or its answer is too long; has .log_position
└── AdminRequestError              the cluster refused a client's administrative request; has .code
"""

from __future__ import annotations

from headrace._base.exceptions import HeadraceError

__all__ = [
    "AdminRequestError",
    "ClusterAuthenticationError",
    "ClusterError",
    "ClusterFileError",
    "ClusterTerminalError",
    "ClusterTimeoutError",
    "ServiceError",
    "SessionClosedError",
]


class ClusterError(HeadraceError):
    """A cluster, or a member of it, cannot carry out a request; the text says why."""


class ClusterFileError(ClusterError):
    """A file of a cluster's directory is damaged, or does not allow a change."""


class ClusterTerminalError(ClusterError):
    """A member cannot continue: its log, its archive or a service is in a wrong state."""


class ClusterTimeoutError(ClusterError, TimeoutError):
    """The cluster did not answer in time; the text names the awaited answer."""


class ClusterAuthenticationError(ClusterError):
    """The cluster does not accept this client's credentials, or the client has none."""


class SessionClosedError(ClusterError):
    """The session has ended, and not because this program closed it. Connect again for a new one.

    Messages that were sent before and not answered may have been carried out.

    Attributes:
        detail: The cluster's reason, such as ``TIMEOUT``; empty if it sent none.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class ServiceError(ClusterError):
    """A handler of the service raised, or its answer is too long for this client's stream; the text is the service's.

    The session stays open. Changes that the handler made before it raised stay.

    Attributes:
        log_position: The log position after the entry that the service handled.
    """

    def __init__(self, message: str, log_position: int = 0) -> None:
        super().__init__(message)
        self.log_position = log_position


class AdminRequestError(ClusterError):
    """The cluster refused an administrative request.

    Attributes:
        code: A :class:`headrace.cluster.AdminResponseCode`, as a number.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
