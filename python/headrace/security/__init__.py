"""Who a client is and what it may do: plug-ins for archives, and what clients give them.

::

    import headrace
    from headrace.security import Accepted, Rejected, UserCredentials

    class Tokens:
        def on_connect(self, credentials):
            return Accepted(b"reports") if is_valid(credentials) else Rejected()

    with headrace.ArchivingMediaDriver.embedded(archive_directory="recordings", authenticator=Tokens()) as archiving:
        archive = archiving.connect_archive(credentials=UserCredentials("alice", secret))

An archive takes an :class:`Authenticator` and an :class:`AuthorisationService`, or their names in its settings; a
client takes bytes or a :class:`CredentialsSupplier`. ``docs/user/how-to/secure.md`` shows how.
"""

from __future__ import annotations

from headrace._base.names import publish as _publish
from headrace.security.authentication import Accepted, Authenticator, Challenge, Rejected, Verdict
from headrace.security.authorisation import AuthorisationService
from headrace.security.credentials import CredentialsSupplier, FileCredentials, UserCredentials
from headrace.security.users import UsersAuthenticator, UsersFile, UsersFileError

__all__ = [
    "Accepted",
    "Authenticator",
    "AuthorisationService",
    "Challenge",
    "CredentialsSupplier",
    "FileCredentials",
    "Rejected",
    "UserCredentials",
    "UsersAuthenticator",
    "UsersFile",
    "UsersFileError",
    "Verdict",
]

_publish(__name__, globals(), __all__)
