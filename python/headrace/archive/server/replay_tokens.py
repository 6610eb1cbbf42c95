"""Tokens with which a client asks for a replay over a connection other than that of its session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.server.errors import RequestError
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    import random

    from headrace.archive.server.control_session import ControlSession
    from headrace.clock import Clock

__all__ = ["ReplayTokens"]

# A client that asks on and on is refused; one token is enough for a replay, and for many of one recording.
_MOST_OF_A_SESSION = 1024


@dataclass(frozen=True, slots=True)
class _Token:
    session: ControlSession
    recording_id: int
    deadline_ns: int


class ReplayTokens:
    """Tokens, each of which stands for a control session and a recording for a while, and cannot be guessed."""

    def __init__(self, clock: Clock, valid_ns: int, chance: random.Random) -> None:
        self._clock = clock
        self._valid_ns = valid_ns
        self._chance = chance
        # In the order in which they expire.
        self._tokens: dict[int, _Token] = {}

    def issue(self, session: ControlSession, recording_id: int) -> int:
        """Issue a new token.

        Raises:
            RequestError: The session has too many that are still valid.
        """
        self._expire()
        if sum(one.session is session for one in self._tokens.values()) >= _MOST_OF_A_SESSION:
            text = (
                f"the session has {_MOST_OF_A_SESSION} replay tokens that are still valid, which is the most"
            )
            raise RequestError(ErrorCode.GENERIC, text)
        token = NULL_VALUE
        while token == NULL_VALUE or token in self._tokens:
            token = self._chance.getrandbits(64) - (1 << 63)
        deadline_ns = self._clock.monotonic_ns() + self._valid_ns
        self._tokens[token] = _Token(session, recording_id, deadline_ns)
        return token

    def session_of(self, token: int, recording_id: int) -> ControlSession | None:
        """The session of a token for a recording, while the token is valid."""
        self._expire()
        found = self._tokens.get(token)
        return found.session if found is not None and found.recording_id == recording_id else None

    def drop(self, session: ControlSession) -> None:
        """Drop the tokens of a session that has ended."""
        for token in [token for token, one in self._tokens.items() if one.session is session]:
            del self._tokens[token]

    def _expire(self) -> None:
        now_ns = self._clock.monotonic_ns()
        while self._tokens:
            oldest = next(iter(self._tokens))
            if now_ns < self._tokens[oldest].deadline_ns:
                return
            del self._tokens[oldest]
