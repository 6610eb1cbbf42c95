"""An authenticator with one user, for members of ours in this process and in others."""

from __future__ import annotations

import hmac

from headrace.security import Accepted, Challenge, Rejected, Verdict

__all__ = ["Asking"]


class Asking:
    """Lets in who gives credentials, or the answer to a question."""

    def on_connect(self, credentials: bytes) -> Verdict:
        if not credentials:
            return Challenge(b"who is there?", self._answered)
        return Accepted(b"alice") if hmac.compare_digest(credentials, b"alice:secret") else Rejected()

    @staticmethod
    def _answered(answer: bytes) -> Verdict:
        return Accepted(b"asked") if hmac.compare_digest(answer, b"it is me") else Rejected()
