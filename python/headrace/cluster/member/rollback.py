"""Undoes what a leader did that is not in the log on which members agree. Cluster specification 5.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.protocol.codes import EventCode

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.member.session_opening import SessionOpening

__all__ = ["roll_back"]


def roll_back(context: Context, egress: Egress, opening: SessionOpening) -> None:
    """Go back to the state at the commit position, and tell the clients whose sessions are gone."""
    gone, state = context.applied.restore_uncommitted(context.commit_position)
    for session in gone:
        egress.event(session, context.leadership_term_id, EventCode.CLOSED, "election")
        session.disconnect()
    opening.close_all(context.leadership_term_id, "election")
    for session in context.applied.sessions:
        session.disconnect()
    if state is not None:
        context.enter(state, "entries without a majority are undone")
