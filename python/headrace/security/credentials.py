"""What a client sends to say who it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from headrace._base.checks import wrong
from headrace._base.exceptions import AuthenticationError, ConfigError

__all__ = ["CredentialsSupplier", "FileCredentials", "UserCredentials", "supplier_of"]

_NO_RESPONSE = (
    "fixed credentials cannot respond to a challenge: pass credentials= an object with "
    "encoded_credentials() and on_challenge(challenge)"
)


class CredentialsSupplier(Protocol):
    """Knows who a client is. Any object with these methods is one.

    They are called while a session is opened, each time one is: by the thread that connects, or that steps what
    connects again. What they raise ends the attempt with an :class:`headrace.AuthenticationError`.
    """

    def encoded_credentials(self) -> bytes:
        """What to send to connect; may be empty."""
        ...

    def on_challenge(self, challenge: bytes) -> bytes:
        """Return the response to a challenge."""
        ...


class _Fixed:
    """Bytes that are always the same."""

    def __init__(self, credentials: bytes) -> None:
        self._credentials = credentials

    def encoded_credentials(self) -> bytes:
        """The bytes."""
        return self._credentials

    def on_challenge(self, challenge: bytes) -> bytes:
        """See :class:`CredentialsSupplier`. Fixed bytes cannot respond.

        Raises:
            AuthenticationError: Always.
        """
        raise AuthenticationError(_NO_RESPONSE)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class UserCredentials(_Fixed):
    """A name and a secret, sent as ``name:secret``: what a file of users, and Aeron's own examples, expect.

    Args:
        name: Without a colon.
        secret: Any text.

    Raises:
        ConfigError: The name is empty or has a colon.
    """

    def __init__(self, name: str, secret: str) -> None:
        if not name or ":" in name:
            raise wrong("name", name, "must be text without a colon")
        super().__init__(f"{name}:{secret}".encode())


class FileCredentials(_Fixed):
    """The first line of a file, read anew for each session, so that the secret can change while the program runs.

    Args:
        path: The file, with a line such as ``name:secret``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def encoded_credentials(self) -> bytes:
        """The line.

        Raises:
            ConfigError: The file cannot be read, or has no line.
        """
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError as failure:
            raise ConfigError(f"the file of credentials {self._path} cannot be read: {failure}") from None
        if not lines or not lines[0]:
            raise ConfigError(f"the file of credentials {self._path} has no first line, such as name:secret")
        return lines[0]

    def __repr__(self) -> str:
        return f"FileCredentials({str(self._path)!r})"


def supplier_of(credentials: bytes | CredentialsSupplier) -> CredentialsSupplier:
    """Credentials as a supplier."""
    return _Fixed(credentials) if isinstance(credentials, bytes) else credentials
