"""`headrace cluster check-determinism`: whether a service does the same again for what a member's log has."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from headrace._checks import excerpt
from headrace.cli import options
from headrace.cli.cluster.access import archive_of, beside_archive_option, directory_argument
from headrace.cli.cluster.node import service_maker
from headrace.cli.lifecycle import FAILED
from headrace.clock import SYSTEM_CLOCK

SHOW_STACKS = signal.SIGUSR1
WHOLE = "whole"
"""The file that a replay leaves which came to its end."""
"""Has the process that replays print where each of its threads is."""
_LOOK_S = 0.2
# The frame under those of a service.
_CHECK = str(Path("headrace/cluster/service/determinism.py"))
_LOG_NAMES = ("recording.log", "node-state.dat")
_ADVICE = (
    "The two processes hash texts and bytes differently: where a handler or the state goes through a set of them, "
    "use sorted(), or a dict, which keeps its order"
)


@click.command("check-determinism")
@directory_argument
@click.argument("service", metavar="MODULE:CLASS")
@beside_archive_option
@click.option(
    "--from-snapshot", is_flag=True, help="Begin with the latest snapshot, and not with the whole log."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=options.FiniteRange(min=1),
    default=60.0,
    show_default=True,
    help="Seconds without a further entry of the log after which a replay counts as standing still.",
)
def check_determinism_command(
    directory: Path, service: str, archive_directory: Path | None, from_snapshot: bool, timeout_s: float
) -> None:
    """Replay the log of a member that does not run into two instances of a service, and compare what they do.

    Two processes do so, one after the other, whose hashes of texts differ, and the command compares the processes as
    well: so it finds an answer in the order of a set.

    CLASS is the service's class, or a function that gives a service, such as an ObjectService around an object. Nothing
    in the DIRECTORY changes: the command first copies the recording log and the whole archive to a temporary directory,
    which needs as much room. Exit status 1 says that the instances differ, with the first position of the log where
    they do, or that a handler waits, or asked for the time, for random numbers or for threads. What a handler raises in
    both instances alike is printed, and is no difference.

    \b
    Examples:
      headrace cluster check-determinism /data/node prices:OrderBook
      headrace cluster check-determinism /data/node prices:OrderBook --from-snapshot
    """
    from headrace.cluster import DeterminismCheck
    from headrace.cluster.directory import ClusterDirectory

    # Refuses here what cannot be checked, before the log is copied.
    DeterminismCheck(service_maker(service))
    ClusterDirectory(directory).check_no_member_runs()
    with ClusterDirectory(directory).recording_log():
        archive = archive_of(directory, archive_directory)
    with tempfile.TemporaryDirectory(prefix="headrace-determinism-") as made:
        copy = Path(made)
        (copy / "cluster").mkdir()
        for name in _LOG_NAMES:
            if (directory / name).exists():
                shutil.copyfile(directory / name, copy / "cluster" / name)
        shutil.copytree(archive, copy / "archive", ignore=shutil.ignore_patterns("archive-mark*", "*.events"))
        with ClusterDirectory(copy / "cluster").recording_log() as log:
            latest = log.latest_snapshot(0) if from_snapshot else []
        start = latest[0].log_position if latest else 0
        first, second = copy / "1", copy / "2"
        _forget_snapshots(copy, start)
        _check_begin(copy, start)
        position, raised = _replay(copy, service, first, "1", timeout_s)
        # A replay takes each snapshot of the log again: the second one must not begin with one of the first's. The
        # entries that the first node added, such as its term, are in the log that the second one replays.
        _forget_snapshots(copy, start)
        _replay(copy, service, second, "2", timeout_s)
        difference = _difference(first, second)
    if difference is not None:
        click.echo(difference)
        raise SystemExit(FAILED)
    click.echo(raised, nl=False)
    click.echo(f"{service} does the same again, up to log position {position}")


def _forget_snapshots(directory: Path, log_position: int) -> None:
    """Have the next start in the copy use no snapshot that was taken after the position."""
    from headrace.cluster.directory import ClusterDirectory

    with ClusterDirectory(directory / "cluster").changed_recording_log() as log:
        while (latest := log.latest_snapshot(0)) and latest[0].log_position > log_position:
            log.invalidate_latest_snapshot()


def _check_begin(directory: Path, log_position: int) -> None:
    """Look whether the archive has the log from a position on.

    Raises:
        ClusterFileError: It begins later.
    """
    from headrace.archive.files import ArchiveDirectory
    from headrace.cluster.directory import ClusterDirectory
    from headrace.cluster.errors import ClusterFileError
    from headrace.cluster.log.recovery import recovery_plan

    with (
        ClusterDirectory(directory / "cluster").recording_log() as log,
        ArchiveDirectory(directory / "archive") as archive,
    ):
        plan = recovery_plan(log, 0, archive.find)
    if plan.log is not None and plan.log.start_position > log_position:
        raise ClusterFileError(
            f"the archive has the log from position {plan.log.start_position} on only: its earlier segment files "
            "were deleted. Replay from a snapshot after that position: --from-snapshot"
        )


def _replay(directory: Path, service: str, trace: Path, seed: str, timeout_s: float) -> tuple[int, str]:
    """Replay in a process of its own, whose hashes of texts follow from the seed.

    Gives the last log position, and what handlers have raised.
    """
    whole = directory / WHOLE
    whole.unlink(missing_ok=True)
    name = f"the process that replays with PYTHONHASHSEED={seed}"
    # Files, which take what a service prints however much it is.
    with (directory / "printed").open("w+") as printed, (directory / "errors").open("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli.cluster.replay", str(directory), service, str(trace)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=printed,
            stderr=errors,
        )
        try:
            stands_still = not _has_ended(process, trace, timeout_s)
            if stands_still:
                # It prints where its threads are.
                process.send_signal(SHOW_STACKS)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_S)
        finally:
            process.kill()
            process.wait()
        printed.seek(0)
        errors.seek(0)
        said, complained = printed.read(), errors.read()
    lines = _lines(trace)
    position = int(lines[-1][0]) if lines else 0
    if stands_still:
        click.echo(
            f"{name} stands still: no handler has returned for {timeout_s:g} s, after log_position={position}"
            f"{_place(complained)}. A handler must not wait for anything; if one only takes longer, give more --timeout"
        )
        raise SystemExit(FAILED)
    if process.returncode != 0 or not whole.exists():
        click.echo(said, nl=False)
        if not said or process.returncode != FAILED:
            click.echo(
                f"{name} ended with exit status {process.returncode}, "
                f"after log_position={position}: {complained.strip() or 'it printed nothing'}"
            )
        raise SystemExit(FAILED)
    return position, said


def _has_ended(process: subprocess.Popen[bytes], trace: Path, timeout_s: float) -> bool:
    """Wait for the end of a process; false once its trace has not grown for so long."""
    length, deadline = -1, SYSTEM_CLOCK.deadline(timeout_s)
    while not deadline.is_over:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_S)
            return True
        now = trace.stat().st_size if trace.exists() else -1
        if now != length:
            length, deadline = now, SYSTEM_CLOCK.deadline(timeout_s)
    return False


def _place(stacks: str) -> str:
    """Where the service is, by the stacks of its process, innermost call first; empty if it is in no handler."""
    for stack in stacks.split("\n\n"):
        calls = [line.strip() for line in stack.splitlines() if line.startswith("  File ")]
        checks = [index for index, call in enumerate(calls) if _CHECK in call]
        if checks and checks[0] > 0:
            return f", in {'; called by '.join(calls[: checks[0]])}"
    return ""


def _lines(trace: Path) -> list[list[Any]]:
    # A process that died may have left half a line.
    lines = trace.read_text().splitlines(keepends=True) if trace.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _difference(first: Path, second: Path) -> str | None:
    """The first entry that two processes made something else of; the second one has a term more, at the end."""
    for one, other in zip(_lines(first), _lines(second), strict=False):
        if one == other:
            continue
        position, name, asked, _ = one
        seen = f"the service is not deterministic, first seen at log_position={position}: with PYTHONHASHSEED=1 {name}"
        if [position, name] != other[:2]:
            return f"{seen} is called; with PYTHONHASHSEED=2 {other[1]} at log_position={other[0]}"
        for mine, its in itertools.zip_longest(asked, other[2], fillvalue="nothing"):
            if mine != its:
                what = f"asks for {excerpt(mine)}; with PYTHONHASHSEED=2 {excerpt(its)}"
                break
        else:
            what = "leaves another state than with PYTHONHASHSEED=2"
        return f"{seen} {what}. {_ADVICE}"
    return None
