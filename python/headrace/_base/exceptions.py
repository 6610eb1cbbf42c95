"""The exceptions of Headrace.

HeadraceError
├── ConfigError (also ValueError)           a setting or argument is wrong; nothing was started
├── MissingExtraError (also ImportError)    an optional dependency is not installed; names the pip command
├── DriverError                             the media driver could not start or stopped on a fault
│   └── ActiveDriverError                   another driver is running on the directory
├── DriverTimeoutError (also TimeoutError)  no driver there, or it did not answer in time
├── RegistrationError                       the driver refused; has .code, .code_name and .correlation_id
├── ClientError                             this client ended, or cannot do what was asked
│   ├── ClosedError                         the object, or the client that owns it, is closed
│   ├── ReentrantError                      called from a handler that may not call it, or polled twice at once
│   └── ForkError                           the object was made before os.fork() and is used in the child
├── PublicationError                        from blocking helpers and accepted(); has .result
│   ├── PublicationTimeoutError (also TimeoutError)
│   ├── PublicationClosedError
│   └── MaxPositionExceededError
├── RequestError                            a request has no answer
│   ├── RequestTimeoutError (also TimeoutError)
│   ├── ServerLostError                     the server went away; it may have carried the request out
│   └── RemoteError                         the server's handler raised; the text is the server's
└── ArchiveError                            an archive refused; has .code, .code_name and .recording_id
    ├── ArchiveTimeoutError (also TimeoutError)
    └── AuthenticationError                 the archive does not accept who this client says it is

``offer()`` and ``try_claim()`` raise none of the ``PublicationError`` group: what became of an offer is a value there
(:class:`headrace.OfferResult`), and :func:`headrace.accepted` makes an exception of it.
"""

from __future__ import annotations

__all__ = [
    "ActiveDriverError",
    "ArchiveError",
    "ArchiveTimeoutError",
    "AuthenticationError",
    "ClientError",
    "ClosedError",
    "ConfigError",
    "DriverError",
    "DriverTimeoutError",
    "ForkError",
    "HeadraceError",
    "MaxPositionExceededError",
    "MissingExtraError",
    "PublicationClosedError",
    "PublicationError",
    "PublicationTimeoutError",
    "ReentrantError",
    "RegistrationError",
    "RemoteError",
    "RequestError",
    "RequestTimeoutError",
    "ServerLostError",
]


class HeadraceError(Exception):
    """Base of every exception Headrace raises on purpose."""


class ConfigError(HeadraceError, ValueError):
    """A setting, channel or argument is wrong. Nothing was started, and no file remains.

    Attributes:
        setting: Name of the setting or argument, empty when several are at odds.
        value: What was given, as text.
        rule: What is allowed.
    """

    def __init__(self, message: str, setting: str = "", value: str = "", rule: str = "") -> None:
        super().__init__(message)
        self.setting = setting
        self.value = value
        self.rule = rule


class MissingExtraError(HeadraceError, ImportError):
    """An optional dependency is not installed. The message names the ``pip`` command that installs it.

    Attributes:
        name: The module that is missing.
        extra: The extra of Headrace that brings it, such as ``arrow``.
    """

    def __init__(self, message: str, name: str = "", extra: str = "") -> None:
        super().__init__(message)
        self.name = name
        self.extra = extra


class DriverError(HeadraceError):
    """The media driver could not start, or stopped because of a fault."""


class ActiveDriverError(DriverError):
    """Another media driver is running on the directory."""


class DriverTimeoutError(HeadraceError, TimeoutError):
    """No media driver uses the directory, or it stopped, or it did not answer in time."""


class RegistrationError(HeadraceError):
    """The driver refused to add a publication, subscription, counter or destination.

    Attributes:
        code: The protocol's number for the kind of refusal.
        code_name: The same as a name, for example ``INVALID_CHANNEL``.
        correlation_id: Identifies the request, also in the driver's error log.
    """

    def __init__(self, message: str, code: int = 0, code_name: str = "", correlation_id: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.code_name = code_name
        self.correlation_id = correlation_id


class ClientError(HeadraceError):
    """The client ended, or cannot do what was asked."""


class ClosedError(ClientError):
    """The object, or the client that owns it, is closed."""


class ReentrantError(ClientError):
    """A handler called what it may not call, or two polls of one subscription ran at once."""


class ForkError(ClientError, RuntimeError):
    """The object was made before ``os.fork()`` and used in the child. Connect a new client there."""


class PublicationError(HeadraceError):
    """A blocking method of a publication timed out or cannot go on, or :func:`headrace.accepted` got a refusal.

    Attributes:
        result: The last :class:`headrace.OfferResult` seen.
        accepted: From a batch, how many of its messages were accepted.
    """

    def __init__(self, message: str, result: object = None, accepted: int = 0) -> None:
        super().__init__(message)
        self.result = result
        self.accepted = accepted


class PublicationTimeoutError(PublicationError, TimeoutError):
    """The message was not accepted in time."""


class PublicationClosedError(PublicationError):
    """The publication is closed."""


class MaxPositionExceededError(PublicationError):
    """The stream is at its greatest position, the end of 2**31 terms. Add a publication with a new session id."""


class RequestError(HeadraceError):
    """A request of a :class:`headrace.Requester` has no answer."""


class RequestTimeoutError(RequestError, TimeoutError):
    """No answer came in time. The server may have carried the request out, or may still do so."""


class ServerLostError(RequestError):
    """The server went away before it answered. It may have carried the request out."""


class RemoteError(RequestError):
    """The server's handler raised. The text is the server's: the exception's type and message."""


class ArchiveError(HeadraceError):
    """An archive refused a request, or cannot be reached.

    Attributes:
        code: The protocol's number for the kind of refusal, a :class:`headrace.archive.ErrorCode`; -1 when the
            archive did not say anything.
        code_name: The same as a name, for example ``UNKNOWN_RECORDING``.
        recording_id: The recording that the request was about, where there was one.
        correlation_id: Identifies the request.
    """

    def __init__(
        self,
        message: str,
        code: int = -1,
        code_name: str = "",
        recording_id: int | None = None,
        correlation_id: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.code_name = code_name
        self.recording_id = recording_id
        self.correlation_id = correlation_id


class ArchiveTimeoutError(ArchiveError, TimeoutError):
    """The archive did not answer in time."""


class AuthenticationError(ArchiveError):
    """The archive does not accept who this client says it is, or the client cannot say it."""
