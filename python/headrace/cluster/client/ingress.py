"""The publications to the members of a cluster, of which one is used. They never wait."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError, DriverTimeoutError, HeadraceError, RegistrationError
from headrace.client._reserved import reserved_streams

if TYPE_CHECKING:
    from headrace.client import Client, ExclusivePublication, Pending, Publication
    from headrace.cluster.client.settings import ClusterClientConfig

__all__ = ["Ingress"]


@dataclass(slots=True)
class _Way:
    """A publication to one member, or to all through one channel."""

    endpoint: str | None
    pending: Pending[Publication] | Pending[ExclusivePublication] | None = None
    publication: Publication | None = None
    failure: HeadraceError | None = None

    def step(self) -> None:
        """Take what the driver has added."""
        if self.pending is None:
            return
        try:
            self.publication = self.pending.poll()
        except (RegistrationError, DriverTimeoutError) as failure:
            self.failure, self.pending = failure, None
        else:
            if self.publication is not None:
                self.pending = None

    @property
    def is_connected(self) -> bool:
        """Whether the member listens."""
        return self.publication is not None and self.publication.is_connected

    def close(self) -> None:
        """Close it. Does nothing if the client has ended."""
        with contextlib.suppress(HeadraceError):
            if self.pending is not None:
                self.pending.cancel()
            if self.publication is not None:
                self.publication.close()


class Ingress:
    """The publications to the members of a cluster. Used by one thread at a time."""

    def __init__(self, client: Client, config: ClusterClientConfig) -> None:
        self._client = client
        self._config = config
        # By endpoint; ``None`` is the one channel that all members have.
        self._ways: dict[str | None, _Way] = {}
        self._used: _Way | None = None

    @property
    def publication(self) -> Publication | None:
        """The publication to the member in use, once there is one."""
        return None if self._used is None else self._used.publication

    def publication_to(self, endpoint: str) -> Publication | None:
        """The publication to a member that listens."""
        way = self._ways.get(endpoint)
        return way.publication if way is not None and way.is_connected else None

    @property
    def is_hopeless(self) -> bool:
        """Whether no publication can be opened."""
        return all(way.failure is not None for way in self._ways.values())

    @property
    def failures(self) -> list[HeadraceError]:
        """Why members cannot be reached."""
        return [way.failure for way in self._ways.values() if way.failure is not None]

    def open_all(self) -> None:
        """Open a publication to each member of the settings, or the one channel of all."""
        given = self._config.endpoints
        self.open([None] if given is None else given.values())

    def open(self, endpoints: Iterable[str | None]) -> None:
        """Open publications to these members, and close all others. Keeps those that are open and have not failed."""
        self._used = None
        wanted = list(dict.fromkeys(endpoints))
        kept = {
            endpoint: way
            for endpoint, way in self._ways.items()
            if endpoint in wanted and way.failure is None
        }
        for endpoint, way in self._ways.items():
            if endpoint not in kept:
                way.close()
        self._ways = {
            endpoint: kept[endpoint] if endpoint in kept else self._opened(endpoint) for endpoint in wanted
        }

    def step(self) -> None:
        """Use the first publication that is connected."""
        for way in self._ways.values():
            way.step()
            if self._used is None and way.is_connected:
                self._used = way

    def keep_used(self) -> None:
        """Close all publications except the one in use."""
        used = self._used
        assert used is not None
        for way in self._ways.values():
            if way is not used:
                way.close()
        self._ways = {used.endpoint: used}

    def close(self) -> None:
        """Close all."""
        for way in self._ways.values():
            way.close()
        self._ways.clear()
        self._used = None

    def _opened(self, endpoint: str | None) -> _Way:
        config, client = self._config, self._client
        request = (
            client.request_exclusive_publication
            if config.is_ingress_exclusive
            else client.request_publication
        )
        way = _Way(endpoint)
        try:
            with reserved_streams():
                way.pending = request(config.ingress_to(endpoint), config.ingress_stream_id)
        except (ConfigError, RegistrationError) as failure:
            way.failure = failure
        return way
