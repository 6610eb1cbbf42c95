"""Opening a session with a cluster: what members may answer, and each state's time-out."""

from __future__ import annotations

import socket
from typing import Any

import pytest

import headrace
from headrace.cluster import (
    ClientState,
    ClusterAuthenticationError,
    ClusterClient,
    ClusterClientConfig,
    ClusterError,
    ClusterTimeoutError,
    ConnectState,
    EventCode,
)
from headrace.cluster.protocol.session import Challenge, ChallengeResponse
from tests.cluster.client_lab import PORT, Lab, ScriptedMember

pytestmark = pytest.mark.sim

TIMEOUT_S = 5.0


def test_a_session_is_opened(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    with lab.connect(client_name="me", credentials=b"secret") as cluster:
        assert cluster.state is ClientState.CONNECTED
        assert (cluster.cluster_session_id, cluster.leadership_term_id, cluster.leader_member_id) == (1, 0, 0)
        (request,) = member.connects
        assert request.version == 0 << 16 | 3 << 8
        assert request.encoded_credentials == b"secret"
        assert request.client_info.startswith("name=me version=")
        assert request.response_stream_id == 102
        assert "rejoin=false" in request.response_channel
        assert ":0|" not in request.response_channel
    lab.world.run_until(lambda: member.is_told_of_the_end, within_s=5)
    assert cluster.is_closed


def test_a_session_is_opened_over_ipc_with_the_members_own_driver(lab: Lab) -> None:
    member = ScriptedMember(lab.app, ingress="aeron:ipc")
    with lab.connect(ingress_channel="aeron:ipc", egress_channel="aeron:ipc") as cluster:
        cluster.offer_blocking(b"hello")
        received = cluster.receive(5)
        assert received is not None
        assert received.payload == b"hello"
    assert member.connects[0].response_channel == "aeron:ipc"


def test_clients_over_ipc_do_not_wait_for_each_other(lab: Lab) -> None:
    member = ScriptedMember(lab.app, ingress="aeron:ipc")
    ipc = {"ingress_channel": "aeron:ipc", "egress_channel": "aeron:ipc"}
    with lab.connect(**ipc), lab.connect(**ipc), lab.connect(egress_stream_id=102, **ipc):
        first, second, third = [request.response_stream_id for request in member.connects]
        assert first != second
        assert third == 102


def test_the_first_member_that_listens_is_asked_and_says_who_leads(lab: Lab) -> None:
    first, second, leader = lab.add_members(3)
    first.stop_listening()
    second.refuse(EventCode.REDIRECT, lab.endpoints, leader_member_id=2)
    leader.on_connect = lambda request: leader.accept(request) if second.connects else None
    with lab.connect() as cluster:
        assert not first.connects
        assert cluster.leader_member_id == 2
        assert len({request.correlation_id for request in (*second.connects, *leader.connects)}) >= 2
        cluster.offer_blocking(b"to the leader")
        lab.world.run_until(lambda: leader.payloads, within_s=5)
        assert not second.payloads


def test_a_session_keeps_no_way_to_members_that_do_not_lead(lab: Lab) -> None:
    leader, *others = lab.add_members(3)
    for other in others:
        other.refuse(EventCode.REDIRECT, lab.endpoints, leader_member_id=0)
    with lab.connect():
        lab.world.run_until(
            lambda: all(other.ingress and not other.ingress.image_count for other in others), within_s=30
        )
        assert leader.ingress is not None
        assert leader.ingress.image_count == 1


def test_a_redirect_is_followed_from_a_channel_with_an_endpoint_of_its_own(lab: Lab) -> None:
    follower, leader = lab.add_members(2)
    follower.refuse(EventCode.REDIRECT, lab.endpoints, leader_member_id=1)
    with lab.connect(ingress_channel=f"aeron:udp?endpoint=n0:{PORT}") as cluster:
        cluster.offer_blocking(b"hello")
        lab.world.run_until(lambda: leader.payloads, within_s=5)


@pytest.mark.parametrize(
    ("detail", "leader_member_id"), [("", 1), ("garbage", 1), ("0=n0:1", 7), ("1=n0:1|mtu=99", 1)]
)
def test_a_redirect_that_makes_no_sense_is_named_when_the_time_is_over(
    lab: Lab, detail: str, leader_member_id: int
) -> None:
    (member,) = lab.add_members(1)
    member.refuse(EventCode.REDIRECT, detail, leader_member_id=leader_member_id)
    with pytest.raises(ClusterTimeoutError, match=r"a redirect.*(cannot be decoded|cannot be followed)"):
        lab.connect()
    assert len(member.connects) > 1


def test_a_list_of_hosts_leads_to_the_members(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """As does a redirect, which says in what the list is another than that of the cluster."""
    follower, leader = lab.add_members(2)
    follower.refuse(EventCode.REDIRECT, f"{lab.endpoints},2=n2:{PORT}", leader_member_id=1)
    with lab.connect(ingress_endpoints=None, members=f"n0:{PORT - 2},n1:{PORT + 98}") as cluster:
        assert cluster.leader_member_id == leader.member_id
    differences = (
        f"member 1 is n1:{PORT + 100} here, n1:{PORT} there; member 2 is missing here, n2:{PORT} there"
    )
    assert differences in caplog.text


def test_endpoints_of_some_members_need_not_be_those_of_all(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    follower, _ = lab.add_members(2)
    follower.refuse(EventCode.REDIRECT, lab.endpoints, leader_member_id=1)
    with lab.connect(ingress_endpoints=f"0=n0:{PORT}", members="n0,n1"):
        assert "another list" not in caplog.text


@pytest.mark.parametrize(
    ("settings", "egress"),
    [
        ({"members": "localhost,localhost"}, "127.0.0.1:0"),
        ({"members": "[::1]"}, "[::1]:0"),
        ({"members": "nowhere,localhost"}, "127.0.0.1:0"),
        ({"members": "nowhere"}, "localhost:0"),
        ({"ingress_endpoints": "0=nowhere:1", "members": "127.0.0.1"}, "localhost:0"),
        ({"ingress_channel": "aeron:udp?endpoint=127.0.0.2:4000"}, "127.0.0.1:0"),
        ({"ingress_channel": "aeron:ipc", "members": "127.0.0.1"}, "localhost:0"),
        ({"members": "127.0.0.1", "egress_channel": "aeron:udp?endpoint=app:7"}, "app:7"),
    ],
)
def test_answers_come_to_the_address_on_the_way_to_the_members(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], egress: str
) -> None:
    known = socket.getaddrinfo

    def look_up(host: str, *arguments: Any, **options: Any) -> Any:
        if host == "nowhere":
            raise socket.gaierror
        return known(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    config = ClusterClientConfig.of(environment={}, **settings)
    assert config.egress == f"aeron:udp?endpoint={egress}|rejoin=false"


@pytest.mark.parametrize("endpoint", ["nowhere:1", "n2:1", "n2:1|mtu=99"])
def test_after_a_redirect_that_leads_nowhere_others_are_asked_until_the_time_is_over(
    lab: Lab, endpoint: str
) -> None:
    """A name that no driver resolves, a port where nobody listens, an endpoint that is none."""
    follower, leader, other = lab.add_members(3)
    other.stop_listening()
    leader.stop_listening()
    follower.refuse(EventCode.REDIRECT, f"1={leader.endpoint},2={endpoint}", leader_member_id=2)
    pending = ClusterClient.request(
        lab.app.connect(), ingress_endpoints=lab.endpoints, egress_channel="aeron:udp?endpoint=app:0"
    )
    lab.world.run_until(lambda: pending.poll() or len(follower.connects) > 1, within_s=4)
    leader.listen()
    follower.stop_listening()
    connected: list[ClusterClient] = []

    def step() -> bool:
        found = pending.poll()
        connected.extend([found] if found else [])
        return bool(connected)

    lab.world.run_until(step, within_s=4)
    assert connected[0].leader_member_id == 1


def test_members_that_send_each_other_on_are_followed_until_the_time_is_over(lab: Lab) -> None:
    one, other = lab.add_members(2)
    one.refuse(EventCode.REDIRECT, lab.endpoints, leader_member_id=1)
    other.refuse(EventCode.REDIRECT, lab.endpoints, leader_member_id=0)
    with pytest.raises(ClusterTimeoutError):
        lab.connect()
    assert len(one.connects) > 1
    assert len(other.connects) > 1


def test_a_member_that_goes_before_it_answers_is_left_for_another(lab: Lab) -> None:
    dying, leader = lab.add_members(2)
    leader.stop_listening()
    dying.ignore()
    pending = ClusterClient.request(
        lab.app.connect(), ingress_endpoints=lab.endpoints, egress_channel="aeron:udp?endpoint=app:0"
    )
    connected: list[ClusterClient] = []

    def step() -> bool:
        found = pending.poll()
        connected.extend([found] if found else [])
        return bool(connected)

    lab.world.run_until(lambda: step() or dying.connects, within_s=5)
    assert pending.state is ConnectState.POLL_RESPONSE
    dying.stop_listening()
    leader.listen()
    lab.world.run_until(step, within_s=5)
    assert connected[0].leader_member_id == 1


class Answers:
    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.challenges: list[bytes] = []

    def encoded_credentials(self) -> bytes:
        return b"first"

    def on_challenge(self, challenge: bytes) -> bytes:
        self.challenges.append(challenge)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, bytes)
        return answer


def challenging(member: ScriptedMember, *challenges: bytes) -> list[ChallengeResponse]:
    """Sends these before it accepts."""
    left, responses = list(challenges), list[ChallengeResponse]()

    def challenge(correlation_id: int) -> None:
        member.say(
            Challenge(correlation_id=correlation_id, cluster_session_id=9, encoded_challenge=left.pop(0))
        )

    def on_response(message: Any) -> None:
        if isinstance(message, ChallengeResponse):
            responses.append(message)
            if left:
                challenge(message.correlation_id)
            else:
                member.session_id = 8
                member.accept(message)

    member.on_connect = lambda request: challenge(request.correlation_id)
    member.on_other = on_response
    return responses


def test_challenges_are_answered(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    responses = challenging(member, b"who?", b"really?")
    credentials = Answers(b"me", b"yes")
    with lab.connect(credentials=credentials) as cluster:
        assert cluster.cluster_session_id == 9
    assert credentials.challenges == [b"who?", b"really?"]
    assert [response.encoded_credentials for response in responses] == [b"me", b"yes"]
    assert {response.cluster_session_id for response in responses} == {9}
    ids = [member.connects[0].correlation_id, *(response.correlation_id for response in responses)]
    assert len(set(ids)) == 3


def test_fixed_credentials_have_no_answer_to_a_challenge(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    challenging(member, b"who?")
    with pytest.raises(ClusterAuthenticationError, match="challenge"):
        lab.connect(credentials=b"fixed")


def test_what_a_supplier_raises_ends_the_connect_without_telling_secrets(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    challenging(member, b"who?")
    with pytest.raises(ClusterAuthenticationError, match="supplier of credentials failed") as failed:
        lab.connect(credentials=Answers(ValueError("the secret is abc")))
    assert "abc" not in str(failed.value)


def test_challenges_without_an_end_are_refused(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    challenging(member, *[b"again"] * 100)
    with pytest.raises(ClusterAuthenticationError, match="17 challenges"):
        lab.connect(credentials=Answers(*[b"me"] * 100))


@pytest.mark.parametrize(
    ("credentials", "advice"), [(b"", "give credentials"), (b"wrong", "does not accept")]
)
def test_wrong_credentials_are_an_error_that_says_so(lab: Lab, credentials: bytes, advice: str) -> None:
    (member,) = lab.add_members(1)
    member.refuse(EventCode.AUTHENTICATION_REJECTED, "session failed authentication")
    with pytest.raises(ClusterAuthenticationError, match=f"session failed authentication.*{advice}"):
        lab.connect(credentials=credentials)


def test_a_refusal_says_why(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    member.refuse(EventCode.ERROR, "concurrent session limit")
    with pytest.raises(ClusterError, match="concurrent session limit"):
        lab.connect()
    assert lab.world.socket_count > 0


def test_an_answer_to_another_is_no_answer(lab: Lab) -> None:
    (member,) = lab.add_members(1)

    def on_connect(request: Any) -> None:
        member.event(EventCode.ERROR, request.correlation_id + 1, detail="another's")
        member.say(b"\0" * 5)
        member.say(b"\xff" * 100)
        member.accept(request)

    member.on_connect = on_connect
    with lab.connect() as cluster:
        assert cluster.state is ClientState.CONNECTED


def started_and_ended(lab: Lab, **settings: Any) -> tuple[ClusterTimeoutError, float]:
    begun_s = lab.world.now_s
    with pytest.raises(ClusterTimeoutError) as failed:
        lab.connect(client=None, message_timeout_ns=int(TIMEOUT_S * 1e9), **settings)
    return failed.value, lab.world.now_s - begun_s


def test_without_a_member_the_error_names_the_state_and_where_it_was_looked(lab: Lab) -> None:
    error, took_s = started_and_ended(lab, ingress_endpoints="0=app:999,1=app:998")
    assert "AWAIT_PUBLICATION_CONNECTED" in str(error)
    assert "0=app:999,1=app:998" in str(error)
    # The clock moves by a millisecond at most when nothing goes on.
    assert TIMEOUT_S <= took_s < TIMEOUT_S + 0.01


def test_a_member_that_does_not_answer_is_waited_for_until_the_time_is_over(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    member.ignore()
    error, took_s = started_and_ended(lab)
    assert "POLL_RESPONSE" in str(error)
    assert TIMEOUT_S <= took_s < TIMEOUT_S + 0.01
    assert len(member.connects) == 1


def test_a_member_that_is_about_to_elect_a_leader_does_not_end_the_attempt_before_its_time(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    member.refuse(EventCode.CLOSED, "election")
    error, took_s = started_and_ended(lab)
    assert "POLL_RESPONSE" in str(error)
    assert "election" in str(error)
    assert took_s >= TIMEOUT_S


def test_a_failed_connect_leaves_nothing_behind(lab: Lab) -> None:
    client = lab.app.connect()
    before = lab.world.socket_count
    with pytest.raises(ClusterTimeoutError):
        ClusterClient.connect(
            client, ingress_endpoints="0=app:999", egress_channel="aeron:udp?endpoint=app:0"
        )
    lab.world.run_until(lambda: lab.world.socket_count == before, within_s=30)
    assert not client.is_closed


def test_a_driver_that_refuses_the_stream_ends_the_attempt(lab: Lab) -> None:
    lab.add_members(1)
    with pytest.raises(headrace.RegistrationError):
        lab.connect(egress_channel="aeron:udp?endpoint=nowhere:0")


def test_members_that_no_way_leads_to_end_the_attempt_with_the_reason(lab: Lab) -> None:
    with pytest.raises(ClusterError, match=r"no member can be reached.*nowhere"):
        lab.connect(ingress_endpoints="0=nowhere:1,1=nowhere:2")


@pytest.mark.parametrize(("heartbeat_s", "expected_s"), [(1, 10), (7, 14)])
def test_the_leaders_own_time_out_decides_how_long_a_new_one_is_awaited(
    lab: Lab, heartbeat_s: int, expected_s: int
) -> None:
    """And an election takes its time, however short that is."""
    (member,) = lab.add_members(1)
    member.heartbeat_timeout_ns = heartbeat_s * 1_000_000_000
    with lab.connect() as cluster:
        member.stop_speaking()
        member.stop_listening()
        lab.world.run_until(lambda: cluster.step() or cluster.state is not ClientState.CONNECTED, within_s=5)
        begun_s = lab.world.now_s
        lab.world.run_until(lambda: cluster.step() or cluster.is_closed, within_s=60)
        assert expected_s <= lab.world.now_s - begun_s < expected_s + 0.01


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"ingress_channel": "aeron:ipc", "ingress_endpoints": "0=a:1"}, "ingress_endpoints"),
        ({"ingress_channel": "aeron:udp"}, "ingress_channel"),
        ({"members": "alpha,alpha,beta"}, "members"),
        ({"ingress_endpoints": "a=b"}, "ingress_endpoints"),
        ({"ingress_endpoints": "0=a:1|b"}, "ingress_endpoints"),
        ({"egress_channel": "aeron:udp", "ingress_endpoints": "0=a:1"}, "egress_channel"),
        ({"client_name": "x" * 101, "ingress_endpoints": "0=a:1"}, "client_name"),
        ({"message_timeout_ns": 0, "ingress_endpoints": "0=a:1"}, "message_timeout_ns"),
        ({"ingress_endpoint": "0=a:1"}, "ingress_endpoint"),
    ],
)
def test_a_wrong_setting_is_named_before_anything_is_started(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(headrace.ConfigError) as wrong:
        ClusterClient.connect(directory="/nowhere", **settings)
    assert wrong.value.setting == name


def test_settings_come_from_keywords_properties_and_the_environment() -> None:
    properties = {
        "aeron.cluster.message.timeout": "3s",
        "aeron.cluster.ingress.endpoints": "0=a:1,1=b:2",
        "aeron.cluster.egress.stream.id": "7",
    }
    environment = {"AERON_CLUSTER_CLIENT_KEEP_ALIVE_INTERVAL": "0", "AERON_CLUSTER_MESSAGE_TIMEOUT": "9s"}
    config = ClusterClientConfig.of(properties=properties, environment=environment, egress_stream_id=8)
    assert (config.message_timeout_ns, config.keep_alive_interval_ns) == (3_000_000_000, 0)
    assert (config.egress_stream_id, config.ingress_stream_id) == (8, 101)
    assert "secret" not in repr(ClusterClientConfig.of(config, credentials=b"secret"))
    with pytest.raises(headrace.ConfigError, match=r"did you mean aeron.cluster.message.timeout"):
        ClusterClientConfig.of(properties={"aeron.cluster.mesage.timeout": "3s"})
