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

from headrace._base.checks import excerpt
from headrace.cli import options
from headrace.cli.cluster.access import archive_of, beside_archive_option, directory_argument
from headrace.cli.cluster.node import service_maker
from headrace.cli.lifecycle import FAILED
from headrace.clock import SYSTEM_CLOCK

SHOW_STACKS = signal.SIGUSR1
"""Has the process that replays print where each of its threads is."""
WHOLE = "whole"
"""The file that a replay leaves which came to its end."""
LIVE = "snapshots"
"""The file that says which snapshots the member has taken: log positions and recordings."""
OTHERS = "others"
"""The file in which a replay says where its state is another than in those."""
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
    "--from-snapshot", is_flag=True, help="Begin with the latest snapshot instead of the whole log."
)
@options.timeout_option(
    60.0, "How long a replay may go without progress in the log before it counts as stuck.", least=1
)
def check_determinism_command(
    directory: Path, service: str, archive_directory: Path | None, from_snapshot: bool, timeout_s: float
) -> None:
    """Replay the log of a stopped member into two instances of a service, and compare them.

    The second instance plays a leader, which finds code that depends on the member's role. Two processes with different
    hashes of texts replay the log one after the other, which finds answers in the order of a set. The command also
    compares the member's snapshots with the replayed state.

    CLASS is the service's class, or a function that returns a service, such as an ObjectService around an object. The
    command changes nothing in the DIRECTORY: it first copies the recording log and the whole archive to a temporary
    directory, which needs as much room. Exit status 1 means that the instances differ, with the first log position
    where they do, or that a handler waits, or asks for the time, random numbers or threads. An exception that a handler
    raises in both instances is printed and does not count as a difference.

    \b
    Examples:
      headrace cluster check-determinism /data/node prices:OrderBook
      headrace cluster check-determinism /data/node prices:OrderBook --from-snapshot
    """
    from headrace.cluster import DeterminismCheck
    from headrace.cluster.files.directory import ClusterDirectory

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
        _note_snapshots(copy, start)
        _forget_snapshots(copy, start)
        _check_begin(copy, start)
        position, raised = _replay(copy, service, first, "1", timeout_s)
        # A replay takes each snapshot of the log again: the second one must not begin with one of the first's. The
        # entries that the first node added, such as its term, are in the log that the second one replays.
        _forget_snapshots(copy, start)
        _replay(copy, service, second, "2", timeout_s)
        difference = _difference(first, second)
        if difference is None and (copy / OTHERS).read_text():
            # Looking at a state after each entry may change it, as the member that took the snapshot did not.
            _forget_snapshots(copy, start)
            _replay(copy, service, copy / "3", "1", timeout_s, state_every=0)
            if other := (copy / OTHERS).read_text():
                text = "the service is not deterministic, or another version of it ran: the member and its replay part"
                difference = f"{text}, first seen at {other.splitlines()[0]}"
    if difference is not None:
        click.echo(difference)
        raise SystemExit(FAILED)
    click.echo(raised, nl=False)
    click.echo(f"{service} does the same again, up to log position {position}")


def _note_snapshots(directory: Path, log_position: int) -> None:
    """Write for the replays which snapshots of the service the member has taken after the position."""
    from headrace.cluster.files.directory import ClusterDirectory
    from headrace.cluster.files.recording_log_entries import EntryType

    with ClusterDirectory(directory / "cluster").recording_log() as log:
        taken = [
            (entry.log_position, entry.recording_id)
            for entry in log
            if entry.type is EntryType.SNAPSHOT and entry.is_valid and entry.service_id == 0
        ]
    (directory / LIVE).write_text(json.dumps([one for one in taken if one[0] > log_position]))


def _forget_snapshots(directory: Path, log_position: int) -> None:
    """Have the next start in the copy use no snapshot that was taken after the position."""
    from headrace.cluster.files.directory import ClusterDirectory

    with ClusterDirectory(directory / "cluster").changed_recording_log() as log:
        while (latest := log.latest_snapshot(0)) and latest[0].log_position > log_position:
            log.invalidate_latest_snapshot()


def _check_begin(directory: Path, log_position: int) -> None:
    """Look whether the archive has the log from a position on.

    Raises:
        ClusterFileError: It begins later.
    """
    from headrace.archive.files import ArchiveDirectory
    from headrace.cluster.errors import ClusterFileError
    from headrace.cluster.files.directory import ClusterDirectory
    from headrace.cluster.files.recovery_plan import recovery_plan

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


def _replay(
    directory: Path, service: str, trace: Path, seed: str, timeout_s: float, state_every: int = 1
) -> tuple[int, str]:
    """Replay in a process of its own, whose hashes of texts follow from the seed.

    Gives the last log position, and what handlers have raised.
    """
    whole = directory / WHOLE
    whole.unlink(missing_ok=True)
    name = f"the process that replays with PYTHONHASHSEED={seed}"
    # Files, which take what a service prints however much it is.
    with (directory / "printed").open("w+") as printed, (directory / "errors").open("w+") as errors:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "headrace.cli.cluster.replay",
                str(directory),
                service,
                str(trace),
                str(state_every),
            ],
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
            f"{name} is stuck: no handler has returned for {timeout_s:g} s, after log_position={position}"
            f"{_place(complained)}. A handler must not wait; if one only takes longer, raise --timeout"
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
