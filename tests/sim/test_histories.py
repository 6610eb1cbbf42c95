"""The check of histories: which it takes, and which it must refuse."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from tests.sim.histories import Call, NotLinearizableError, check_history


def register(state: str, command: tuple[str, str]) -> tuple[str, str]:
    """`put` answers what was there before, `get` what is there; `set` answers nothing of it."""
    kind, value = command
    if kind == "get":
        return state, state
    return value, state if kind == "put" else "ok"


def call(text: str, called: int, returned: int | None = None, position: int = 0, answer: str = "") -> Call:
    """`"a put 1"` is a call of the session a."""
    session, kind, *value = text.split()
    return Call(session, "x", (kind, *(value or [""])), called, returned, position, answer)


def check(*calls: Call) -> None:
    check_history(calls, register, "0")


TAKEN: dict[str, tuple[Call, ...]] = {
    "nothing": (),
    "one after another": (call("a put 1", 0, 10, 100, "0"), call("b get", 20, 30, 200, "1")),
    "at the same time, in the order of the log and not of the calls": (
        call("a put 1", 0, 50, 200, "2"),
        call("b put 2", 10, 40, 100, "0"),
    ),
    "the answer comes in the same moment as the next call": (
        call("a put 1", 0, 10, 200, "2"),
        call("b put 2", 10, 40, 100, "0"),
    ),
    "an unanswered call has happened": (call("a put 1", 0, None, 100), call("b get", 20, 30, 200, "1")),
    "an unanswered call has not happened": (call("a put 1", 0), call("b get", 20, 30, 200, "0")),
    "an unanswered call happens long after it was made": (
        call("a put 1", 0, None, 250),
        call("b get", 20, 30, 200, "0"),
        call("b get", 40, 50, 300, "1"),
    ),
    "two unanswered calls, the later one first": (
        call("a put 1", 0, None, 250),
        call("b put 2", 5, None, 100),
        call("c get", 20, 30, 200, "2"),
        call("c get", 40, 50, 300, "1"),
    ),
    "the last calls of a session have not happened": (
        call("a put 1", 0, None, 100),
        call("a put 2", 5),
        call("a put 3", 6),
        call("c get", 20, 30, 200, "1"),
    ),
}

REFUSED: dict[str, tuple[str, tuple[Call, ...]]] = {
    "an old value": ("give '1'", (call("a put 1", 0, 10, 100, "0"), call("b get", 20, 30, 200, "0"))),
    "a value that no client wrote": ("give '0'", (call("b get", 20, 30, 200, "7"),)),
    "the value of a call that has not happened": (
        "give '0'",
        (call("a put 1", 0), call("b get", 20, 30, 200, "1")),
    ),
    "a write that is lost after it was read": (
        "give '1'",
        (call("a put 1", 0, None, 100), call("b get", 20, 30, 200, "1"), call("b get", 40, 50, 300, "0")),
    ),
    "a write that happens twice": (
        "give '2'",
        (
            call("a put 1", 0, None, 100),
            call("b get", 10, 15, 200, "1"),
            call("b put 2", 20, 25, 300, "1"),
            call("b get", 30, 35, 400, "1"),
        ),
    ),
    "the log against the time": (
        "answered before a call that the log has before it",
        (call("a put 1", 0, 10, 200, "2"), call("b put 2", 20, 30, 100, "0")),
    ),
    "the log against the time, with another between": (
        "answered before a call that the log has before it",
        (
            call("a put 1", 0, 10, 300, "3"),
            call("b put 2", 20, 30, 100, "0"),
            call("c put 3", 5, 40, 200, "2"),
        ),
    ),
    "an unanswered call that happens before it was made": (
        "answered before a call that the log has before it",
        (call("b get", 0, 10, 200, "1"), call("a put 1", 20, None, 100)),
    ),
    "two entries at one position": (
        "two calls at one log position",
        (call("a get", 0, 10, 100, "0"), call("b get", 0, 10, 100, "0")),
    ),
    "two entries at one position, the later call first": (
        "two calls at one log position",
        (call("a get", 5, 10, 50, "0"), call("b get", 0, 10, 100, "0"), call("c get", 0, 10, 100, "0")),
    ),
    "calls of a session in another order": (
        "changed places",
        (call("a put 1", 0, 40, 200, "2"), call("a put 2", 1, 50, 100, "0")),
    ),
    "a call of a session left out": (
        "left out",
        (call("a put 1", 0), call("a put 2", 1, 50, 100, "0")),
    ),
    "an answer from no place in the log": ("without a place", (call("a get", 0, 10, 0, "0"),)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_takes(name: str) -> None:
    check(*TAKEN[name])


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    text, calls = REFUSED[name]
    with pytest.raises(NotLinearizableError, match=text):
        check(*calls)


def test_objects_are_apart() -> None:
    mine, other = call("a put 1", 0, 10, 100, "0"), call("b get", 20, 30, 200, "0")
    other.key = "y"
    check(mine, other)


def served(chance: random.Random, count: int) -> list[Call]:
    """What three clients of a register see that keeps its word, some of them without an answer."""
    state, calls, moments = "0", [], itertools.count()
    waiting: list[Call] = []
    position = 0
    free = {"a", "b", "c"}
    while len(calls) < count or waiting:
        if free and len(calls) < count and chance.random() < 0.5:
            session = chance.choice(sorted(free))
            free.discard(session)
            command = chance.choice((("get", ""), ("put", str(len(calls) + 1))))
            one = Call(session, "x", command, next(moments))
            calls.append(one)
            waiting.append(one)
        elif waiting:
            one = waiting.pop(chance.randrange(len(waiting)))
            is_done = chance.random() < 0.9
            if is_done:
                position += 32
                one.position = position
                state, one.answer = register(state, one.command)
            if is_done and chance.random() < 0.8:
                one.returned_ns = next(moments)
                free.add(str(one.session))
            else:
                # Its client begins a new session.
                free.add(chr(ord("d") + len(calls)))
    return calls


@pytest.mark.parametrize("seed", range(20))
def test_takes_what_a_register_does_and_refuses_what_it_does_not(seed: int) -> None:
    chance = random.Random(seed)
    calls = served(chance, 60)
    check(*calls)
    reads = [one for one in calls if one.returned_ns is not None]
    spoilt: Any = chance.choice(reads)
    spoilt.answer = "nothing that was written"
    with pytest.raises(NotLinearizableError):
        check(*calls)
