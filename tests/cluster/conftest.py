"""A simulated world for a client of a cluster, and members that do what a test says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.testing import World
from tests.cluster.client_lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    with World(11) as world:
        yield Lab(world)
