"""Tools for testing programs that use Headrace, and Headrace itself.

- `World`: whole nodes under one seed and virtual time: real drivers, clients and archives on a simulated network and
  simulated disks.
- `SimulatedStorage`: such a disk alone.
- `ManualClock`: time that a test moves, for one client or archive alone.
- `Relay`: a UDP relay between two drivers that loses, reorders, duplicates and delays datagrams from a seed.
- `NetworkPath`: the same network without sockets or clock, for tests that step it themselves.
- `random_loss`, `fixed_loss`, `gap_loss`: settings with which a driver drops what arrives at its sockets.
- `Namespaces`: two network namespaces with a cable between them, for loss made by the kernel.
"""

from __future__ import annotations

from headrace._base.names import publish as _publish
from headrace.testing.clock import ManualClock
from headrace.testing.conditions import PERFECT, Conditions, NetworkPath, PathCounters, path_random
from headrace.testing.loss import fixed_loss, gap_loss, random_loss
from headrace.testing.namespaces import Namespace, NamespaceError, Namespaces
from headrace.testing.relay import Address, Relay
from headrace.testing.seeds import SEED_VARIABLE, choose_seed, replay_note
from headrace.testing.storage import Killed, SimulatedStorage
from headrace.testing.world import Link, Node, World, WorldTimeoutError

__all__ = [
    "PERFECT",
    "SEED_VARIABLE",
    "Address",
    "Conditions",
    "Killed",
    "Link",
    "ManualClock",
    "Namespace",
    "NamespaceError",
    "Namespaces",
    "NetworkPath",
    "Node",
    "PathCounters",
    "Relay",
    "SimulatedStorage",
    "World",
    "WorldTimeoutError",
    "choose_seed",
    "fixed_loss",
    "gap_loss",
    "path_random",
    "random_loss",
    "replay_note",
]

_publish(__name__, globals(), __all__)
