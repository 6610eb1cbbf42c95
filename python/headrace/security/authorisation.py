"""What decides which requests a client may send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headrace.security.verdicts import described, discarded

__all__ = ["AllowAll", "AuthorisationService", "DenyAll", "is_allowed"]


class AuthorisationService(Protocol):
    """Decides which requests a client may send. Any object with this method is one."""

    def is_authorised(
        self, protocol_id: int, action_id: int, action_type: int | None, principal: bytes
    ) -> bool:
        """Whether a client may send a request.

        Runs on the thread of the archive, or of the cluster's member, for each request, so it must not wait for
        anything, and cannot be ``async``. Only ``True`` itself allows a request. What it raises, or returns instead of
        ``True`` or ``False``, denies the request; the error log then has the class of it, and the line that raised it.

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


def is_allowed(
    service: AuthorisationService,
    protocol_id: int,
    action_id: int,
    action_type: int | None,
    principal: bytes,
    on_failure: Callable[[str], object],
) -> bool:
    """Ask a service, which may do anything: only ``True`` itself allows a request.

    Args:
        service: Which.
        protocol_id: As for :meth:`AuthorisationService.is_authorised`, as are the next three.
        action_id: See there.
        action_type: See there.
        principal: See there.
        on_failure: Told why the service could not decide.
    """
    try:
        returned: object = service.is_authorised(protocol_id, action_id, action_type, principal)
    except Exception as failure:
        on_failure(f"the authorisation service failed, and the request is denied: {described(failure)}")
        return False
    if not isinstance(returned, bool):
        found = discarded(returned)
        on_failure(f"the authorisation service must return True or False, and the request is denied: {found}")
    return returned is True
