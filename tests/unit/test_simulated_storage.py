"""The simulated disk: what its copy shares with it."""

from __future__ import annotations

import random

from headrace.testing import SimulatedStorage


def losses_of(storage: SimulatedStorage) -> list[bool]:
    """Which of many names a power cut leaves."""
    for number in range(100):
        storage.create(str(number), 1)
    storage.crash()
    return [storage.length(str(number)) is not None for number in range(100)]


def test_a_crash_of_a_copy_changes_no_later_loss_of_the_disk() -> None:
    alone = losses_of(SimulatedStorage(random.Random(7)))
    storage = SimulatedStorage(random.Random(7))
    assert losses_of(storage.copy()) == alone
    assert losses_of(storage) == alone
