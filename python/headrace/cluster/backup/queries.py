"""Asking the members of a cluster, one after the other, what there is to copy. Cluster specification 8.5, 8.6."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from headrace._agent.tasks import Task, added, within
from headrace._base.exceptions import RegistrationError
from headrace._base.results import OfferResult
from headrace.channel import ChannelUri
from headrace.cluster.backup.config import FOLLOWER, LEADER
from headrace.cluster.client.connecting import PROTOCOL_VERSION, supplied
from headrace.cluster.errors import ClusterAuthenticationError, ClusterError
from headrace.cluster.protocol.codes import EventCode
from headrace.cluster.protocol.consensus import BackupQuery, BackupResponse
from headrace.cluster.protocol.messages import MessageError, decode, encode
from headrace.cluster.protocol.session import Challenge, ChallengeResponse, SessionEvent
from headrace.positions import NULL_VALUE
from headrace.security.credentials import supplier_of

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication, Subscription
    from headrace.clock import Deadline
    from headrace.cluster.backup.context import Context

__all__ = ["NoAnswerError", "Queries"]

_LATEST = (1 << 63) - 1
_ANSWERS_A_TURN = 10
# A member that asks on and on is not one.
_CHALLENGES_MAX = 16
_NS_PER_S = 1_000_000_000


class NoAnswerError(ClusterError):
    """No member has given an answer that the backup can use; the text says why of each."""


class Queries:
    """Asks members. Its owner polls it each turn.

    Args:
        context: Settings, and what the other parts use.
        chance: The order in which members are asked.
    """

    def __init__(self, context: Context, chance: random.Random) -> None:
        self._context = context
        config = context.config
        self._endpoints = list(config.endpoints)
        chance.shuffle(self._endpoints)
        self._credentials = supplier_of(config.credentials)
        self.subscription: Subscription = context.client.add_subscription(
            config.consensus_channel, config.consensus_stream_id
        )
        # Of the last request; answers to others count no more.
        self._correlation_id = NULL_VALUE
        self._answers: list[BackupResponse | SessionEvent | Challenge] = []

    def poll(self) -> int:
        """Take what members say."""
        return self.subscription.poll(lambda data, _: self._hear(data), _ANSWERS_A_TURN)

    def _hear(self, data: bytes) -> None:
        try:
            message = decode(data)
        except MessageError as wrong:
            self._context.log.warning("a message to the backup cannot be decoded", str(wrong))
            return
        is_answer = isinstance(message, BackupResponse | SessionEvent | Challenge)
        if is_answer and message.correlation_id == self._correlation_id:
            self._answers.append(message)

    def answered(self) -> Task[BackupResponse]:
        """The answer of the first member that gives one; the member that answered last is asked first.

        Raises:
            NoAnswerError: None of the members does.
            ClusterAuthenticationError: A member does not accept the backup's credentials.
        """
        reasons = []
        for _ in range(len(self._endpoints)):
            try:
                return (yield from self._asked(self._endpoints[0]))
            except (NoAnswerError, RegistrationError) as failure:
                reasons.append(f"{self._endpoints[0]}: {failure}")
                self.leave_member()
        raise NoAnswerError(f"no member tells what to copy: {'; '.join(reasons)}")

    def leave_member(self) -> None:
        """Ask the next member first; of a single one, the same again."""
        self._endpoints.append(self._endpoints.pop(0))

    def _asked(self, endpoint: str) -> Task[BackupResponse]:
        context = self._context
        config = context.config
        deadline = context.clock.deadline(config.response_timeout_ns / _NS_PER_S)
        publication = yield from added(
            context.client.request_exclusive_publication(
                config.queries_to(endpoint), config.consensus_stream_id
            )
        )
        with publication:
            yield from within(
                deadline,
                lambda: publication.is_connected and self._response_channel is not None,
                lambda: NoAnswerError("does not listen"),
            )
            answer = yield from self._answered(publication, self._query(), deadline)
            challenges = 0
            while isinstance(answer, Challenge):
                challenges += 1
                if challenges > _CHALLENGES_MAX:
                    raise NoAnswerError(f"has sent {challenges} challenges, above {_CHALLENGES_MAX}")
                answer = yield from self._answered(publication, self._proof(answer), deadline)
        self._correlation_id = NULL_VALUE
        return self._usable(answer)

    @property
    def _response_channel(self) -> str | None:
        """Where members answer, once the driver has chosen the port."""
        channel = self._context.config.consensus_channel
        return self.subscription.resolved_channel if ChannelUri(channel).is_port_open else channel

    def _answered(
        self, publication: ExclusivePublication, request: Any, deadline: Deadline
    ) -> Task[BackupResponse | SessionEvent | Challenge]:
        self._correlation_id = request.correlation_id
        self._answers.clear()
        data = encode(request)
        while (result := publication.offer(data)) < 0:
            if result in (OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED) or deadline.is_over:
                raise NoAnswerError(f"does not take the query: {result!r}")
            yield
        yield from within(
            deadline,
            lambda: self._answers,
            lambda: NoAnswerError(
                f"does not answer; it sends to {self._response_channel}, which must lead to this machine, and does not "
                "answer during an election"
            ),
        )
        return self._answers[0]

    def _query(self) -> BackupQuery:
        context = self._context
        channel = self._response_channel
        assert channel is not None, "waited for"
        return BackupQuery(
            correlation_id=context.client.next_correlation_id(),
            response_stream_id=context.config.consensus_stream_id,
            version=PROTOCOL_VERSION,
            log_position=_LATEST,
            response_channel=channel,
            encoded_credentials=supplied(self._credentials.encoded_credentials),
        )

    def _proof(self, challenge: Challenge) -> ChallengeResponse:
        return ChallengeResponse(
            correlation_id=self._context.client.next_correlation_id(),
            cluster_session_id=challenge.cluster_session_id,
            encoded_credentials=supplied(lambda: self._credentials.on_challenge(challenge.encoded_challenge)),
        )

    def _usable(self, answer: BackupResponse | SessionEvent) -> BackupResponse:
        if isinstance(answer, SessionEvent):
            if answer.code is EventCode.AUTHENTICATION_REJECTED:
                text = f"{answer.code.name}: {answer.detail or 'the cluster rejects the credentials'}"
                raise ClusterAuthenticationError(
                    f"{text}: give the credentials= of a user whom the cluster authorises to back it up"
                )
            raise NoAnswerError(f"{answer.code.name} {answer.detail}".rstrip())
        wanted, is_leader = self._context.config.source_type, answer.member_id == answer.leader_member_id
        if answer.member_id == NULL_VALUE:
            raise NoAnswerError("does not say which member it is")
        if (wanted == LEADER and not is_leader) or (wanted == FOLLOWER and is_leader):
            role = "leads" if is_leader else "does not lead"
            raise NoAnswerError(f"member {answer.member_id} {role}, where source_type={wanted}")
        return answer
