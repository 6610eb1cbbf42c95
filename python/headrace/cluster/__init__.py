"""Replicated services over a totally ordered log.

Write a :class:`ClusteredService`, run it on a :class:`ClusterNode`::

    class Counter(ClusteredService):
        def __init__(self):
            self.value = 0

        def on_start(self, cluster, snapshot):
            for message in snapshot or ():
                self.value = int(message)

        def on_session_message(self, session, timestamp, message, position):
            self.value += int(message)
            session.offer(str(self.value).encode())

        def on_take_snapshot(self):
            yield str(self.value).encode()

    with ClusterNode(Counter(), directory="counter") as node:
        ...
"""

from __future__ import annotations

from headrace._names import publish
from headrace.cluster.errors import ClusterError, ClusterFileError
from headrace.cluster.member.config import ConsensusModuleConfig
from headrace.cluster.member.consensus_module import ConsensusModule
from headrace.cluster.member.states import ElectionState, ModuleState
from headrace.cluster.node import ClusterNode
from headrace.cluster.protocol.codes import CloseReason, ClusterTimeUnit, Role
from headrace.cluster.service.cluster import Cluster
from headrace.cluster.service.clustered_service import ClusteredService
from headrace.cluster.service.config import ContainerConfig
from headrace.cluster.service.container import ServiceContainer
from headrace.cluster.service.session import ClientSession

__all__ = [
    "ClientSession",
    "CloseReason",
    "Cluster",
    "ClusterError",
    "ClusterFileError",
    "ClusterNode",
    "ClusterTimeUnit",
    "ClusteredService",
    "ConsensusModule",
    "ConsensusModuleConfig",
    "ContainerConfig",
    "ElectionState",
    "ModuleState",
    "Role",
    "ServiceContainer",
]

publish(__name__, globals(), __all__)
