"""The streams from a service that leads to its clients. Cluster specification 7.4."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace._base.exceptions import HeadraceError

if TYPE_CHECKING:
    from headrace.client import Client, Pending, Publication
    from headrace.cluster.common.log import AgentLog
    from headrace.cluster.service.session import ClientSession

__all__ = ["connected"]


def connected(client: Client, sessions: Iterable[ClientSession], log: AgentLog) -> Task[None]:
    """Open streams to clients. One that cannot be opened is told of: its client gets no answers.

    They are shared publications: the consensus module of the node has the same, so that the client sees one stream.
    """
    asked: list[tuple[ClientSession, Pending[Publication]]] = []
    try:
        for session in sessions:
            try:
                pending = client.request_publication(session.response_channel, session.response_stream_id)
            except HeadraceError as refusal:
                _warn(session, refusal, log)
            else:
                asked.append((session, pending))
        while asked:
            session, pending = asked[-1]
            try:
                session.publication = pending.poll()
            except HeadraceError as refusal:
                if client.is_closed:
                    raise
                _warn(session, refusal, log)
            else:
                if session.publication is None:
                    yield
                    continue
            asked.pop()
    except GeneratorExit:
        for _, pending in asked:
            pending.cancel()
        raise


def _warn(session: ClientSession, refusal: HeadraceError, log: AgentLog) -> None:
    log.warning(
        "no stream to a client, which gets no answers",
        f"cluster_session_id={session.id} response_channel={session.response_channel}: {refusal}",
    )
