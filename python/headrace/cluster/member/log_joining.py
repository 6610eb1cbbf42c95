"""Has the services of a member join a log. Cluster specification 4.7."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace.cluster.member.start_limits import services_join
from headrace.cluster.protocol.control import JoinLog

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.services import Services

__all__ = ["services_joined"]


def services_joined(
    context: Context, services: Services, join: JoinLog, check: Callable[[], None] = lambda: None
) -> Task[None]:
    """Goes on once all services have joined.

    Args:
        context: What the module's parts share.
        services: Which.
        join: The log, and where it is joined.
        check: Called in each turn of the wait; raises if there is nothing to wait for.
    """
    if services.count:
        services.send(join)
    # One that led may have much to read before it joins anew; when it ends, the driver says so.
    is_late = services_join(context, services, join.log_channel) if join.is_startup else None

    def check_all() -> None:
        check()
        if is_late is not None:
            is_late()

    yield from services.acked(join.log_position, check_all)
