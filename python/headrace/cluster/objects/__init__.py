"""Replicated objects: a class whose methods are commands, carried out by every member of a cluster, each call once.

::

    from headrace.cluster import ClusterNode
    from headrace.cluster.objects import ObjectClient, ObjectService, command

    class Counter:
        value: int = 0

        @command
        def add(self, amount: int) -> int:
            self.value += amount
            return self.value

    with ClusterNode.embedded(ObjectService(Counter())) as node:
        node.wait_until_leader()
        with ObjectClient.connect(
            Counter, driver=node.driver, ingress_channel="aeron:ipc", egress_channel="aeron:ipc"
        ) as client:
            print(client.object.add(5))

Needs the extra ``objects``.
"""

from __future__ import annotations

from headrace._base.names import publish as _publish
from headrace.cluster.objects.async_client import AsyncObjectClient
from headrace.cluster.objects.client import ObjectClient
from headrace.cluster.objects.commands import command
from headrace.cluster.objects.errors import CallRefusedError, CommandError, ForgottenError
from headrace.cluster.objects.service import ObjectService, current_cluster

__all__ = [
    "AsyncObjectClient",
    "CallRefusedError",
    "CommandError",
    "ForgottenError",
    "ObjectClient",
    "ObjectService",
    "command",
    "current_cluster",
]

_publish(__name__, globals(), __all__)
