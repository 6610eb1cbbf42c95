"""The client of a cluster for asyncio: `from headrace.cluster.aio import AsyncClusterClient`."""

from __future__ import annotations

from headrace._base.names import publish as _publish
from headrace.cluster.client.async_client import AsyncClusterClient

__all__ = ["AsyncClusterClient"]

_publish(__name__, globals(), __all__, source="headrace.cluster.client")
