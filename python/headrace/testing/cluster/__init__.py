"""Clusters of several members in a simulated world: for tests of services, and of the cluster itself.

- `ClusterWorld`: members, clients and faults under one seed and virtual time.
- `ClusterMember`, `SimulatedClient`: what it is made of.
- `ClusterFaults`: what goes wrong at random; `FAULT_KINDS` has the kinds.
- `ClusterRules`: what must hold after each step; `ClusterRuleError` says what does not.
"""

from __future__ import annotations

from headrace._base.names import publish as _publish
from headrace.testing.cluster.client import Answer, SentCommand, SimulatedClient
from headrace.testing.cluster.faults import FAULT_KINDS, ClusterFaults
from headrace.testing.cluster.member import ClusterMember
from headrace.testing.cluster.rules import ClusterRuleError, ClusterRules, LoggedMessage
from headrace.testing.cluster.world import ClusterWorld

__all__ = [
    "FAULT_KINDS",
    "Answer",
    "ClusterFaults",
    "ClusterMember",
    "ClusterRuleError",
    "ClusterRules",
    "ClusterWorld",
    "LoggedMessage",
    "SentCommand",
    "SimulatedClient",
]

_publish(__name__, globals(), __all__)
