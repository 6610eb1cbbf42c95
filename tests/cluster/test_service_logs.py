"""The logs that a service joins, one after the other: as a follower and as a leader, also within a message."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator

import pytest

from headrace import OfferResult
from headrace.archive import Archive
from headrace.client import Subscription
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.header import HEADER_LENGTH
from headrace.cluster.service.batch_runs import MessageBatch
from headrace.testing import World
from tests.cluster.scripted import EGRESS, Recorder, Rig, ScriptedModule

REPLAY, REPLAY_STREAM = "aeron:ipc?term-length=64k", 103
# Of a message of five fragments, of the length that the MTU allows.
FRAME = 1408
LONG = bytes(range(200)) * 33
SESSION_ID_OFFSET = 12


@pytest.fixture
def rig() -> Iterator[Rig]:
    with World(7) as world:
        yield Rig(world)


def roles(service: Recorder) -> list[Role]:
    return [call[1] for call in service.calls if call[0] == "on_role_change"]


def heard(answers: Subscription) -> list[bytes]:
    found: list[bytes] = []
    answers.poll(lambda data, _: found.append(data[HEADER_LENGTH:]), 100)
    return found


# --- roles ---------------------------------------------------------------------------------------------------------


def test_a_log_is_left_where_the_next_one_is_joined(rig: Rig) -> None:
    """An election: the log goes on under another session, and this member follows."""
    service = Recorder()
    module, _ = rig.started(service)
    end = module.term()
    rig.until(lambda: "on_new_leadership_term" in service.names())
    module.continue_log(end)
    ack = module.join(Role.FOLLOWER)
    assert ack.log_position == end
    module.message(1, b"next")
    rig.until(lambda: service.state == [b"next"])
    assert roles(service) == [Role.LEADER, Role.FOLLOWER]


def test_a_member_answers_while_it_leads_and_neither_before_nor_after(rig: Rig) -> None:
    service = Recorder()
    module = rig.module()
    container = rig.container(service)
    answers = rig.node.connect().add_subscription(EGRESS, 102)
    module.acked()

    def ask(question: bytes) -> int:
        position = module.message(5, question)
        rig.until(lambda: container._position == position)
        return position

    module.join(Role.FOLLOWER)
    module.term()
    module.open(5)
    end = ask(b"before")
    assert not answers.images
    module.continue_log(end)
    module.join(Role.LEADER)
    rig.until(lambda: answers.images)
    end = ask(b"meanwhile")
    module.continue_log(end)
    module.join(Role.FOLLOWER)
    ask(b"after")
    rig.until(lambda: not answers.images or answers.images[0].end_of_stream_position is not None)
    assert heard(answers) == [b"re:meanwhile"]
    assert service.answers == [1, service.answers[1], 1]
    assert service.answers[1] != 1
    assert roles(service) == [Role.LEADER, Role.FOLLOWER]
    assert rig.errors == []


def test_a_leader_at_the_start_of_the_cluster_opens_no_streams_to_sessions_of_before(rig: Rig) -> None:
    service = Recorder()
    module = rig.module()
    rig.container(service)
    answers = rig.node.connect().add_subscription(EGRESS, 102)
    module.acked()
    module.join(Role.FOLLOWER, is_startup=True)
    module.term()
    end = module.open(5)
    module.continue_log(end)
    module.join(Role.LEADER, is_startup=True)
    module.message(5, b"question")
    rig.until(lambda: service.answers)
    assert service.answers == [OfferResult.NOT_CONNECTED]
    assert not answers.images


def test_an_image_that_is_lost_leaves_the_log_and_the_lead(rig: Rig) -> None:
    service = Recorder()
    module, container = rig.started(service)
    module.term()
    module.log.close()
    rig.until(lambda: len(roles(service)) == 2)
    assert service.calls[-1] == ("on_role_change", Role.FOLLOWER)
    assert container.failure is None


@pytest.mark.parametrize(
    "log", ["aeron:ipc?term-length=64k", "aeron:udp?endpoint=node:9006|ssc=true|term-length=64k"]
)
def test_a_log_that_ends_is_read_up_to_what_is_committed_of_it_whenever_that_is(rig: Rig, log: str) -> None:
    """Its end was appended, and agreed upon only in the next term."""
    service = Recorder()
    module = rig.module()
    container = rig.container(service)
    module.acked()
    module.log = module.client.add_exclusive_publication(log, 100)
    module.join(Role.LEADER, log_channel=log if "ipc" in log else f"aeron-spy:{log}")
    module.term()
    committed = module.message(1, b"committed")
    end = module.message(1, b"later", commit=False)
    module.log.close()
    rig.world.run_for(15)
    assert (service.state, container._position) == ([b"committed"], committed)
    assert roles(service) == [Role.LEADER]
    module.commit.value = end
    rig.until(lambda: len(roles(service)) == 2)
    module.continue_log(end)
    assert module.join(Role.LEADER).log_position == end
    module.message(1, b"next")
    rig.until(lambda: service.state == [b"committed", b"later", b"next"])
    assert roles(service) == [Role.LEADER, Role.FOLLOWER, Role.LEADER]


def test_what_was_not_committed_of_a_log_is_not_read_when_the_next_one_is_joined(rig: Rig) -> None:
    service = Recorder()
    module, _ = rig.started(service)
    module.term()
    committed = module.message(1, b"committed")
    module.message(1, b"never", commit=False)
    module.log.close()
    module.continue_log(committed)
    assert module.join(Role.FOLLOWER).log_position == committed
    module.message(1, b"instead")
    rig.until(lambda: service.state == [b"committed", b"instead"])


def test_a_snapshot_that_is_under_way_is_acknowledged_before_the_next_log_is_joined(rig: Rig) -> None:
    service = Recorder()
    module, _ = rig.started(service)
    module.term()
    position = module.snapshot()
    module.log.close()
    module.continue_log(position)
    snapshot = module.join(Role.FOLLOWER)
    joined = module.acked()
    assert [one.log_position for one in (snapshot, joined)] == [position, position]
    assert snapshot.relevant_id >= 0
    assert joined.relevant_id == -1
    module.message(1, b"next")
    rig.until(lambda: service.state == [b"next"])


class Followed:
    """A leader on another node, whose log the scripted module follows: as the specification has it in 4.4."""

    destination = "aeron:udp?endpoint=node:9004"

    def __init__(self, rig: Rig, module: ScriptedModule) -> None:
        client = rig.world.add_node("leader").connect()
        place = "init-term-id=0|term-id=0|term-offset=0|term-length=64k"
        log = client.add_exclusive_publication(f"aeron:udp?control-mode=manual|control=leader:0|{place}", 100)
        log.add_destination(self.destination)
        first, second = (module.client.next_correlation_id() for _ in range(2))
        self.channel = (
            f"aeron:udp?tags={first},{second}|control-mode=manual|session-id={log.session_id}|group=true|rejoin=false|"
            "alias=log-cm"
        )
        self.subscription = module.client.add_subscription(self.channel, 100)
        self.subscription.add_destination(self.destination)
        rig.until(lambda: self.subscription.images)
        module.log = log

    def read(self) -> None:
        """As the module does."""
        self.subscription.poll(lambda *_: None, 100)


def test_a_follower_reads_the_log_through_the_destinations_of_its_module(rig: Rig) -> None:
    service = Recorder()
    module = rig.module()
    container = rig.container(service)
    module.acked()
    followed = Followed(rig, module)
    # The leader goes on while the follower joins; the module reads on only once its services have joined.
    module.term(log_session_id=module.log.session_id)
    first = module.message(1, b"first")
    rig.world.run_for(0.1)
    ack = module.join(Role.FOLLOWER, log_channel=followed.channel, log_position=0)
    assert ack.log_position == 0
    rig.until(lambda: service.state == [b"first"])
    followed.read()
    labels = [one.label for one in module.client.counters if "100" in one.label and "sub-pos" in one.label]
    assert sum("alias=log-sc-0" in label for label in labels) == 1, labels
    assert service.cluster is not None
    assert (service.cluster.role, service.cluster.log_position) == (Role.FOLLOWER, first)
    # The module leaves the log; what has come of it is agreed upon only later.
    second = module.message(1, b"second", commit=False)
    rig.until(lambda: followed.read() or followed.subscription.images[0].position == second)
    followed.subscription.remove_destination(followed.destination)
    followed.subscription.close()
    module.log.close()
    rig.world.run_for(15)
    assert (service.state, container.failure) == ([b"first"], None)
    module.commit.value = second
    rig.until(lambda: service.state == [b"first", b"second"])
    module.continue_log(second)
    module.join(Role.LEADER)
    module.message(1, b"third")
    rig.until(lambda: service.state == [b"first", b"second", b"third"])
    assert roles(service) == [Role.LEADER]


# --- within a message ----------------------------------------------------------------------------------------------


class Viewing(Recorder):
    message_views = True


class Batches(Recorder):
    def on_session_messages(self, batch: MessageBatch) -> None:
        for message, session_id, timestamp, position in zip(
            batch, batch.session_ids, batch.timestamps, batch.positions, strict=True
        ):
            assert self.cluster is not None
            session = self.cluster.session(int(session_id))
            self.on_session_message(session, int(timestamp), message, int(position))


class Lab:
    """A service that has read the first entry of a log, of which the rest is known."""

    def __init__(self, rig: Rig, service: Recorder) -> None:
        self.rig = rig
        self.module, self.container = rig.started(service)
        self.archive = Archive.connect(client=rig.node.connect(), control_channel="aeron:ipc?term-length=64k")
        self.archive.start_recording(f"aeron:ipc?session-id={self.module.log.session_id}", 100)
        self.begin = self.module.term()
        self.end = self.module.message(-1, LONG, commit=False)
        (recording,) = self.archive.list_recordings()
        self.recording_id = recording.recording_id
        rig.until(lambda: self.archive.recording_position(self.recording_id) == self.end)

    def commit(self, position: int) -> None:
        """Have the service read up to there."""
        self.module.commit.value = position
        self.rig.until(lambda: self.container._position == position)

    def frames(self, begin: int, end: int) -> bytes:
        """A part of the log as it was recorded."""
        blocks: list[bytes] = []
        client = self.rig.node.connect()
        with client.add_subscription(REPLAY, 999) as replayed:
            self.archive.start_replay(self.recording_id, REPLAY, 999, position=begin, length=end - begin)
            self.rig.until(
                lambda: (
                    replayed.block_poll(lambda data, *_: blocks.append(data), 1 << 20)
                    and sum(map(len, blocks)) == end - begin
                )
            )
        return b"".join(blocks)

    def replay(self, begin: int, end: int) -> None:
        """Join a replay of a part of the log."""
        replay_id = self.archive.start_replay(
            self.recording_id, REPLAY, REPLAY_STREAM, position=begin, length=end - begin
        )
        (session_id,) = struct.unpack("<i", struct.pack("<I", replay_id & 0xFFFF_FFFF))
        self.module.join(
            Role.FOLLOWER,
            is_startup=True,
            log_position=begin,
            max_log_position=end,
            log_session_id=session_id,
            log_stream_id=REPLAY_STREAM,
            log_channel=f"{REPLAY}|session-id={session_id}",
        )

    def live(self, begin: int, end: int) -> None:
        """Join the log of a leader that has the same."""
        self.module.continue_log(begin)
        log = self.module.log
        self.module.join(Role.FOLLOWER)
        frames = bytearray(self.frames(begin, end))
        for offset in range(0, end - begin, FRAME):
            struct.pack_into("<ii", frames, offset + SESSION_ID_OFFSET, log.session_id, log.stream_id)
        assert log.offer_block(bytes(frames)) > 0


LEFT_AFTER = [(1,), (2,), (3,), (4,), (1, 2, 3, 4)]


@pytest.mark.parametrize("how", [Lab.replay, Lab.live], ids=["replay", "live"])
@pytest.mark.parametrize("left_after", LEFT_AFTER, ids=str)
@pytest.mark.parametrize("kind", [Recorder, Viewing, Batches])
def test_a_message_within_which_logs_are_left_comes_whole_and_once(
    rig: Rig, kind: type[Recorder], left_after: tuple[int, ...], how: Callable[[Lab, int, int], None]
) -> None:
    """A leader of Aeron's commits within messages, so that elections come there too."""
    service = kind()
    lab = Lab(rig, service)
    module, end = lab.module, lab.end
    assert 4 * FRAME < end - lab.begin < 5 * FRAME, "five fragments"
    places = [lab.begin + FRAME * count for count in left_after]
    lab.commit(places[0])
    for place, following in itertools.pairwise([*places, end]):
        how(lab, place, following if how is Lab.replay else end)
        assert service.state == []
        lab.commit(following)
    rig.until(lambda: service.state == [LONG])
    module.continue_log(end)
    module.join(Role.FOLLOWER)
    last = module.message(-1, b"next")
    rig.until(lambda: len(service.state) == 2)
    noted = [call[3:] for call in service.calls if call[0] == "on_session_message"]
    assert noted == [(LONG, end), (b"next", last)]
    assert rig.errors == []
    assert lab.container.failure is None


@pytest.mark.parametrize("kind", [Recorder, Viewing, Batches])
def test_a_message_that_the_next_leader_does_not_have_whole_is_none(rig: Rig, kind: type[Recorder]) -> None:
    """The next term begins within it."""
    service = kind()
    lab = Lab(rig, service)
    within = lab.begin + 2 * FRAME
    lab.commit(within)
    lab.module.continue_log(within)
    lab.module.join(Role.FOLLOWER)
    lab.module.message(-1, LONG[::-1])
    rig.until(lambda: service.state == [LONG[::-1]])
    assert lab.container.failure is None
