"""What of an object is its state: attributes that are annotated. What would be in no snapshot is refused."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, Generic, TypeVar, cast

import pytest

import headrace
from headrace.cluster.objects import ObjectService, command

T = TypeVar("T")


class Slotted:
    """Has the state that a test gives it."""

    __slots__ = ("beside", "value")
    value: int

    def __init__(self) -> None:
        self.value = 0

    @command
    def get(self) -> int:
        return self.value


class Derived(Slotted):
    """Has it from its base."""


class Listed(dict[str, int]):
    """Has state that is no attribute."""

    @command
    def put(self, key: str) -> int:
        self[key] = 1
        return len(self)


class Queued(collections.deque[int]):
    """Has it as well."""

    @command
    def put(self, number: int) -> None:
        self.append(number)


@pytest.mark.parametrize(
    ("instance", "text"),
    [
        (Slotted(), r"^Slotted\.beside: must be annotated in its class"),
        (Derived(), r"^Derived\.beside: must be annotated in its class"),
        (
            Listed(),
            r"^Listed: must not inherit from dict, whose state is not in attributes.*keep a dict in an attribute",
        ),
        (Queued(), r"^Queued: must not inherit from deque"),
    ],
    ids=["slots", "slots of a base", "dict", "deque"],
)
def test_state_that_is_in_no_annotated_attribute_is_refused(instance: object, text: str) -> None:
    with pytest.raises(headrace.ConfigError, match=text):
        ObjectService(instance)


class Pair:
    """A value with a slot beside its fields."""

    __slots__ = ("__dict__", "more")


def test_slots_that_are_annotated_are_state() -> None:
    class Counter(Generic[T]):
        __slots__ = ("__hidden", "__weakref__", "value")
        value: int
        __hidden: int

        def __init__(self) -> None:
            self.value = self.__hidden = 0

        @command
        def add(self) -> int:
            self.value += 1
            self.__hidden += 2
            return self.__hidden

    before, after = Counter[int](), Counter[int]()
    service = ObjectService(before)
    assert before.add() == 2
    ObjectService(after).on_start(cast("Any", None), service.on_take_snapshot())
    assert (after.value, after.add()) == (1, 4)


@dataclasses.dataclass
class Point(Pair):
    """A value that a service keeps."""

    x: int = 0


class Holder:
    """Has one."""

    point: Point

    def __init__(self) -> None:
        self.point = Point()

    @command
    def get(self) -> int:
        return self.point.x


def test_a_slot_of_a_value_that_is_no_field_is_refused() -> None:
    holder = Holder()
    ObjectService(holder)
    holder.point.more = 1
    with pytest.raises(headrace.ConfigError, match="of which a snapshot loses more"):
        ObjectService(holder)
