"""The session with the node's archive that a container has while it stores or loads its part of a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.common.node_archive import NodeArchive, node_archive_config

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.cluster.service.config import ContainerConfig

__all__ = ["ArchiveSession"]


class ArchiveSession:
    """Opened by a ``with`` block of a task, which gets the archive and closes the session at its end."""

    def __init__(self, client: Client, config: ContainerConfig) -> None:
        self._client = client
        self._config = config
        self._archive: NodeArchive | None = None

    def step(self) -> int:
        """Part of a turn; gives 1 while there is a session."""
        if self._archive is None:
            return 0
        self._archive.step()
        # While a snapshot is stored or loaded there is always something to do: idling would stretch it.
        return 1

    def __enter__(self) -> NodeArchive:
        config = self._config
        purpose, offset = f"sc-{config.service_id}", config.service_id + 1
        self._archive = NodeArchive(self._client, node_archive_config(config, purpose, offset))
        return self._archive

    def __exit__(self, *_: object) -> None:
        archive, self._archive = self._archive, None
        if archive is not None:
            archive.close()
