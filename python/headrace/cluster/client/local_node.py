"""How a client on the machine of a node finds the node's driver: through the mark file in the node's directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._checks import wrong
from headrace.cluster.directory import ClusterDirectory

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.client._local_driver import LocalDriver
    from headrace.cluster.client.settings import ClusterClientConfig, ClusterClientSettings

__all__ = ["driver_directory"]

_FILES = "cluster"
_IPC = "aeron:ipc"


def driver_directory(
    node_directory: str | os.PathLike[str] | None,
    directory: str | os.PathLike[str] | None,
    client: Client | None,
    driver: LocalDriver | None,
    config: ClusterClientConfig | None,
    settings: ClusterClientSettings,
) -> str | os.PathLike[str] | None:
    """The directory of the driver to use; of a node's driver, and then both channels are IPC if nothing else is said.

    Raises:
        ConfigError: A driver is named in two ways.
        ClusterFileError: No node has run on the directory, or its mark file is damaged.
    """
    if node_directory is None:
        return directory
    for name, given in (("directory", directory), ("client", client), ("driver", driver)):
        if given is not None:
            rule = f"must not be given with {name}, which names a driver too"
            raise wrong("node_directory", node_directory, rule)
    files = Path(node_directory)
    if (files / _FILES).is_dir():
        files = files / _FILES
    found = ClusterDirectory(files).mark().aeron_directory
    if config is None:
        settings.setdefault("ingress_channel", _IPC)
        settings.setdefault("egress_channel", _IPC)
    return found
