"""Runs of a simulated world that differ by their seed alone: how a failure names it, and how new seeds are run."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from headrace.testing import World, choose_seed

# For how long `test_new_seeds` of each file runs new seeds; `make simulate` sets it.
SECONDS = float(os.environ.get("SIMULATE_SECONDS", "0"))


@contextlib.contextmanager
def replayable(world: World, test_file: str, actions: list[str]) -> Iterator[None]:
    """A failure inside has the command that replays it, what was done, and the last events of the world."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(
            f"the world used seed {world.seed}; to replay it: HEADRACE_SEED={world.seed} SIMULATE_SECONDS=0.001"
            f" .venv/bin/python -m pytest tests/sim/{Path(test_file).name} -k new_seeds"
        )
        failure.add_note(f"actions: {actions}\n{world.trace(40)}")
        raise


def run_new_seeds(run: Callable[[int], object], what: str) -> None:
    """Run seed after seed for `SECONDS`, at least one."""
    end, seed, count = time.monotonic() + SECONDS, choose_seed(), 0
    while count == 0 or time.monotonic() < end:
        run(seed + count)
        count += 1
    print(f"{count} seeds of {what} from {seed} on")
