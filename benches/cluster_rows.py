"""The row of a replicated service: what a container gives to a Python handler."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING

import headrace
from benches.report import Measurement, Row
from headrace.cluster import ClientSession, ClusteredService, Role, ServiceContainer
from headrace.cluster.ground.counters import ClusterCounter, recovery_key
from headrace.cluster.protocol.control import JoinLog
from headrace.cluster.protocol.header import pack_header
from headrace.cluster.protocol.log import SessionOpenEvent
from headrace.cluster.protocol.messages import encode

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.cluster.service.batches import MessageBatch

ROUNDS = 10
BATCH = 100_000
SESSIONS = 10
PAYLOAD = bytes(100)
CONTROL = "aeron:ipc?term-length=128k"
LOG = "aeron:ipc?term-length=64m"
FRAGMENT_LIMIT = 50


class Counting(ClusteredService):
    """Counts."""

    count = 0

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """See the base class."""
        self.count += 1


class Echoing(Counting):
    """Counts and answers."""

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """See the base class."""
        self.count += 1
        if session is not None:
            session.offer(message)


class Batching(Counting):
    """Counts messages of batches."""

    def on_session_messages(self, batch: MessageBatch) -> None:
        """Counts."""
        self.count += len(batch)


class Rig:
    """A container on a log that this program writes; it says what is committed, as a consensus module does."""

    def __init__(self, client: Client, driver: headrace.MediaDriver, directory: str) -> None:
        self._client = client
        self._commit = client.add_counter(ClusterCounter.COMMIT_POSITION, bytes(4), "commit")
        self._recovery = client.add_counter(
            ClusterCounter.RECOVERY_STATE, recovery_key(-1, 0, 0, 0, ()), "recovery"
        )
        self._control = client.add_publication(CONTROL, 104)
        self._acks = client.add_subscription(CONTROL, 105)
        self._egress = client.add_subscription(LOG, 102)
        self._log = client.add_exclusive_publication(LOG, 100)
        self._driver, self._directory = driver, directory

    def rate(self, service: Counting) -> Measurement:
        """Messages a second from the log to the handler."""
        acks: list[bytes] = []
        with ServiceContainer(
            service, driver=self._driver, is_invoked=True, cluster_directory=self._directory
        ) as container:

            def until(is_done: Callable[[], object]) -> None:
                while not is_done():
                    container.do_work()
                    self._acks.poll(lambda data, _: acks.append(data))

            until(lambda: len(acks) == 1)
            join = JoinLog(
                log_position=self._log.position or 0,
                max_log_position=1 << 62,
                member_id=0,
                log_session_id=self._log.session_id,
                log_stream_id=100,
                is_startup=False,
                role=Role.LEADER,
                log_channel=LOG,
            )
            until(lambda: self._control.offer(encode(join)) > 0)
            until(lambda: len(acks) == 2)
            for session_id in range(SESSIONS):
                self._open(session_id)
            messages = [pack_header(1, index % SESSIONS, index) + PAYLOAD for index in range(BATCH)]
            return Measurement(
                observations=[self._round(container, service, messages) for _ in range(ROUNDS)]
            )

    def _open(self, session_id: int) -> None:
        event = SessionOpenEvent(
            leadership_term_id=1,
            correlation_id=session_id,
            cluster_session_id=session_id,
            timestamp=0,
            response_stream_id=102,
            response_channel=LOG,
        )
        headrace.accepted(self._log.offer(encode(event)))

    def _round(self, container: ServiceContainer, service: Counting, messages: list[bytes]) -> float:
        self._log.offer_batch_blocking(messages)
        self._commit.value = self._log.position or 0
        end = service.count + len(messages)
        start = perf_counter_ns()
        while service.count < end:
            container.do_work()
        duration_ns = perf_counter_ns() - start
        while len(self._egress.poll_batch(BATCH)):
            pass
        return len(messages) * 1e9 / duration_ns


def _polled() -> Measurement:
    """The same messages from a subscription to a handler that counts them."""
    rates: list[float] = []
    with headrace.MediaDriver.embedded() as driver, headrace.connect(driver=driver) as client:
        subscription = client.add_subscription(LOG, 100)
        publication = client.add_exclusive_publication(LOG, 100)
        publication.wait_until_connected()
        messages = [pack_header(1, index % SESSIONS, index) + PAYLOAD for index in range(BATCH)]
        count = 0

        def take(data: bytes, header: headrace.Header) -> None:
            nonlocal count
            count += 1

        for _ in range(ROUNDS):
            publication.offer_batch_blocking(messages)
            count = 0
            start = perf_counter_ns()
            while count < BATCH:
                subscription.poll(take, FRAGMENT_LIMIT)
            rates.append(BATCH * 1e9 / (perf_counter_ns() - start))
    return Measurement(observations=rates)


def _delivered(service: Counting) -> Measurement:
    with (
        headrace.MediaDriver.embedded() as driver,
        headrace.connect(driver=driver) as client,
        tempfile.TemporaryDirectory() as directory,
    ):
        return Rig(client, driver, directory).rate(service)


def cluster_service_python() -> Row:
    """From the log to a Python handler, one message at a time."""
    counted, echoed, polled = _delivered(Counting()), _delivered(Echoing()), _polled()
    batched = _delivered(Batching())
    return Row(
        name="cluster-service-python",
        unit="msg/s",
        ours=counted,
        peer_name="headrace.Subscription.poll with a handler that counts",
        peer=polled,
        target=">= 1 M/s",
        configuration=(
            f"{len(PAYLOAD)}-byte messages of {SESSIONS} sessions, committed, in a log over IPC; whole turns of a "
            f"container with log_fragment_limit={FRAGMENT_LIMIT}, in the program's thread; a handler that "
            "counts; embedded driver"
        ),
        notes={"each answered, msg/s": echoed.value, "in batches, msg/s": batched.value},
    )
