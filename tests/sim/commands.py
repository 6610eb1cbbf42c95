"""An operator's command to a leader in a simulated world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.member.states import Command
from headrace.cluster.protocol.control import OperatorRequest, OperatorResponse

if TYPE_CHECKING:
    from headrace.testing.cluster import ClusterMember


class Asked:
    """A command, and its answer once there is one.

    Args:
        member: Which member is asked.
        command: What for.
        member_id: Of the request.
        text: Of the request.
    """

    def __init__(self, member: ClusterMember, command: Command, member_id: int = -1, text: str = "") -> None:
        self.answer: OperatorResponse | None = None
        assert member.module is not None
        commands = member.module._operators.commands
        commands._answer = self._take
        commands.on_request(
            OperatorRequest(correlation_id=1, kind=int(command), member_id=member_id, text=text)
        )

    def _take(self, answer: OperatorResponse) -> None:
        self.answer = answer

    @property
    def text(self) -> str:
        """What the answer says."""
        return "" if self.answer is None else self.answer.text
