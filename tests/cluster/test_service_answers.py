"""What a service answers: judged by the log alone, not lost at a term's end, and an error where a handler raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import ConfigError
from headrace.client import Header
from headrace.cluster import ClientSession, ClusterNode, EventCode, ServiceError, SessionEvent
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, template_of
from headrace.cluster.protocol.messages import decode
from headrace.testing import World
from tests.cluster.client_lab import Lab
from tests.cluster.scripted import EGRESS, Recorder, Rig
from tests.helpers import TIMEOUT_S

LONGEST = (16 << 20) - HEADER_LENGTH


@pytest.fixture
def rig() -> Iterator[Rig]:
    with World(7) as world:
        yield Rig(world)


class Offering(Recorder):
    """Keeps what became of offers that are wrong in some way."""

    def __init__(self) -> None:
        super().__init__()
        self.raised: list[str] = []

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        assert session is not None
        for answer in (
            "text",
            5,
            None,
            [b"one", "two"],
            object(),
            bytes(LONGEST + 1),
            [bytes(LONGEST), b"x"],
        ):
            try:
                session.offer(answer)  # type: ignore[arg-type]
            except (TypeError, ConfigError) as refusal:
                self.raised.append(f"{type(refusal).__name__}: {refusal}")
        # Longer than the client's own stream takes: no member is to know that.
        self.answers += [session.offer(bytes(10_000)), session.offer(b"in the end")]


def heard_by(rig: Rig) -> Callable[[], list[tuple[Any, int]]]:
    """What a client hears, each with the position of the log that the frame carries."""
    got: list[tuple[Any, int]] = []
    egress = rig.node.connect().add_subscription(EGRESS, 102)

    def take(data: bytes, header: Header) -> None:
        is_message = template_of(data) == SESSION_MESSAGE
        got.append((data[HEADER_LENGTH:] if is_message else decode(data), header.reserved_value))

    def hear() -> list[tuple[Any, int]]:
        egress.poll(take, 10)
        return got

    return hear


def joined(rig: Rig, service: Recorder, role: Role) -> Any:
    module = rig.module()
    rig.container(service)
    module.acked()
    module.recovery.close()
    module.join(role)
    module.term()
    module.open(5)
    return module


@pytest.mark.parametrize("role", [Role.LEADER, Role.FOLLOWER])
def test_an_offer_is_judged_alike_whoever_leads_and_whatever_the_client_takes(rig: Rig, role: Role) -> None:
    service, hear = Offering(), heard_by(rig)
    module = joined(rig, service, role)
    position = module.message(5, b"go")
    rig.until(lambda: len(service.answers) == 2)
    assert [text.partition(": ")[0] for text in service.raised] == ["TypeError"] * 5 + ["ConfigError"] * 2
    assert f"len(message)={LONGEST + 1}: must be at most {LONGEST}" in service.raised[5]
    assert service.raised[5] == service.raised[6]
    assert all(answer > 0 for answer in service.answers)  # type: ignore[operator]
    assert rig.errors == []
    if role is Role.LEADER:
        rig.until(lambda: len(hear()) == 2)
        (event, event_position), (answer, answer_position) = hear()
        assert isinstance(event, SessionEvent)
        assert (event.code, event.cluster_session_id, event.correlation_id) == (EventCode.ERROR, 5, -1)
        assert event.detail.startswith(
            f"log_position={position}: the answer is too long for the client's stream: message length=10032 exceeds "
            "max_message_length=8192; ask for less, or for longer terms with term-length in egress_channel"
        )
        assert answer == b"in the end"
        assert event_position == answer_position == position


def test_a_client_that_reads_misses_no_answer_at_the_end_of_a_term(rig: Rig) -> None:
    service, hear = Recorder(), heard_by(rig)
    module = joined(rig, service, Role.LEADER)
    # Some terms of 64 KiB.
    for number in range(150):
        module.message(5, b"%03d" % number * 500)
        rig.until(lambda number=number: len(hear()) == number + 1)  # type: ignore[misc]
    assert all(answer > 0 for answer in service.answers)  # type: ignore[operator]
    assert [answer for answer, _ in hear()] == [b"re:" + b"%03d" % number * 500 for number in range(150)]


class Failing(Recorder):
    """Fails at some messages, with a text that is no ASCII and longer than any answer should be."""

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        if bytes(message) == b"fail":
            raise KeyError("größer" + 3000 * "x")
        super().on_session_message(session, timestamp, message, position)


@pytest.mark.parametrize("message_views", [False, True])
@pytest.mark.parametrize("role", [Role.LEADER, Role.FOLLOWER])
def test_the_client_whose_message_a_handler_fails_at_hears_of_it(
    rig: Rig, role: Role, message_views: bool
) -> None:
    service, hear = Failing(), heard_by(rig)
    service.message_views = message_views  # type: ignore[misc]
    service.raises["on_session_open"] = ValueError("not you")
    module = joined(rig, service, role)
    opened = module.log.position
    module.message(5, b"one")
    position = module.message(5, b"fail")
    # Of a service, and of a client that is gone.
    module.message(-1, b"fail")
    module.message(77, b"fail")
    module.message(5, b"two")
    rig.until(lambda: service.state == [b"one", b"two"])
    assert len(rig.errors) == 4
    rig.world.run_for(0.1)
    heard = hear()
    if role is Role.FOLLOWER:
        assert heard == []
        return
    refused, one, event, two = heard
    assert (one[0], two[0]) == (b"re:one", b"re:two")
    assert (refused[0].code, refused[1]) == (EventCode.ERROR, opened)
    assert refused[0].detail == f"log_position={opened}: on_session_open raised ValueError('not you')"
    assert (event[0].code, event[1]) == (EventCode.ERROR, position)
    assert event[0].detail.startswith(
        rf"log_position={position}: on_session_message raised KeyError('gr\xf6\xdfer"
    )
    assert len(event[0].detail) == 1000


def test_a_client_raises_what_the_service_failed_at_in_the_place_of_the_answer(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    said: list[SessionEvent] = []
    client = lab.connect(on_session_event=said.append)
    member.message(b"before")
    detail = "log_position=64: on_session_message raised KeyError('bug')"
    # An event of another session is not this client's.
    member.event(EventCode.ERROR, -1, detail="not here", cluster_session_id=member.session_id + 1)
    member.event(EventCode.ERROR, -1, detail=detail)
    member.message(b"after")
    assert client.receive(5).payload == b"before"  # type: ignore[union-attr]
    with pytest.raises(ServiceError) as raised:
        client.receive(5)
    assert str(raised.value) == said[-1].detail == detail
    assert client.receive(5).payload == b"after"  # type: ignore[union-attr]
    assert not client.is_closed


class Service(Failing):
    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        if message == b"fail":
            raise ValueError("bug")
        super().on_session_message(session, timestamp, message, position)


@pytest.mark.system
def test_a_service_that_raises_answers_with_the_position_and_goes_on() -> None:
    with ClusterNode.embedded(Service()) as node, node.connect() as client:
        for message in (b"fail", b"fine", b"fail"):
            client.offer_blocking(message)
        with pytest.raises(ServiceError, match=r"on_session_message raised ValueError\('bug'\)") as raised:
            client.receive(TIMEOUT_S)
        fine = client.receive(TIMEOUT_S)
        assert fine is not None
        assert fine.payload == b"re:fine"
        assert 0 < raised.value.log_position < fine.log_position
        # Kept while something else is waited for.
        with pytest.raises(ServiceError):
            client.receive(TIMEOUT_S)
