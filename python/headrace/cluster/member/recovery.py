"""The way of a member from its files to a state with which it can take part in elections. Cluster specification 5.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace.archive.client import calls
from headrace.cluster.errors import ClusterTerminalError
from headrace.cluster.member.start_limits import containers_run
from headrace.cluster.member.start_plan import (
    check_log_is_known,
    check_log_is_whole,
    check_nothing_is_missing,
    check_vote,
    find_plan,
)
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.log_recording import LogRecording
    from headrace.cluster.member.services import Services
    from headrace.cluster.member.snapshots import Snapshots

__all__ = ["recovered"]


def recovered(
    context: Context, services: Services, snapshots: Snapshots, recording_of_log: LogRecording
) -> Task[None]:
    """Goes on once module and services have loaded the latest snapshot.

    Raises:
        ClusterFileError: A file is damaged, or does not belong to the others.
        ClusterTerminalError: A service could not start, or a part of the log is missing.
        HeadraceError: The archive refuses, or is gone.
    """
    yield from context.archive.connected()
    last = context.recording_log.last_term
    if last is not None:
        # Before the archive is asked to stop what may be another cluster's recording.
        yield from find_plan(context)
        yield from context.archive.asked(calls.stop_recording_by_id(last.recording_id))
        yield from recording_of_log.stopped(last.recording_id)
    yield from check_log_is_known(context)
    recording = yield from find_plan(context)
    yield from check_nothing_is_missing(context, recording)
    check_log_is_whole(context, recording)
    check_vote(context)
    plan = context.plan
    assert plan is not None, "there is a plan once it was found"
    module = plan.snapshots[0] if plan.snapshots else None
    position = 0 if module is None else module.log_position
    services.open()
    recovery = context.counters.add_recovery(
        NULL_VALUE if module is None else module.leadership_term_id,
        position,
        0 if module is None else module.timestamp,
        tuple(entry.recording_id for entry in plan.snapshots[1:]),
    )
    if module is not None:
        yield from snapshots.loaded(module)
    context.commit_position = position
    acks = yield from services.acked(position, containers_run(context, services))
    recovery.close()
    failed = services.failed(acks)
    if failed:
        raise ClusterTerminalError(
            f"failed to start clustered service(s): service_id={', '.join(map(str, failed))}; the error log of the "
            "service says why"
        )
