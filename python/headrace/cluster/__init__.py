"""Replicated services over a totally ordered log, and clients of them.

A service is a plain class; a node runs it; a client talks to it::

    from headrace.cluster import ClusteredService, ClusterNode

    class Counter(ClusteredService):
        value = 0

        def on_start(self, cluster, snapshot):
            for message in snapshot or ():
                self.value = int(message)

        def on_session_message(self, session, timestamp, message, position):
            self.value += int(message)
            session.offer(str(self.value).encode())

        def on_take_snapshot(self):
            yield str(self.value).encode()

    with ClusterNode(Counter(), directory="counter") as node, node.connect() as cluster:
        cluster.offer_blocking(b"5")
        print(cluster.receive().payload)

Messages, files and counters are those of Aeron's cluster, so any part may be Aeron's.
"""

from __future__ import annotations

from headrace._base.names import publish as _publish
from headrace.cluster.backup.cluster_backup import ClusterBackup
from headrace.cluster.backup.config import ClusterBackupConfig
from headrace.cluster.backup.states import BackupState
from headrace.cluster.client.client import ClusterClient, PendingClusterClient
from headrace.cluster.client.follower_reads import FollowerRead
from headrace.cluster.client.session import ClusterMessage
from headrace.cluster.client.settings import ClusterClientConfig
from headrace.cluster.client.states import ClientState, ConnectState
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.errors import (
    AdminRequestError,
    ClusterAuthenticationError,
    ClusterError,
    ClusterFileError,
    ClusterTerminalError,
    ClusterTimeoutError,
    ServiceError,
    SessionClosedError,
)
from headrace.cluster.member.config import ConsensusModuleConfig
from headrace.cluster.member.consensus_module import ConsensusModule
from headrace.cluster.member.states import ModuleState
from headrace.cluster.node.cluster_node import ClusterNode
from headrace.cluster.protocol.codes import (
    AdminResponseCode,
    CloseReason,
    ClusterTimeUnit,
    EventCode,
    Role,
)
from headrace.cluster.protocol.session import AdminResponse, NewLeaderEvent, SessionEvent
from headrace.cluster.service.cluster import Cluster
from headrace.cluster.service.clustered_service import ClusteredService
from headrace.cluster.service.config import ContainerConfig
from headrace.cluster.service.container import ServiceContainer
from headrace.cluster.service.determinism import DeterminismCheck, DeterminismError
from headrace.cluster.service.session import ClientSession

__all__ = [
    "AdminRequestError",
    "AdminResponse",
    "AdminResponseCode",
    "BackupState",
    "ClientSession",
    "ClientState",
    "CloseReason",
    "Cluster",
    "ClusterAuthenticationError",
    "ClusterBackup",
    "ClusterBackupConfig",
    "ClusterClient",
    "ClusterClientConfig",
    "ClusterError",
    "ClusterFileError",
    "ClusterMessage",
    "ClusterNode",
    "ClusterTerminalError",
    "ClusterTimeUnit",
    "ClusterTimeoutError",
    "ClusteredService",
    "ConnectState",
    "ConsensusModule",
    "ConsensusModuleConfig",
    "ContainerConfig",
    "DeterminismCheck",
    "DeterminismError",
    "ElectionState",
    "EventCode",
    "FollowerRead",
    "ModuleState",
    "NewLeaderEvent",
    "PendingClusterClient",
    "Role",
    "ServiceContainer",
    "ServiceError",
    "SessionClosedError",
    "SessionEvent",
]

_publish(__name__, globals(), __all__)
