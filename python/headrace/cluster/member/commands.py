"""What operators ask of a leader by a message: what takes longer than a toggle, or needs an argument. One at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._agent.tasks import RunningTask, Task
from headrace.cluster.errors import ClusterError
from headrace.cluster.member.states import Command, ModuleState
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.control import OperatorRequest, OperatorResponse
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headrace.cluster.member.context import Context

__all__ = ["Commands"]


class Commands:
    """Carries out commands, and answers.

    Args:
        context: What the module's parts share.
        answer: Sends an answer to a tool.
        kinds: Of each command: what carries it out, given the member id and the text of the request; returns what to
            tell the operator, and raises :class:`ClusterError` with the reason where it is refused.
    """

    def __init__(
        self,
        context: Context,
        answer: Callable[[OperatorResponse], object],
        kinds: Mapping[Command, Callable[[int, str], Task[str]]],
    ) -> None:
        self._context = context
        self._answer = answer
        self._kinds = kinds
        self._running = RunningTask()
        self._request: OperatorRequest | None = None

    def on_request(self, request: OperatorRequest) -> None:
        """An operator asks; later steps do it."""
        refusal = self._refusal(request)
        if refusal:
            self._tell(request, is_done=False, text=refusal)
            return
        self._request = request
        self._running.begin(self._done(request))

    def _refusal(self, request: OperatorRequest) -> str:
        """Why it is refused at once; empty if it is not."""
        context = self._context
        if request.kind not in set(Command):
            return f"unknown command {request.kind}: the tool is of a later version than the member"
        if context.role is not Role.LEADER:
            leader_id = context.leader_member_id
            leader = "no leader is known" if leader_id == NULL_VALUE else f"member {leader_id} leads"
            return f"this member is not the leader: {leader}"
        if context.state is not ModuleState.ACTIVE:
            return f"the consensus module is {context.state.name}, but needs to be ACTIVE"
        if self._request is not None:
            return "another command is being carried out"
        return ""

    def _done(self, request: OperatorRequest) -> Task[None]:
        try:
            text = yield from self._kinds[Command(request.kind)](request.member_id, request.text)
        except ClusterError as refusal:
            self._finish(is_done=False, text=str(refusal))
        else:
            self._finish(is_done=True, text=text)

    def _finish(self, *, is_done: bool, text: str) -> None:
        request, self._request = self._request, None
        if request is not None:
            self._tell(request, is_done=is_done, text=text)

    def _tell(self, request: OperatorRequest, *, is_done: bool, text: str) -> None:
        if not is_done:
            self._context.log.warning("a command of an operator is not carried out", text)
        self._answer(
            OperatorResponse(
                correlation_id=request.correlation_id,
                is_done=is_done,
                text=text.encode("ascii", "replace").decode(),
            )
        )

    def do_work(self) -> int:
        """Go on; returns 1 when a command has ended."""
        return self._running.step()

    def leave(self) -> None:
        """The member leads no more."""
        self._running.close()
        self._finish(
            is_done=False,
            text="the member leads no more: whether the command takes effect, the next leader knows",
        )
