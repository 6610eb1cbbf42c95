"""What decides who a client is. :mod:`headrace.security.verdicts` calls it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Accepted", "Authenticator", "Challenge", "Rejected", "Verdict"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The client is who it says it is.

    Attributes:
        principal: Who that is, for the :class:`AuthorisationService`. It is never logged.
        recheck: Judges the client again while its session lasts, about once a second, on the thread of
            :meth:`Authenticator.on_connect`: :class:`Accepted`, or :class:`Rejected` with a reason, which ends the
            session. What it raises is noted, and the session goes on. ``None``: the client stays accepted.
    """

    principal: bytes = field(default=b"", repr=False)
    recheck: Callable[[], Verdict] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_bytes("principal", self.principal)


@dataclass(frozen=True, slots=True)
class Rejected:
    """The client is not served.

    Attributes:
        reason: Why a session that was accepted ends; logged, and told to the client. One that connects is told no more
            than that it is rejected.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Challenge:
    """The client is to prove who it is.

    Attributes:
        challenge: What it is sent.
        on_response: Called with the client's response; returns the next verdict. It runs as
            :meth:`Authenticator.on_connect` does, and not at all if the client does not respond in time.
    """

    challenge: bytes = field(repr=False)
    on_response: Callable[[bytes], Verdict] = field(repr=False)

    def __post_init__(self) -> None:
        _check_bytes("challenge", self.challenge)


Verdict = Accepted | Rejected | Challenge
"""What an authenticator decides."""


def _check_bytes(name: str, value: object) -> None:
    if not isinstance(value, bytes):
        raise TypeError(f"{name}: must be bytes, and is of class {type(value).__name__}")


class Authenticator(Protocol):
    """Decides who a client is. Any object with this method is one."""

    def on_connect(self, credentials: bytes) -> Verdict:
        """Judge what a client sent to connect: empty if it sent nothing.

        Runs on a thread of its own, one call after the other: it may block, and then holds up clients that connect, and
        nothing else. A client whose verdict takes longer than the archive's ``connect_timeout_ns`` is given up; then
        another thread makes the next call, beside the one that has not returned. At most four threads wait like that.

        What it raises rejects this client; the archive's error log then has the exception's class and line, not its
        text.
        """
        ...
