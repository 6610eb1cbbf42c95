"""The publications to the members of a cluster, of which one is used. They never wait."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._exceptions import ConfigError, DriverTimeoutError, HeadraceError, RegistrationError
from headrace.cluster.client.endpoints import parse_endpoints

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
        """Leave it. With a client that has ended it went."""
        with contextlib.suppress(HeadraceError):
            if self.pending is not None:
                self.pending.cancel()
            if self.publication is not None:
                self.publication.close()


class Ingress:
    """Ways to the members of a cluster. Used by one thread at a time."""

    def __init__(self, client: Client, config: ClusterClientConfig) -> None:
        self._client = client
        self._config = config
        # By endpoint; ``None`` is the one channel that all members have.
        self._ways: dict[str | None, _Way] = {}
        self._used: _Way | None = None

    @property
    def publication(self) -> Publication | None:
        """To the member that is used, once there is one."""
        return None if self._used is None else self._used.publication

    @property
    def is_hopeless(self) -> bool:
        """Whether no way can be opened."""
        return all(way.failure is not None for way in self._ways.values())

    @property
    def failures(self) -> list[HeadraceError]:
        """Why members cannot be reached."""
        return [way.failure for way in self._ways.values() if way.failure is not None]

    def open_all(self) -> None:
        """Open a way to each member that the settings name, or the one channel of all."""
        given = self._config.ingress_endpoints
        self.open([None] if given is None else parse_endpoints(given).values())

    def open(self, endpoints: Iterable[str | None]) -> None:
        """Open ways to these, and close all others. One that is open, and has not failed, is kept."""
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
        """Use the first way that is connected."""
        for way in self._ways.values():
            way.step()
            if self._used is None and way.is_connected:
                self._used = way

    def keep_used(self) -> None:
        """Close all ways but the one that is used."""
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
            way.pending = request(config.ingress_to(endpoint), config.ingress_stream_id)
        except (ConfigError, RegistrationError) as failure:
            way.failure = failure
        return way
