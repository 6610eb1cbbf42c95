"""What becomes of a call of a replicated object follows from the log, whatever class and settings read it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, make_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

from headrace import ConfigError
from headrace.cluster import ClusterError, ClusterNode
from headrace.cluster.objects import CallRefusedError, ObjectClient, ObjectService, command
from headrace.cluster.objects.commands import Commands, encoded
from headrace.cluster.objects.layout import (
    Answer,
    AnswerKind,
    Request,
    RequestKind,
    Terms,
    decode_answer,
    decode_request,
    decode_terms,
)
from headrace.cluster.service.log_adapter import ContainerError

IPC = {"ingress_channel": "aeron:ipc", "egress_channel": "aeron:ipc"}
ME = bytes(16)


class Accounts:
    balances: dict[str, int]

    def __init__(self) -> None:
        self.balances = {"alice": 100, "bob": 0}

    @command
    def get(self, name: str) -> int:
        return self.balances[name]


OldAccounts = Accounts


class Accounts(OldAccounts):  # type: ignore[no-redef]
    """A later version, as its clients have it before the cluster has."""

    balances: dict[str, int]

    @command
    def transfer(self, source: str, target: str, amount: int) -> int:
        self.balances[source] -= amount
        self.balances[target] += amount
        return self.balances[target]


class Log:
    """The entries of a log: beginnings of terms, and messages, of clients or of the service itself."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, bytes]] = []


class Member:
    """Gives a service the entries of a log: those that are there, and then more."""

    time = log_position = 0

    def __init__(self, log: Log, service: ObjectService, snapshot: Any = None) -> None:
        self.log, self.service = log, service
        self.announced: list[bytes] = []
        self.answers: list[Answer] = []
        service.on_start(self, snapshot)  # type: ignore[arg-type]
        if snapshot is None:
            for entry in log.entries:
                self._apply(*entry)

    # What the service sees of the cluster, and of a session.
    def offer(self, message: bytes) -> int:
        if decode_request(message) is None:
            answer = decode_answer(message)
            assert answer is not None
            self.answers.append(answer)
        else:
            self.announced.append(message)
        return 1

    def _offer_or(self, message: bytes, instead: Any) -> int:
        return self.offer(message)

    def _apply(self, kind: str, message: bytes) -> None:
        self.log_position += 32
        if kind == "term":
            self.service.on_new_leadership_term()
        else:
            session: Any = self if kind == "client" else None
            self.service.on_session_message(session, 0, message, self.log_position)

    def append(self, kind: str, message: bytes = b"") -> Answer | None:
        """Put an entry into the log; returns what the service answers."""
        self.log.entries.append((kind, message))
        count = len(self.answers)
        self._apply(kind, message)
        return self.answers[count] if len(self.answers) > count else None

    def lead(self) -> None:
        """Begin a term, whose announcement is the last that was offered."""
        self.append("term")
        self.append("service", self.announced[-1])

    def open(self, client_id: bytes = ME) -> Answer | None:
        return self.append("client", encoded(Request(RequestKind.OPEN, client_id)))

    def call(
        self, command_id: int, name: str, client_id: bytes = ME, /, **arguments: Any
    ) -> AnswerKind | None:
        request = Request(RequestKind.CALL, client_id, command_id, 1, name, encoded(arguments))
        answer = self.append("client", encoded(request))
        return None if answer is None else answer.kind

    @property
    def state(self) -> list[bytes]:
        return list(self.service.on_take_snapshot())


def old(**settings: Any) -> ObjectService:
    return ObjectService(OldAccounts(), **settings)


def new(**settings: Any) -> ObjectService:
    return ObjectService(Accounts(), **settings)


def test_a_call_that_was_refused_is_not_carried_out_by_a_later_class() -> None:
    log = Log()
    member = Member(log, old())
    member.lead()
    member.open()
    transfer: Any = {"source": "alice", "target": "bob", "amount": 40}
    assert member.call(1, "transfer", **transfer) is AnswerKind.REFUSED
    assert member.call(2, "get", name="alice") is AnswerKind.OK
    later = Member(log, new())
    assert later.state == member.state
    assert later.service.object.balances == {"alice": 100, "bob": 0}
    # Once the new version leads, and the client, which was told that nothing was changed, calls again.
    later.lead()
    assert later.call(1, "transfer", **transfer) is AnswerKind.REFUSED
    assert later.call(3, "transfer", **transfer) is AnswerKind.OK
    assert later.service.object.balances == {"alice": 60, "bob": 40}
    assert Member(log, new()).state == later.state


def test_between_a_term_and_its_announcement_nothing_is_carried_out_or_refused() -> None:
    log = Log()
    member = Member(log, old())
    member.lead()
    member.open()
    later = Member(log, new())
    later.append("term")
    assert later.open(bytes([1]) * 16) is None
    assert later.call(1, "transfer", source="alice", target="bob", amount=1) is None
    assert later.call(2, "get", name="alice") is None
    later.append("service", later.announced[-1])
    assert later.open(bytes([1]) * 16) is not None
    assert later.call(1, "transfer", source="alice", target="bob", amount=1) is AnswerKind.OK
    assert Member(log, new()).state == later.state


class Changed(OldAccounts):
    """Has another argument than the log says."""

    balances: dict[str, int]

    @command
    def get(self, name: str, currency: str = "EUR") -> int:
        return self.balances[name]


Changed.__qualname__ = "Accounts"


@pytest.mark.parametrize(
    ("name", "arguments", "later"),
    [
        ("transfer", {"source": "alice", "target": "bob", "amount": 1}, OldAccounts),
        ("get", {"name": "alice"}, Changed),
    ],
)
def test_a_call_before_the_announcement_of_another_class_does_not_end_it(
    name: str, arguments: dict[str, Any], later: type
) -> None:
    member = Member(Log(), new())
    member.lead()
    member.open()
    snapshot = iter(list(member.service.on_take_snapshot()))
    after = Member(Log(), ObjectService(later()), snapshot)
    after.append("term")
    assert after.call(1, name, **arguments) is None
    after.append("service", after.announced[-1])
    assert after.call(1, name, **arguments) is not None, "the class of now decides"


@pytest.mark.parametrize(
    ("name", "arguments", "later", "text"),
    [
        (
            "transfer",
            {"source": "alice", "target": "bob", "amount": 1},
            OldAccounts,
            "'transfer' .* has no such",
        ),
        ("get", {"name": "alice"}, Changed, "'get' .* has another such"),
    ],
)
def test_a_class_that_cannot_do_what_the_log_says_was_done_ends_the_member(
    name: str, arguments: dict[str, Any], later: Any, text: str
) -> None:
    log = Log()
    member = Member(log, new())
    member.lead()
    member.open()
    before = member.state
    member.call(1, name, **arguments)
    with pytest.raises(ContainerError, match=f"the command {text}"):
        Member(log, ObjectService(later()))
    # A snapshot says it as well; one that was taken after the call needs no replay of it.
    with pytest.raises(ContainerError, match=f"the command {text}"):
        Member(Log(), ObjectService(later()), iter(before)).call(1, name, **arguments)
    after = Member(Log(), ObjectService(later()), iter(member.state))
    after.lead()
    assert after.call(2, "get", name="alice", currency="EUR") in (AnswerKind.OK, AnswerKind.REFUSED)


def test_who_is_forgotten_follows_from_the_limit_in_the_log() -> None:
    log = Log()
    member = Member(log, old(clients_max=2))
    member.lead()
    first, second, third = (bytes([number]) * 16 for number in range(3))
    for client_id in (first, second, third):
        member.open(client_id)
    assert member.call(1, "get", first, name="alice") is AnswerKind.FORGOTTEN
    for service in (old(), old(clients_max=1)):
        later = Member(log, service)
        assert [answer.kind for answer in later.answers] == [answer.kind for answer in member.answers]
        assert later.state == member.state
    later.lead()
    later.open(first)
    assert later.call(1, "get", third, name="alice") is AnswerKind.FORGOTTEN


def test_what_decides_is_in_the_snapshot() -> None:
    log = Log()
    member = Member(log, old(clients_max=2))
    member.lead()
    member.open()
    later = Member(log, new(), iter(member.state))
    assert later.state == member.state
    assert later.call(1, "transfer", source="alice", target="bob", amount=1) is AnswerKind.REFUSED
    member.append("term")
    between = Member(log, new(), iter(member.state))
    assert between.call(2, "transfer", source="alice", target="bob", amount=1) is None


def test_a_log_without_announcements_is_judged_by_the_class_until_the_first() -> None:
    log = Log()
    log.entries = [
        ("client", encoded(Request(RequestKind.OPEN, ME))),
        ("client", encoded(Request(RequestKind.CALL, ME, 1, 1, "get", encoded({"name": "bob"})))),
    ]
    member = Member(log, new(clients_max=1))
    assert [answer.kind for answer in member.answers] == [AnswerKind.OK, AnswerKind.OK]
    # And so is a snapshot that such a version took.
    kind, state, clients, *_ = decoded(member.state)
    later = Member(log, new(), iter([encoded([kind, state, clients])]))
    assert later.call(2, "get", name="bob") is AnswerKind.OK


def decoded(chunks: list[bytes]) -> list[Any]:
    import msgspec

    stored: list[Any] = msgspec.msgpack.decode(b"".join(chunks))
    return stored


def test_only_the_service_announces_and_only_of_its_own_class() -> None:
    log = Log()
    member = Member(log, old())
    member.lead()
    announcement = member.announced[-1]
    for kind, message in (
        ("client", announcement),
        ("service", encoded(Request(RequestKind.OPEN, ME))),
        ("service", b"of another service"),
    ):
        assert member.append(kind, message) is None
    assert member.service.undecodable_count == 3
    terms = Terms("Other", {}, 1)
    member.append("service", encoded(Request(RequestKind.COMMANDS, ME, arguments=encoded(terms))))
    member.append("service", encoded(Request(RequestKind.COMMANDS, ME, arguments=b"none")))
    member.open()
    assert member.call(1, "get", name="bob") is AnswerKind.OK
    request = decode_request(announcement)
    assert request is not None
    assert decode_terms(request.arguments) == Terms(
        "Accounts", Commands(OldAccounts).digests, clients_max=10_000
    )


def test_a_class_with_more_commands_than_fit_an_announcement_is_refused() -> None:
    def many(self: Any) -> None: ...

    members = {f"command_{number:04}": command(many) for number in range(1000)}
    kind = type("Many", (), members)
    with pytest.raises(ConfigError, match=r"Many: must have fewer commands"):
        ObjectService(kind())


class Tree:
    """Within itself."""

    left: Tree | None = None


@dataclass
class Node:
    value: int
    next: Node | None = None


class Colour(Enum):
    RED = 1


def with_argument(hint: Any, *default: Any) -> dict[str, bytes]:
    class Kind:
        @command
        def call(self, value: Any) -> None: ...

    Kind.call.__annotations__["value"] = hint
    Kind.call.__defaults__ = default or None
    return Commands(Kind).digests


def test_the_digest_of_a_command_changes_with_what_it_takes() -> None:
    hints: list[Any] = [
        *(int, str, float, bytes, Any, int | str, list[int], dict[str, int], set[int], tuple[int, ...]),
        *(tuple[int], Literal["a"], Literal["b"], Colour, Node),
        make_dataclass("Node", [("value", str)]),
        make_dataclass("Node", [("value", int)]),
    ]
    digests = [with_argument(hint)["call"] for hint in hints]
    assert len(set(digests)) == len(hints)
    assert all(len(digest) == 8 for digest in digests)
    # Clients send it in any case.
    assert with_argument(int, 5) == with_argument(int)
    assert digests == [with_argument(hint)["call"] for hint in hints]


def test_the_digest_of_a_command_is_the_same_in_other_processes() -> None:
    code = (
        "from tests.cluster.test_object_terms import *\n"
        "print([with_argument(one)['call'].hex() for one in (Node, dict[str, set[int]], Literal['a', 'b'], Colour)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(printed) == 1


@pytest.mark.system
def test_a_refused_call_is_carried_out_once_by_the_version_that_has_it(tmp_path: Path) -> None:
    with (
        ClusterNode(old(), directory=tmp_path) as node,
        ObjectClient.connect(Accounts, driver=node.driver, **IPC) as client,
    ):
        with pytest.raises(CallRefusedError, match="no command 'transfer'"):
            client.object.transfer("alice", "bob", 40)
        assert client.object.get("alice") == 100
    with (
        ClusterNode(new(), directory=tmp_path) as node,
        ObjectClient.connect(Accounts, driver=node.driver, **IPC) as client,
    ):
        assert client.object.get("alice") == 100
        assert client.object.transfer("alice", "bob", 40) == 40
        assert client.object.get("alice") == 60
    node = ClusterNode(old(), directory=tmp_path)
    with pytest.raises(ClusterError, match="class Accounts has no such command now"):
        node.wait_until_leader()
    node.close()
