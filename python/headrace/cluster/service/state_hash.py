"""Where in the log a service is asked for a hash of its state, by which members find one that has parted from them."""

from __future__ import annotations

import hashlib

from headrace.cluster.service.clustered_service import ClusteredService

__all__ = ["StateHashes"]

# After so many bytes of the log, at the end of an entry: at the same places for all members.
_INTERVAL = 1 << 20


class StateHashes:
    """The hashes of one service, if it has ``state_hash``."""

    def __init__(self, service: ClusteredService) -> None:
        self._hash = service.state_hash
        self.is_asked = type(service).state_hash is not ClusteredService.state_hash
        """Whether the service has hashes."""
        self._next_position = _INTERVAL

    def limit(self, commit_position: int) -> int:
        """Up to where the service is given the log, so that a place is not passed."""
        return min(commit_position, self._next_position) if self.is_asked else commit_position

    def due(self, position: int) -> int | None:
        """The hash at the end of an entry, if that is a place.

        Raises:
            Exception: What the service raises.
        """
        if not self.is_asked or position < self._next_position:
            return None
        self._next_position = (position // _INTERVAL + 1) * _INTERVAL
        return self.now()

    def now(self) -> int | None:
        """The hash where the service stands, if it has one."""
        if not self.is_asked:
            return None
        value = self._hash()
        data = value.to_bytes(64, "little", signed=True) if isinstance(value, int) else bytes(value)
        return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little", signed=True)
