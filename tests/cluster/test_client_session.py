"""An open session with a cluster: messages, keepalives, new leaders, lost streams, and how it ends."""

from __future__ import annotations

import contextlib
import random
import threading
from typing import Any

import pytest

import headrace
from headrace.cluster import (
    AdminRequestError,
    AdminResponseCode,
    ClientState,
    ClusterClient,
    ClusterMessage,
    ClusterTimeoutError,
    EventCode,
    SessionClosedError,
)
from headrace.cluster.client.states import CLIENT
from headrace.cluster.protocol.codes import AdminRequestType
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.session import (
    AdminRequest,
    AdminResponse,
    NewLeaderEvent,
    SessionConnectRequest,
    SessionEvent,
)
from headrace.testing import Link
from tests.cluster.client_lab import Lab, ScriptedMember

pytestmark = pytest.mark.sim

S = 1_000_000_000
DAY_NS = 86_400 * S


def received(lab: Lab, cluster: ClusterClient, count: int) -> list[bytes]:
    taken: list[ClusterMessage] = []

    def has_all() -> bool:
        cluster.poll(taken.append, count - len(taken))
        return len(taken) == count

    lab.world.run_until(has_all, within_s=30)
    return [message.payload for message in taken]


def until(lab: Lab, cluster: ClusterClient, state: ClientState, within_s: float = 10) -> None:
    """Polls until the client is in a state."""

    def is_reached() -> bool:
        if cluster.state is not state:
            with contextlib.suppress(headrace.HeadraceError):
                cluster.poll(lambda message: None)
        return cluster.state is state

    lab.world.run_until(is_reached, within_s=within_s)


# --- messages ------------------------------------------------------------------------------------------------------


def test_messages_come_back_in_order_each_once_whatever_their_length(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    lab.world.set_links(Link(loss=0.02, duplicate=0.02, reorder=0.05, jitter_s=200e-6))
    chance = random.Random(1)
    sent = [chance.randbytes(chance.choice((0, 1, 100, 5000))) for _ in range(300)]
    with lab.connect() as cluster:
        answers: list[bytes] = []
        for payload in sent:
            cluster.offer_blocking(payload, timeout_s=30)
            # The member waits for room, and so must not be let run into what nothing takes.
            lab.world.run_for(0.001)
            cluster.poll(lambda message: answers.append(message.payload))
        answers += received(lab, cluster, len(sent) - len(answers))
        assert answers == sent == member.payloads


def test_a_message_has_the_time_and_the_term_of_the_service(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    with lab.connect() as cluster:
        member.message(b"unasked", timestamp=4711)
        assert cluster.receive(5) == ClusterMessage(b"unasked", 4711, 0)


def test_parts_are_sent_as_one_message(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    with lab.connect() as cluster:
        assert cluster.offer([b"a", memoryview(b"b"), bytearray(b"c")]) > 0
        lab.world.run_until(lambda: member.payloads, within_s=5)
        assert member.payloads == [b"abc"]


@pytest.mark.parametrize(
    ("detail", "longest"), [("max-message-length=100", 100), ("", None), ("max-message-length=1e9", None)]
)
def test_what_is_too_long_for_the_log_is_refused_before_it_is_sent(
    lab: Lab, detail: str, longest: int | None
) -> None:
    """If the member says how long that is."""
    (member,) = lab.add_members(1)
    member.refuse(EventCode.OK, detail)
    with lab.connect() as cluster:
        cluster.offer_blocking(b"x" * 100)
        cluster.offer_blocking((b"x" * 60, memoryview(b"y" * 40)))
        assert [len(message) for message in received(lab, cluster, 2)] == [100, 100]
        for one in (b"x" * 101, (b"x" * 60, memoryview(b"y" * 41)), memoryview(b"x" * 101)):
            if longest is None:
                cluster.offer_blocking(one)
                continue
            with pytest.raises(
                headrace.ConfigError, match=r"^len\(data\)=101: must be at most 100, the length limit"
            ):
                cluster.offer(one)
        with pytest.raises(TypeError, match="bytes-like"):
            cluster.offer("text")
        cluster.offer_blocking(b"still there")
        expected = 1 if longest else 4
        assert received(lab, cluster, expected)[-1] == b"still there"


def test_messages_to_other_sessions_are_not_given(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    with lab.connect() as cluster:
        member.message(b"another's", session_id=99)
        member.event(EventCode.CLOSED, cluster_session_id=99, detail="another's")
        member.message(b"ours")
        message = cluster.receive(5)
        assert message is not None
        assert message.payload == b"ours"
        assert cluster.undecodable_count == 0


def test_what_is_not_understood_is_counted_logged_and_ignored(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    (member,) = lab.add_members(1)
    chance = random.Random(2)
    event = encode(
        NewLeaderEvent(
            leadership_term_id=5, cluster_session_id=1, leader_member_id=0, ingress_endpoints=lab.endpoints
        )
    )
    with lab.connect() as cluster:
        for _ in range(200):
            hostile = bytearray(event)
            hostile[0:8] = chance.randbytes(8)
            member.say(bytes(hostile[: chance.randrange(1, len(hostile))]))
        member.message(b"still there")
        message = cluster.receive(5)
        assert message is not None
        assert message.payload == b"still there"
        assert cluster.undecodable_count > 100
        logged = [record for record in caplog.records if "cannot be decoded" in record.message]
        assert 1 < len(logged) < 10


def test_on_message_has_the_messages_of_polls_without_a_handler(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    taken: list[ClusterMessage] = []
    with lab.connect(on_message=taken.append) as cluster:
        member.message(b"one")
        lab.world.run_until(lambda: cluster.poll(), within_s=5)
    assert [message.payload for message in taken] == [b"one"]
    with lab.connect() as cluster, pytest.raises(headrace.ConfigError, match="handler"):
        cluster.poll()


def test_a_handler_that_raises_has_taken_its_message(lab: Lab) -> None:
    (member,) = lab.add_members(1)

    def fail(message: ClusterMessage) -> None:
        raise ValueError(message.payload)

    with lab.connect() as cluster:
        member.message(b"one")
        member.message(b"two")
        lab.world.run_for(0.1)
        with pytest.raises(ValueError, match="one"):
            cluster.poll(fail)
        assert received(lab, cluster, 1) == [b"two"]


def test_what_comes_while_a_call_waits_is_given_to_the_next_poll(lab: Lab) -> None:
    (member,) = lab.add_members(1)

    def on_other(message: Any) -> None:
        if isinstance(message, AdminRequest):
            member.message(b"before the answer")
            member.say(answer_to(message, AdminResponseCode.OK))
            member.message(b"after the answer")

    member.on_other = on_other
    with lab.connect() as cluster:
        cluster.request_snapshot()
        assert received(lab, cluster, 2) == [b"before the answer", b"after the answer"]


def test_what_a_call_holds_is_overtaken_by_nothing_that_another_thread_polls(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread looks for a message at the moment when a waiting call has taken one."""
    (member,) = lab.add_members(1)
    with lab.connect() as cluster:
        polled: list[ClusterMessage | None] = []
        received_by_call = cluster._received

        def overtaken(wait_s: float) -> object:
            message = received_by_call(wait_s)
            other = threading.Thread(target=lambda: polled.append(cluster.poll_message()))
            other.start()
            other.join()
            return message

        monkeypatch.setattr(cluster, "_received", overtaken)
        member.message(b"first")
        member.message(b"second")
        lab.world.run_for(0.1)
        cluster._hold(1.0)
        assert polled == [None]
        assert received(lab, cluster, 2) == [b"first", b"second"]


# --- keepalives ----------------------------------------------------------------------------------------------------


def test_a_client_that_is_only_polled_sends_keepalives(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    with lab.connect() as cluster:
        assert cluster.receive(10.5) is None
        assert member.keep_alive_count == 10


def test_a_client_that_sends_messages_sends_no_keepalives(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    with lab.connect() as cluster:
        for _ in range(20):
            cluster.offer_blocking(b"busy")
            assert received(lab, cluster, 1)
            lab.world.run_for(0.5)
            cluster.step()
        assert member.keep_alive_count == 0


@pytest.mark.parametrize(("interval_ns", "count"), [(0, 0), (3 * S, 3)])
def test_the_interval_of_keepalives_is_a_setting(lab: Lab, interval_ns: int, count: int) -> None:
    (member,) = lab.add_members(1)
    with lab.connect(keep_alive_interval_ns=interval_ns) as cluster:
        assert cluster.receive(10) is None
        assert member.keep_alive_count == count
        assert cluster.send_keep_alive()
        lab.world.run_until(lambda: member.keep_alive_count == count + 1, within_s=5)


# --- requests ------------------------------------------------------------------------------------------------------


def answer_to(request: AdminRequest, code: AdminResponseCode, message: str = "") -> AdminResponse:
    return AdminResponse(
        cluster_session_id=request.cluster_session_id,
        correlation_id=request.correlation_id,
        request_type=AdminRequestType.SNAPSHOT,
        response_code=code,
        message=message,
    )


def answering(member: ScriptedMember, code: AdminResponseCode, message: str = "") -> None:
    def on_other(request: Any) -> None:
        if isinstance(request, AdminRequest):
            member.say(answer_to(request, code, message))

    member.on_other = on_other


def test_a_snapshot_is_requested(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    answering(member, AdminResponseCode.OK)
    answers: list[AdminResponse] = []
    with lab.connect(on_admin_response=answers.append) as cluster:
        cluster.request_snapshot()
        correlation_id = cluster.send_snapshot_request()
        lab.world.run_until(lambda: cluster.poll_message() or len(answers) == 2, within_s=5)
        assert answers[1].correlation_id == correlation_id
        assert answers[1].response_code is AdminResponseCode.OK


def test_a_snapshot_that_is_not_allowed_is_an_error(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    answering(member, AdminResponseCode.UNAUTHORISED_ACCESS, "not authorised")
    with lab.connect() as cluster:
        with pytest.raises(AdminRequestError, match="not authorised") as refused:
            cluster.request_snapshot()
        assert refused.value.code == AdminResponseCode.UNAUTHORISED_ACCESS


def test_a_request_without_an_answer_ends_with_its_time(lab: Lab) -> None:
    lab.add_members(1)
    with lab.connect() as cluster:
        begun_s = lab.world.now_s
        with pytest.raises(ClusterTimeoutError):
            cluster.request_snapshot(timeout_s=3)
        assert 3 <= lab.world.now_s - begun_s < 3.01


# --- new leaders ---------------------------------------------------------------------------------------------------


def test_the_session_goes_on_with_the_next_leader(lab: Lab) -> None:
    old, new = lab.add_members(2)
    old.refuse(EventCode.OK)
    old.on_connect = old.accept
    new.refuse(EventCode.REDIRECT, lab.endpoints, leader_member_id=0)
    told: list[NewLeaderEvent] = []
    events: list[SessionEvent] = []
    with lab.connect(on_new_leader=told.append, on_session_event=events.append) as cluster:
        cluster.offer_blocking(b"first")
        assert received(lab, cluster, 1) == [b"first"]
        new.take_over(old, lab.endpoints)
        old.stop_speaking()
        old.stop_listening()
        lab.world.run_until(lambda: cluster.poll_message() or told, within_s=5)
        assert cluster.state is ClientState.AWAIT_NEW_LEADER_CONNECTION
        assert (cluster.leadership_term_id, cluster.leader_member_id) == (1, 1)
        assert told[0].leader_member_id == 1
        # The new leader's first word is an OK for the session that it inherits, which opens nothing.
        assert [event.code for event in events] == [EventCode.OK]
        until(lab, cluster, ClientState.CONNECTED)
        # It links the session to the new stream.
        lab.world.run_until(lambda: new.keep_alive_count == 1, within_s=5)
        cluster.offer_blocking(b"second")
        assert received(lab, cluster, 1) == [b"second"]
        assert new.payloads == [b"second"]
        assert not new.connects or isinstance(new.connects[0], SessionConnectRequest)


def test_a_leader_that_takes_nothing_any_more_is_waited_for_until_the_next_one_is_known(lab: Lab) -> None:
    old, new = lab.add_members(2)
    new.stop_listening()
    with lab.connect() as cluster:
        old.stop_listening()
        lab.world.run_until(
            lambda: cluster.offer(b"lost?") is headrace.OfferResult.NOT_CONNECTED, within_s=30
        )
        assert cluster.state is ClientState.AWAIT_NEW_LEADER
        assert cluster.offer(b"now?") is headrace.OfferResult.NOT_CONNECTED
        new.listen()
        new.take_over(old, lab.endpoints)
        cluster.offer_blocking(b"to the new one")
        assert cluster.state is ClientState.CONNECTED
        assert received(lab, cluster, 1) == [b"to the new one"]


def test_a_stream_from_the_leader_that_ends_is_a_lost_leader(lab: Lab) -> None:
    old, new = lab.add_members(2)
    new.stop_listening()
    with lab.connect() as cluster:
        old.node.crash()
        until(lab, cluster, ClientState.AWAIT_NEW_LEADER, 30)


def test_a_leader_that_listens_and_no_longer_speaks_is_a_lost_leader(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    with lab.connect() as cluster:
        member.stop_speaking()
        until(lab, cluster, ClientState.AWAIT_NEW_LEADER, 30)
        assert cluster.offer(b"x") is headrace.OfferResult.NOT_CONNECTED


def test_a_new_leader_that_goes_before_it_listens_is_a_lost_leader(lab: Lab) -> None:
    old, new = lab.add_members(2)
    new.stop_listening()
    with lab.connect(message_timeout_ns=DAY_NS) as cluster:
        new.take_over(old, lab.endpoints)
        until(lab, cluster, ClientState.AWAIT_NEW_LEADER_CONNECTION)
        new.stop_speaking()
        until(lab, cluster, ClientState.AWAIT_NEW_LEADER, 30)


def test_the_end_of_the_old_leaders_stream_is_nothing_to_a_session_with_a_new_one(lab: Lab) -> None:
    old, new = lab.add_members(2)
    with lab.connect() as cluster:
        new.take_over(old, lab.endpoints)
        until(lab, cluster, ClientState.CONNECTED)
        lab.world.run_until(
            lambda: cluster.poll_message() or cluster.leader_member_id == 1, within_s=5, what="a new leader"
        )
        until(lab, cluster, ClientState.CONNECTED)
        old.stop_speaking()
        assert cluster.receive(15) is None
        assert (cluster.state, cluster.leader_member_id) == (ClientState.CONNECTED, 1)


def test_without_endpoints_the_one_channel_is_used_again(lab: Lab) -> None:
    member = ScriptedMember(lab.app, ingress="aeron:ipc")
    with lab.connect(ingress_channel="aeron:ipc", egress_channel="aeron:ipc") as cluster:
        member.take_over(member, "")
        until(lab, cluster, ClientState.AWAIT_NEW_LEADER_CONNECTION)
        cluster.offer_blocking(b"again")
        assert received(lab, cluster, 1) == [b"again"]
        assert cluster.leadership_term_id == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"ingress_endpoints": "garbage"},
        {"ingress_endpoints": ""},
        {"ingress_endpoints": "5=n0:1"},
        {"ingress_endpoints": "1=n1:1|alias=x"},
    ],
)
def test_a_new_leader_that_cannot_be_reached_is_counted_and_waited_for_no_longer_than_the_time(
    lab: Lab, changes: dict[str, Any]
) -> None:
    old, new = lab.add_members(2)
    new.stop_listening()
    with lab.connect() as cluster:
        new.take_over(old, lab.endpoints, **changes)
        old.stop_speaking()
        old.stop_listening()
        until(lab, cluster, ClientState.CLOSED, 60)
        assert cluster.undecodable_count == 1
        with pytest.raises(ClusterTimeoutError, match="no new leader within 10 s"):
            cluster.poll_message()


@pytest.mark.parametrize(("term", "session_id"), [(0, 1), (-5, 1), (9, 77)])
def test_a_word_of_an_old_leader_or_to_another_session_changes_nothing(
    lab: Lab, term: int, session_id: int
) -> None:
    (member,) = lab.add_members(1)
    with lab.connect() as cluster:
        member.say(
            NewLeaderEvent(
                leadership_term_id=term,
                cluster_session_id=session_id,
                leader_member_id=0,
                ingress_endpoints=lab.endpoints,
            )
        )
        cluster.offer_blocking(b"hello")
        assert received(lab, cluster, 1) == [b"hello"]
        assert (cluster.state, cluster.leadership_term_id) == (ClientState.CONNECTED, 0)


def test_a_new_leader_that_takes_nothing_ends_the_session_with_the_time(lab: Lab) -> None:
    old, new = lab.add_members(2)
    new.stop_listening()
    with lab.connect(message_timeout_ns=3 * S) as cluster:
        new.take_over(old, lab.endpoints)
        until(lab, cluster, ClientState.AWAIT_NEW_LEADER_CONNECTION)
        begun_s = lab.world.now_s
        until(lab, cluster, ClientState.CLOSED)
        assert 3 <= lab.world.now_s - begun_s < 3.01
        assert cluster.offer(b"x") is headrace.OfferResult.CLOSED
        with pytest.raises(ClusterTimeoutError, match="member 1, was not reached within 3 s"):
            cluster.offer_blocking(b"x")


def test_a_new_leader_that_is_lost_again_is_waited_for_anew(lab: Lab) -> None:
    first, second, third = lab.add_members(3)
    second.stop_listening()
    third.stop_listening()
    with lab.connect() as cluster:
        second.take_over(first, lab.endpoints)
        first.stop_speaking()
        until(lab, cluster, ClientState.AWAIT_NEW_LEADER_CONNECTION)
        third.listen()
        third.take_over(second, lab.endpoints)
        until(lab, cluster, ClientState.CONNECTED)
        assert (cluster.leadership_term_id, cluster.leader_member_id) == (2, 2)


def test_the_wait_for_a_new_leader_is_a_setting_and_names_what_was_lost(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    with lab.connect(new_leader_timeout_ns=7 * S) as cluster:
        member.stop_listening()
        member.stop_speaking()
        until(lab, cluster, ClientState.AWAIT_NEW_LEADER)
        begun_s = lab.world.now_s
        with pytest.raises(ClusterTimeoutError, match="no new leader within 7 s: the "):
            cluster.receive(60)
        assert 7 <= lab.world.now_s - begun_s < 7.1


# --- ends ----------------------------------------------------------------------------------------------------------


def test_a_session_that_the_cluster_closes_raises_why_after_its_messages(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    events: list[SessionEvent] = []
    cluster = lab.connect(on_session_event=events.append)
    member.message(b"last words")
    member.event(EventCode.CLOSED, detail="TIMEOUT")
    assert received(lab, cluster, 1) == [b"last words"]
    with pytest.raises(SessionClosedError, match="TIMEOUT") as closed:
        cluster.receive(5)
    assert closed.value.detail == "TIMEOUT"
    assert [event.code for event in events] == [EventCode.CLOSED]
    assert cluster.is_closed
    with pytest.raises(SessionClosedError):
        next(iter(cluster))
    with pytest.raises(SessionClosedError):
        cluster.offer_blocking(b"x")
    assert cluster.offer(b"x") is headrace.OfferResult.CLOSED
    cluster.close()


@pytest.mark.parametrize("term", [-1, 1, 5])
def test_a_word_of_another_term_does_not_close_a_session(lab: Lab, term: int) -> None:
    """Of an old leader that is cut off, or to another client to which a new one has given the same id."""
    (member,) = lab.add_members(1)
    events: list[SessionEvent] = []
    with lab.connect(on_session_event=events.append) as cluster:
        member.event(EventCode.CLOSED, detail="TIMEOUT", leadership_term_id=term)
        cluster.offer_blocking(b"hello")
        assert received(lab, cluster, 1) == [b"hello"]
        assert [event.leadership_term_id for event in events] == [term]
        assert cluster.state is ClientState.CONNECTED


def test_a_session_that_this_program_closes_ends_its_iteration(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    cluster = lab.connect()
    member.message(b"one")
    taken = []
    for message in cluster:
        taken.append(message.payload)
        cluster.close()
    assert taken == [b"one"]
    with pytest.raises(headrace.ClosedError):
        cluster.poll_message()
    with pytest.raises(headrace.ClosedError):
        cluster.offer_blocking(b"x")
    with pytest.raises(headrace.ClosedError):
        cluster.request_snapshot()
    cluster.close()
    lab.world.run_until(lambda: member.is_told_of_the_end, within_s=5)


def test_a_driver_that_dies_ends_calls_and_does_not_hang(lab: Lab) -> None:
    lab.add_members(1)
    cluster = lab.connect()
    lab.app.crash()
    with pytest.raises(headrace.HeadraceError):
        cluster.receive(60)
    assert not cluster.offer(b"x") > 0
    cluster.close()


def test_a_client_that_is_full_waits_for_room_until_its_time_is_over(lab: Lab) -> None:
    (member,) = lab.add_members(1)

    def fill(cluster: ClusterClient) -> None:
        while True:
            cluster.offer_blocking(b"x" * 1000, timeout_s=2)

    with lab.connect(new_leader_timeout_ns=DAY_NS) as cluster:
        lab.world.partition([lab.app], [member.node])
        begun_s = lab.world.now_s
        with pytest.raises(headrace.PublicationTimeoutError) as late:
            fill(cluster)
        assert not late.value.result
        assert lab.world.now_s - begun_s >= 2


def test_every_state_leads_only_where_the_table_says() -> None:
    assert set(CLIENT.transitions) == set(CLIENT.meanings) == set(ClientState)
    assert CLIENT.transitions[ClientState.CLOSED] == ()
    assert all(
        ClientState.CLOSED in CLIENT.transitions[state]
        for state in ClientState
        if state is not ClientState.CLOSED
    )
