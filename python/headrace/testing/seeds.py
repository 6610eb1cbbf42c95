"""One seed for everything random in a test, printed when the test fails."""

from __future__ import annotations

import os
import secrets

SEED_VARIABLE = "HEADRACE_SEED"


def choose_seed(seed: int | None = None) -> int:
    """`seed` if given, else the environment's `HEADRACE_SEED`, else a fresh one.

    Raises:
        ValueError: `HEADRACE_SEED` is set and is not a whole number.
    """
    if seed is not None:
        return seed
    text = os.environ.get(SEED_VARIABLE)
    if not text:
        return secrets.randbits(32)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{SEED_VARIABLE}={text!r}; a seed is a whole number") from None


def replay_note(what: str, seed: int) -> str:
    """What to tell the reader of a failure."""
    return f"{what} used seed {seed}; to replay it: {SEED_VARIABLE}={seed} and the same command"
