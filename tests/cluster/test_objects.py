"""Replicated objects: commands of a class, each carried out once, through crashes, in a world and in this process."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import math
import random
from collections import defaultdict
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

import pytest

import headrace
from headrace.cluster import (
    ClusterError,
    ClusterNode,
    DeterminismCheck,
    DeterminismError,
)
from headrace.cluster.objects import (
    AsyncObjectClient,
    CallRefusedError,
    CommandError,
    ObjectClient,
    ObjectService,
    command,
    current_cluster,
)
from headrace.cluster.objects.calls import error_of
from headrace.cluster.objects.client import _Proxy
from headrace.cluster.objects.commands import Commands, encoded
from headrace.cluster.objects.layout import (
    WINDOW,
    Answer,
    AnswerKind,
    Request,
    RequestKind,
    decode_answer,
    decode_value,
)
from tests.ports import free_endpoint

IPC = {"ingress_channel": "aeron:ipc", "egress_channel": "aeron:ipc"}
ME = bytes(16)


@dataclass
class Order:
    name: str
    amount: int


class Shop:
    """An object with a bit of everything."""

    prices: ClassVar[dict[str, int]] = {"tea": 3}
    orders: list[Order]
    total: int = 0
    seen: set[str]

    def __init__(self) -> None:
        self.orders = []
        self.seen = set()

    @command
    def add(self, amount: int) -> int:
        self.total += amount
        return self.total

    @command
    def order(self, order: Order, *, urgent: bool = False) -> list[Order]:
        self.orders.append(order)
        self.seen.add(order.name + ("!" if urgent else ""))
        return self.orders

    @command
    def names(self) -> set[str]:
        return self.seen

    @command
    def fail(self, text: str) -> None:
        self.total += 1000
        raise ValueError(text)

    @command
    def long_text(self, length: int) -> str:
        self.total += 1
        return "x" * length

    @command
    def now(self) -> int:
        return current_cluster().time

    @command
    def unknown_result(self) -> Any:
        return object()

    def not_a_command(self) -> None:
        raise AssertionError


# --- what the service does with a message -------------------------------------------------------------------


class Session:
    """Keeps what is sent to a client."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def offer(self, message: bytes) -> int:
        answer = decode_answer(message)
        assert answer is not None
        self.answers.append(answer)
        return 1

    def _offer_or(self, message: bytes, instead: object) -> int:
        return self.offer(message)


class Desk:
    """A service without a cluster, and a client that writes its own messages."""

    def __init__(self, instance: object | None = None, **settings: Any) -> None:
        self.service = ObjectService(Shop() if instance is None else instance, **settings)
        self.service.on_start(self, None)  # type: ignore[arg-type]
        self.time = 4711
        self.session = Session()

    def send(self, message: bytes) -> Answer | None:
        count = len(self.session.answers)
        self.service.on_session_message(self.session, 0, message, 0)  # type: ignore[arg-type]
        return self.session.answers[-1] if len(self.session.answers) > count else None

    def open(self, client_id: bytes = ME) -> None:
        answer = self.send(encoded(Request(RequestKind.OPEN, client_id)))
        assert answer is not None
        assert answer.kind is AnswerKind.OK

    def call(
        self, command_id: int, name: str, client_id: bytes = ME, oldest_id: int = 1, **arguments: Any
    ) -> Answer | None:
        packed = encoded(arguments)
        return self.send(encoded(Request(RequestKind.CALL, client_id, command_id, oldest_id, name, packed)))


class Unspoken(Exception):
    """An error with an error in it."""

    def __str__(self) -> str:
        return ()[0]


class Till:
    """Raises after the deed."""

    paid: int = 0

    @command
    def pay(self) -> None:
        self.paid += 1
        raise Unspoken


def test_an_error_that_has_no_text_is_an_answer_as_any_other() -> None:
    """Without an answer the client would send the call again, and it would be carried out again."""
    desk = Desk(Till())
    desk.open()
    answer = desk.call(1, "pay")
    assert answer is not None
    assert answer.kind is AnswerKind.RAISED
    assert decode_value(answer.value) == ["Unspoken", "no text, because its str() raises IndexError"]
    assert desk.call(1, "pay") == answer
    assert desk.service.object.paid == 1


@dataclass
class Shift:
    """A part of a state."""

    begins: datetime.datetime


@dataclass
class Roster:
    """A state that a snapshot would change."""

    shift: Shift

    @command
    def change(self) -> None: ...


@pytest.mark.parametrize(
    ("hours", "note", "text"),
    [(2, None, "keep it in UTC"), (0, "ill", "of which a snapshot loses note"), (0, None, None)],
)
def test_a_state_that_a_snapshot_would_change_is_refused(
    hours: int, note: str | None, text: str | None
) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    shift = Shift(datetime.datetime(2026, 11, 24, 9, tzinfo=zone))
    if note is not None:
        shift.note = note  # type: ignore[attr-defined]
    if text is None:
        ObjectService(Roster(shift))
    else:
        with pytest.raises(headrace.ConfigError, match=text):
            ObjectService(Roster(shift))


def test_a_call_that_comes_again_is_answered_as_before_and_not_carried_out() -> None:
    desk = Desk()
    desk.open()
    first = desk.call(1, "add", amount=5)
    assert desk.call(1, "add", amount=5) == first == Answer(AnswerKind.OK, ME, 1, encoded(5))
    assert desk.service.object.total == 5
    # The client has the answer: the copy that comes last of all changes nothing.
    assert desk.call(2, "add", oldest_id=2, amount=1) is not None
    assert desk.call(1, "add", amount=5) is None
    assert desk.service.object.total == 6


def test_what_the_service_has_carried_out_is_in_its_snapshot() -> None:
    desk, next_desk = Desk(), Desk()
    desk.open()
    desk.call(1, "add", amount=5)
    desk.call(2, "order", order=Order("tea" * 20_000, 2), urgent=True)
    chunks = list(desk.service.on_take_snapshot())
    assert len(chunks) > 1
    next_desk.service.on_start(next_desk, iter(chunks))  # type: ignore[arg-type]
    assert next_desk.call(1, "add", amount=5) == desk.session.answers[1]
    assert vars(next_desk.service.object) == vars(desk.service.object)
    assert list(next_desk.service.on_take_snapshot()) == chunks


def test_a_dict_that_was_restored_has_the_order_that_it_had() -> None:
    class Book:
        pages: dict[int, str]

        def __init__(self) -> None:
            self.pages = {}

        @command
        def get(self) -> dict[int, str]:
            return self.pages

    desk, next_desk = Desk(Book()), Desk(Book())
    desk.service.object.pages.update({3: "c", 1: "a", 2: "b"})
    next_desk.service.on_start(next_desk, desk.service.on_take_snapshot())  # type: ignore[arg-type]
    assert list(next_desk.service.object.pages) == [3, 1, 2]


class Shelf:
    counts: dict[str, int]
    anything: Any = None
    weight: float = 0
    number: int = 0
    first: list[int]
    second: list[int]

    def __init__(self) -> None:
        self.counts, self.first, self.second = {}, [], []

    @command
    def get(self) -> int:
        return self.number


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("counts", defaultdict(int, a=1), "which a snapshot makes .* use a plain dict, with get"),
        ("anything", {"k": [(1, 2)]}, r"has \(1, 2\) \(tuple\), .* \[1, 2\] \(list\): use a list"),
        ("weight", 2**60 + 1, "annotate it as int"),
        ("number", Colour.RED, r"\(Colour\), which a snapshot makes 1 \(int\)"),
        ("number", 2**70, "cannot be stored: .*; integers go from .*: keep larger ones as text"),
        ("number", "seven", "cannot be stored: Expected `int`, got `str`"),
        ("anything", object(), "cannot be stored"),
        ("anything", Order("tea", 1), r"\(Order\), which a snapshot makes .* \(dict\)"),
    ],
)
def test_a_value_that_a_snapshot_would_change_is_refused_by_name(name: str, value: Any, words: str) -> None:
    desk = Desk(Shelf())
    setattr(desk.service.object, name, value)
    with pytest.raises(headrace.ConfigError, match=f"^Shelf.{name}: .*{words}"):
        desk.service.on_take_snapshot()
    with pytest.raises(headrace.ConfigError, match=f"^Shelf.{name}: .*{words}"):
        ObjectService(desk.service.object)
    # A command that brings a value back that can be stored is all that it takes.
    setattr(desk.service.object, name, getattr(Shelf(), name))
    assert list(desk.service.on_take_snapshot())


def test_who_took_a_snapshot_and_who_starts_with_it_go_on_with_one_state() -> None:
    desk, next_desk = Desk(Shelf()), Desk(Shelf())
    before = desk.service.object
    before.first = before.second = [1]
    before.anything = [math.nan, {"b": 1, "a": [None]}]
    next_desk.service.on_start(next_desk, desk.service.on_take_snapshot())  # type: ignore[arg-type]
    after = next_desk.service.object
    for one in (before, after):
        one.first.append(2)
    assert (before.first, before.second) == (after.first, after.second) == ([1, 2], [1])
    assert repr(before.weight) == repr(after.weight) == "0.0"
    assert repr(before.anything) == repr(after.anything)


def test_a_client_that_was_forgotten_is_told_so_and_nothing_is_carried_out() -> None:
    desk = Desk(clients_max=2)
    first, second, third = (bytes([number]) * 16 for number in range(3))
    desk.open(first)
    desk.open(second)
    desk.call(1, "add", first, amount=1)
    desk.open(third)
    # The second one was not heard for longest.
    answer = desk.call(1, "add", second, amount=1)
    assert answer is not None
    assert answer.kind is AnswerKind.FORGOTTEN
    answer = desk.call(2, "add", first, amount=1)
    assert answer is not None
    assert answer.kind is AnswerKind.OK
    desk.send(encoded(Request(RequestKind.CLOSE, first)))
    answer = desk.call(3, "add", first, amount=1)
    assert answer is not None
    assert answer.kind is AnswerKind.FORGOTTEN
    assert desk.service.object.total == 2


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("not_a_command", {}, "no command"),
        ("__init__", {}, "no command"),
        ("add", {}, "missing required field"),
        ("add", {"amount": "x"}, "Expected `int`"),
        ("add", {"amount": 1, "more": 2}, "unknown field"),
        ("order", {"order": {"name": "a"}, "urgent": False}, "missing required field"),
    ],
)
def test_calls_that_make_no_sense_are_refused_and_change_nothing(
    name: str, arguments: dict[str, Any], text: str
) -> None:
    desk = Desk()
    desk.open()
    answer = desk.call(1, name, **arguments)
    assert answer is not None
    assert answer.kind is AnswerKind.REFUSED
    assert text in decode_value(answer.value)
    assert desk.service.object.total == 0


def test_a_hostile_client_fills_no_memory_and_stops_nothing() -> None:
    desk = Desk()
    desk.open()
    nested = b"\x91" * 100_000 + b"\x00"
    answer = desk.send(encoded(Request(RequestKind.CALL, ME, 1, 1, "unknown_result", b"\x81\xa1x" + nested)))
    assert answer is not None
    assert answer.kind is AnswerKind.REFUSED
    for command_id in range(1 + WINDOW, 1 + 3 * WINDOW):
        answer = desk.call(command_id, "add", amount=1)
        assert answer is not None
        assert answer.kind is AnswerKind.REFUSED
    assert len(b"".join(desk.service.on_take_snapshot())) < 1000
    chance = random.Random(3)
    message = encoded(Request(RequestKind.CALL, ME, 2, 1, "add", encoded({"amount": 1})))
    for _ in range(2000):
        hostile = bytearray(message)
        for _ in range(chance.randint(1, 4)):
            hostile[chance.randrange(len(hostile))] = chance.randrange(256)
        desk.send(bytes(hostile[: chance.randint(0, len(hostile))]))
    assert desk.service.undecodable_count > 1000
    assert desk.service.on_session_message(None, 0, message, 0) is None


def test_a_snapshot_of_another_class_is_refused_by_name() -> None:
    class Other:
        total: str = ""

        @command
        def get(self) -> str:
            return self.total

    chunks = list(Desk(Other()).service.on_take_snapshot())
    desk = Desk()
    with pytest.raises(ClusterError, match="Other"):
        desk.service.on_start(desk, chunks)  # type: ignore[arg-type]
    with pytest.raises(ClusterError, match="not one of class"):
        desk.service.on_start(desk, [b"garbage"])  # type: ignore[arg-type]


def test_classes_that_cannot_be_replicated_are_refused_at_once() -> None:
    class Bare:
        value: int = 0

    class Hidden:
        @command
        def get(self) -> int:
            return 1

        def __init__(self) -> None:
            self.value = 1

    with pytest.raises(headrace.ConfigError, match="@command"):
        ObjectService(Bare())
    with pytest.raises(TypeError, match=r"instance=.*: must be the object, and not its class: give Shop\(\)"):
        ObjectService(Shop)
    with pytest.raises(TypeError, match=r"kind=.*: must be the class of the object: give Shop$"):
        ObjectClient.connect(Shop())  # type: ignore[arg-type, var-annotated]
    with pytest.raises(headrace.ConfigError, match=r"Hidden.value: must be annotated"):
        ObjectService(Hidden())
    with pytest.raises(headrace.ConfigError, match=r"\*args"):

        @command
        def several(self: object, *args: int) -> None: ...

    with pytest.raises(headrace.ConfigError, match=r"plain\(amount\): must be annotated"):

        @command
        def plain(self, amount): ...  # type: ignore[no-untyped-def]

    with pytest.raises(headrace.ConfigError, match=r"later\(\): must be a plain method"):

        @command
        async def later(self: object) -> None: ...


def versions(*bodies: dict[str, Any]) -> list[type]:
    """Versions of one class: annotations with the values that the constructor gives; ``...`` for none."""
    made = []
    for body in bodies:
        given = {name: value for name, value in body.items() if value is not ...}

        def start(self: object, given: dict[str, Any] = given) -> None:
            vars(self).update(given)

        def get(self: object) -> int:
            return 1

        hints = {name: int if value is ... else type(value) for name, value in body.items()}
        made.append(type("Queue", (), {"__annotations__": hints, "__init__": start, "get": command(get)}))
    return made


def restored(old: type, new: type) -> Any:
    """What the service of a class has after a start with the snapshot of another version."""
    before, desk = Desk(old()), Desk(new())
    before.service.object.waiting = [3]
    desk.service.on_start(desk, before.service.on_take_snapshot())  # type: ignore[arg-type]
    return desk.service.object


def test_an_attribute_that_the_snapshot_lacks_keeps_the_value_of_the_constructor() -> None:
    old, new = versions({"waiting": []}, {"waiting": [], "failed": [7]})
    queue = restored(old, new)
    assert vars(queue) == {"waiting": [3], "failed": [7]}


def test_an_attribute_that_nothing_gives_a_value_is_named() -> None:
    old, new = versions({"waiting": []}, {"waiting": [], "count": ...})
    with pytest.raises(ClusterError, match=r"lacks the attribute .*Queue.count: .*give it a value"):
        restored(old, new)


def test_a_snapshot_with_more_than_the_class_has_is_refused() -> None:
    new, old = versions({"waiting": [], "failed": [7]}, {"waiting": []})
    with pytest.raises(ClusterError, match=r"attributes that class Queue lacks: failed; run the version"):
        restored(new, old)


def test_what_does_not_fit_a_command_is_told_with_its_name() -> None:
    class Shelf:
        items: list[int]

        def __init__(self) -> None:
            self.items = []

        @command
        def put(self, amount: int) -> int:
            """Put some on it."""
            return amount

    made = Commands(Shelf)
    put = made["put"]
    for args, text in (
        ((), "missing"),
        ((1, 2), "too many"),
        (("x",), "Expected `int`"),
        ((object(),), "object"),
    ):
        with pytest.raises(TypeError, match=rf"put\(\): .*{text}"):
            put.packed(args, {})
    with pytest.raises(
        ClusterError,
        match=r"put\(\) was carried out, and its result is not what its annotation here says: Expected `int`",
    ):
        put.unpacked_result(encoded("text"))
    shown = _Proxy(made, lambda *_: None).put  # type: ignore[attr-defined]
    assert list(inspect.signature(shown).parameters) == ["amount"]
    assert shown.__doc__ == "Put some on it."


def test_there_is_no_cluster_outside_of_commands() -> None:
    with pytest.raises(ClusterError, match="method with @command"):
        current_cluster()


# --- a node in this process ---------------------------------------------------------------------------------


@pytest.mark.system
def test_an_object_is_called_as_if_it_were_here() -> None:
    with ClusterNode.embedded(ObjectService(Shop())) as node:
        node.wait_until_leader()
        with ObjectClient.connect(Shop, driver=node.driver, **IPC) as client:
            shop = client.object
            assert [shop.add(2), shop.add(amount=3)] == [2, 5]
            assert shop.order(Order("tea", 1), urgent=True) == [Order("tea", 1)]
            assert shop.names() == {"tea!"}
            assert shop.now() > 1_700_000_000_000
            with pytest.raises(CommandError, match=r"fail\(\) raised ValueError: no") as raised:
                shop.fail("no")
            assert (raised.value.kind, raised.value.text) == ("ValueError", "no")
            assert shop.add(0) == 1005
            with pytest.raises(CommandError, match="TypeError"):
                shop.unknown_result()
            for wrong in (lambda: shop.add("x"), lambda: shop.add(), lambda: shop.order({"name": 1})):
                with pytest.raises(TypeError):
                    wrong()
            with pytest.raises(AttributeError):
                shop.not_a_command()
        with pytest.raises(headrace.ClosedError):
            shop.add(1)


@pytest.mark.system
def test_what_is_too_long_to_send_ends_its_own_call_only() -> None:
    small = "aeron:ipc?term-length=64k"
    with (
        ClusterNode.embedded(ObjectService(Shop())) as node,
        ObjectClient.connect(Shop, driver=node.driver, ingress_channel=small, egress_channel=small) as client,
    ):
        with pytest.raises(CallRefusedError, match=r"^fail\(\) was not sent: .*8192"):
            client.object.fail("x" * 10_000)
        with pytest.raises(
            CommandError, match=r"was carried out, and its result cannot be sent: .*.* bytes, .* 8160$"
        ) as raised:
            client.object.long_text(10_000)
        assert raised.value.kind == "ResultTooLongError"
        assert client.object.add(1) == 2


@pytest.mark.system
@pytest.mark.parametrize("ingress_channel", ["aeron:ipc", "aeron:udp"])
def test_what_is_too_long_for_the_log_ends_its_own_call_only(ingress_channel: str) -> None:
    """A client's stream takes longer messages than the log, whose terms are shorter."""
    endpoint = free_endpoint()
    where = IPC if ingress_channel == "aeron:ipc" else {"ingress_endpoints": f"0={endpoint}"}
    with (
        ClusterNode.embedded(
            ObjectService(Shop()), ingress_endpoint=endpoint, log_channel="aeron:ipc?term-length=64k"
        ) as node,
        ObjectClient.connect(Shop, driver=node.driver, **where) as client,
    ):
        with pytest.raises(CallRefusedError, match=r"^fail\(\) was not sent: .*8160.*log"):
            client.object.fail("x" * 10_000)
        assert client.object.add(1) == 1
        assert node.module.error_count == 0


@pytest.mark.system
def test_coroutines_call_side_by_side() -> None:
    async def main(node: ClusterNode) -> None:
        async with await AsyncObjectClient.connect(Shop, driver=node.driver, **IPC) as client:
            sums = await asyncio.gather(*(client.object.add(1) for _ in range(3 * WINDOW)))
            assert sorted(sums) == list(range(1, 3 * WINDOW + 1))
            assert await client.call(Shop.add, amount=1) == 3 * WINDOW + 1
            assert await client.call(Shop.order, Order("tea", 2), urgent=True) == [Order("tea", 2)]
            for other in (Shop.not_a_command, str.upper, Till.pay):
                with pytest.raises(
                    headrace.ConfigError, match=r"command=.*: must be a command .*, such as Shop\.add"
                ):
                    await client.call(other)  # type: ignore[arg-type, call-arg]

    with ClusterNode.embedded(ObjectService(Shop())) as node:
        node.wait_until_leader()
        asyncio.run(main(node))


@pytest.mark.system
def test_a_command_that_draws_lots_is_found_by_the_check() -> None:
    class Dice:
        value: int = 0

        @command
        def set(self, value: int) -> int:
            self.value = value
            return self.value

        @command
        def roll(self) -> int:
            self.value = random.getrandbits(60)
            return self.value

    check = DeterminismCheck(lambda: ObjectService(Dice()))
    told: list[str] = []
    node = ClusterNode.embedded(check, on_error=told.append)
    node.wait_until_leader()
    with ObjectClient.connect(Dice, driver=node.driver, **IPC) as client:
        assert client.object.set(3) == 3
        assert check.difference is None
        client.object.roll()
        assert check.difference is not None
    with pytest.raises(
        DeterminismError, match=r"test_objects.py:\d+ calls random.getrandbits: .* not determ"
    ) as raised:
        node.close()
    assert str(raised.value) == check.difference
    (error,) = told
    assert "raised DeterminismError(" in error
    assert error.count("log_position=") == 2  # of the check, and of the handler that raised


def test_a_service_with_other_commands_refuses_a_call() -> None:
    desk = Desk()
    desk.open()
    answer = desk.call(1, "gone")
    assert answer is not None
    assert isinstance(error_of(answer, "gone"), CallRefusedError)
