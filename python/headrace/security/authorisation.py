"""What decides which requests a client may send."""

from __future__ import annotations

from typing import Protocol

__all__ = ["AllowAll", "AuthorisationService", "DenyAll"]


class AuthorisationService(Protocol):
    """Decides which requests a client may send. Any object with this method is one."""

    def is_authorised(
        self, protocol_id: int, action_id: int, action_type: int | None, principal: bytes
    ) -> bool:
        """Whether a client may send a request.

        Runs on the thread of the archive for each request, so it must not wait for anything. What it raises denies the
        request; the archive's error log then has the exception's class and line.

        Args:
            protocol_id: The schema: 101 for requests to an archive.
            action_id: The template of the request in the schema, such as 4 for StartRecordingRequest. Every client
                of Headrace and Aeron sends 61 (KeepAliveRequest) and 68 (ArchiveIdRequest) to connect.
            action_type: A kind of action within the template; ``None`` for requests to an archive.
            principal: Who the client is, from the authenticator: :attr:`Accepted.principal`.
        """
        ...


class AllowAll:
    """Allows every request."""

    def is_authorised(
        self, protocol_id: int, action_id: int, action_type: int | None, principal: bytes
    ) -> bool:
        """Always."""
        return True


class DenyAll:
    """Denies every request."""

    def is_authorised(
        self, protocol_id: int, action_id: int, action_type: int | None, principal: bytes
    ) -> bool:
        """Never."""
        return False
