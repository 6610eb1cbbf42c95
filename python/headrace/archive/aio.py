"""The client of an archive for asyncio: `from headrace.archive.aio import AsyncArchive`."""

from __future__ import annotations

from headrace._base.names import publish as _publish
from headrace.archive.client.async_archive import AsyncArchive, AsyncReplay

__all__ = ["AsyncArchive", "AsyncReplay"]

_publish(__name__, globals(), __all__, source="headrace.archive.client")
