"""The rows of a replicated service: what a container gives to a Python handler, live and when a node starts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from time import perf_counter_ns, sleep
from typing import TYPE_CHECKING

import headrace
from benches.report import Measurement, Row
from headrace.cluster import ClientSession, ClusteredService, ClusterNode, Role, ServiceContainer
from headrace.cluster.common.counters import ClusterCounter, recovery_key
from headrace.cluster.protocol.control import JoinLog
from headrace.cluster.protocol.header import pack_header
from headrace.cluster.protocol.log import SessionOpenEvent
from headrace.cluster.protocol.messages import decode, encode
from headrace.cluster.protocol.session import SessionConnectRequest, SessionEvent

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.cluster.service.batch_runs import MessageBatch

ROUNDS = 10
BATCH = 100_000
SESSIONS = 10
PAYLOAD = bytes(100)
CONTROL = "aeron:ipc?term-length=128k"
LOG = "aeron:ipc?term-length=64m"
FRAGMENT_LIMIT = 50
REPLAYED = 1_000_000
REPLAYS = 5
NODE_STREAM = "aeron:ipc?term-length=16m"
INGRESS_STREAM_ID, EGRESS_STREAM_ID = 101, 102
TIMEOUT_S = 120.0


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


class Replayed(Counting):
    """Counts, and notes when the log began and when the last of so many messages came."""

    begin_ns = end_ns = 0

    def on_new_leadership_term(self, *_: object) -> None:
        """The first entry of a log."""
        self.begin_ns = self.begin_ns or perf_counter_ns()

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """See the base class."""
        self.count += 1
        if self.count == REPLAYED:
            self.end_ns = perf_counter_ns()


def _node(service: ClusteredService, driver: headrace.MediaDriver, directory: str) -> ClusterNode:
    return ClusterNode(service, directory=directory, driver=driver, log_channel=NODE_STREAM)


def _write_log(driver: headrace.MediaDriver, directory: str) -> None:
    """A log with so many messages of one client."""
    service = Counting()
    with _node(service, driver, directory) as node, node.connect_driver() as client:
        node.wait_until_leader()
        egress = client.add_subscription(NODE_STREAM, EGRESS_STREAM_ID)
        ingress = client.add_exclusive_publication(NODE_STREAM, INGRESS_STREAM_ID)
        request = SessionConnectRequest(
            correlation_id=1, response_stream_id=EGRESS_STREAM_ID, response_channel=NODE_STREAM
        )
        ingress.offer_blocking(encode(request))
        answer = egress.receive(TIMEOUT_S)
        assert answer is not None, "the node answers"
        event: SessionEvent = decode(answer.payload)
        message = pack_header(event.leadership_term_id, event.cluster_session_id, 0) + PAYLOAD
        block = [message] * 1_000
        for _ in range(REPLAYED // len(block)):
            ingress.offer_batch_blocking(block, timeout_s=TIMEOUT_S)
        deadline = perf_counter_ns() + int(TIMEOUT_S * 1e9)
        while service.count < REPLAYED:
            assert perf_counter_ns() < deadline, (
                f"{service.count} messages of {REPLAYED} came in {TIMEOUT_S} s"
            )
            sleep(0.01)


def _replayed(driver: headrace.MediaDriver, directory: str) -> float:
    """Messages a second that a service gets when its node starts."""
    service = Replayed()
    with _node(service, driver, directory) as node:
        node.wait_until_leader(TIMEOUT_S)
    return REPLAYED * 1e9 / (service.end_ns - service.begin_ns)


def cluster_replay() -> Row:
    """From the recording of the log to a Python handler, when a node starts."""
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory,
    ):
        _write_log(driver, directory)
        rates = [_replayed(driver, directory) for _ in range(REPLAYS)]
    return Row(
        name="cluster-replay",
        unit="entries/s",
        ours=Measurement(observations=rates),
        peer_name="none",
        peer=None,
        target=">= 1 M/s",
        configuration=(
            f"a ClusterNode that starts without a snapshot on a log of {REPLAYED:,} messages of {len(PAYLOAD)} bytes, "
            "in the page cache, with a handler that counts; from the log's first entry to its last, replayed by the "
            "node's archive and read by consensus module and service; embedded driver in mode SHARED"
        ),
    )
