"""How long a start waits for parts of the member, and which part is missing when that is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.cluster.common.counters import container_runs
from headrace.cluster.errors import ClusterTerminalError

if TYPE_CHECKING:
    from headrace.clock import Deadline
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.services import Services

__all__ = ["containers_run", "services_join"]


def _deadline(context: Context) -> Deadline:
    return context.client.clock.deadline(context.config.startup_canvass_timeout_ns / 1e9)


def _limit_text(context: Context) -> str:
    return f"within startup_canvass_timeout_ns={context.config.startup_canvass_timeout_ns}"


def _ids(service_ids: tuple[int, ...]) -> str:
    return ", ".join(map(str, service_ids))


def containers_run(context: Context, services: Services) -> Callable[[], None]:
    """A check for a wait in which services load their state: raises when one has no container for too long.

    One that has a container may load for as long as that takes: when it ends, the driver says so.
    """
    deadline = _deadline(context)

    def check() -> None:
        nonlocal deadline
        if not deadline.is_over:
            return
        client, cluster_id = context.client, context.config.cluster_id
        absent = tuple(one for one in services.missing if not container_runs(client, cluster_id, one))
        if absent:
            raise ClusterTerminalError(
                f"service_id={_ids(absent)} of cluster_id={cluster_id} has no container on the driver, and none has "
                f"come {_limit_text(context)}: start its container, and the module again"
            )
        deadline = _deadline(context)

    return check


def services_join(context: Context, services: Services, log: str) -> Callable[[], None]:
    """A check for a wait in which services, which have nothing else to do, join a log."""
    deadline = _deadline(context)

    def check() -> None:
        if deadline.is_over:
            raise ClusterTerminalError(
                f"service_id={_ids(services.missing)} has not joined {log} {_limit_text(context)}: the error log of "
                "its container says why; start the member again"
            )

    return check
