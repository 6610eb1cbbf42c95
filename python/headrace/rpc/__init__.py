"""Requests and answers over response channels: a :class:`Server`, and a :class:`Requester` that asks it.

::

    def handle(request: bytes) -> bytes:
        return request.upper()

    with headrace.Server(client, "aeron:ipc", 10, handle) as server:
        server.serve()

    with headrace.Requester(client, "aeron:ipc", 10) as requester:
        print(requester.request(b"hello"))
"""

from __future__ import annotations

from headrace._base.names import publish as _publish
from headrace.rpc._reader_threads import Call
from headrace.rpc._requester import Requester
from headrace.rpc._server import Server

__all__ = ["Call", "Requester", "Server"]

_publish(__name__, globals(), __all__)
