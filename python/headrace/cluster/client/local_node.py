"""Finds the driver of a node on this machine, through the mark file in the node's directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._base.checks import wrong
from headrace._base.exceptions import DriverTimeoutError
from headrace.cluster.files.directory import ClusterDirectory

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.client._local_driver import LocalDriver
    from headrace.cluster.client.settings import ClusterClientConfig, ClusterClientSettings

__all__ = ["driver_directory", "named_node"]

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
    """The directory of the driver to use. With a node's driver, both channels are IPC by default.

    Raises:
        ConfigError: The arguments name the driver in two ways.
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


@contextmanager
def named_node(node_directory: str | os.PathLike[str] | None) -> Iterator[None]:
    """Add to the error of a driver that does not answer that it is the node's driver, which starts with the node."""
    try:
        yield
    except DriverTimeoutError as silent:
        if node_directory is None:
            raise
        raise DriverTimeoutError(
            f"node_directory={os.fspath(node_directory)!r}: the node does not run, or not yet: its driver does not "
            "answer; start the node first"
        ) from silent
