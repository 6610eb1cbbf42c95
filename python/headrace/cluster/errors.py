"""What goes wrong in a cluster."""

from __future__ import annotations

from headrace._exceptions import HeadraceError

__all__ = ["ClusterError", "ClusterFileError", "ClusterTerminalError"]


class ClusterError(HeadraceError):
    """A cluster, or a member of it, cannot do what it was asked for; the text says why."""


class ClusterFileError(ClusterError):
    """A file of a cluster's directory is damaged, or does not allow what it was asked for."""


class ClusterTerminalError(ClusterError):
    """A member cannot go on at all: its log, its archive or a service is not what it must be."""
