"""Many seeds of clusters of several members, with totals of what they held: `python -m tests.sim.many_seeds 0:1000`.

Each seed has a process of its own, so that one that hangs or dies is a failure of that seed alone.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.sim.swarm import run

# On the clock on the wall: far more than a seed takes.
_SEED_TIMEOUT_S = 600
_SHOWN_INTERVAL = 100


def main() -> int:
    """Run the seeds; returns 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", help="FIRST:END, without the end")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no seed after so long")
    parser.add_argument(
        "--failures", type=Path, default=Path(".cache/seeds"), help="for what failed seeds print"
    )
    options = parser.parse_args()
    first, end = map(int, options.seeds.split(":"))
    options.failures.mkdir(parents=True, exist_ok=True)
    totals: Counter[str] = Counter()
    failed: list[int] = []
    begin_s = time.monotonic()
    for seed in range(first, end):
        if time.monotonic() - begin_s > options.seconds:
            break
        log = options.failures / f"{options.members}-{seed}.log"
        counts = _counts_of(seed, options.members, log)
        totals["seeds"] += 1
        if counts is None:
            failed.append(seed)
            print(f"seed {seed} failed: {log}", flush=True)
        else:
            totals += counts
            log.unlink()
        if totals["seeds"] % _SHOWN_INTERVAL == 0:
            _show(options.members, totals, failed, begin_s)
    _show(options.members, totals, failed, begin_s)
    return 1 if failed else 0


def _show(member_count: int, totals: Counter[str], failed: list[int], begin_s: float) -> None:
    held = ", ".join(f"{count} {name}" for name, count in totals.items())
    duration_s = time.monotonic() - begin_s
    print(f"{member_count} members: {held}; failed: {failed or 'none'}; {duration_s:.0f} s", flush=True)


def _counts_of(seed: int, member_count: int, log: Path) -> Counter[str] | None:
    """Run a seed in a child, whose output goes to a file; returns its counts, or nothing if it failed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(_SEED_TIMEOUT_S)
        output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os._exit(_run(seed, member_count, writing))
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    if status != 0:
        return None
    return Counter({name: int(count) for name, _, count in (line.rpartition(" ") for line in lines)})


def _run(seed: int, member_count: int, writing: int) -> int:
    try:
        counts = run(seed, member_count)
    except BaseException:
        traceback.print_exc()
        return 1
    text = "".join(f"{name} {count}\n" for name, count in counts.items())
    os.write(writing, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
