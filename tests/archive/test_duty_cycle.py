"""How much of many sessions one duty cycle of an archive does."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.archive.server.duty_cycle import Rotation

BLOCK = 1 << 20
CYCLE = 4 << 20


def test_slow_sessions_are_all_stepped_in_each_cycle() -> None:
    rotation, stepped = Rotation(), []
    for _ in range(3):
        assert rotation.do_work(range(100), lambda number: stepped.append(number) or 0) == 0
    assert stepped == [*range(100)] * 3


def test_fast_sessions_share_cycles_in_turn() -> None:
    rotation, stepped = Rotation(), []

    def step(number: int) -> int:
        stepped.append(number)
        return BLOCK

    for _ in range(10):
        assert rotation.do_work(range(10), step) == CYCLE
    assert stepped == [*range(10)] * 4


@given(st.lists(st.lists(st.integers(0, 2 * CYCLE), min_size=7, max_size=7), min_size=8, max_size=30))
def test_each_session_has_its_turn_whatever_the_others_move(cycles: list[list[int]]) -> None:
    rotation, waits = Rotation(), [0] * 7
    for moved in cycles:
        stepped: dict[int, int] = {}

        def step(number: int, moved: list[int] = moved, stepped: dict[int, int] = stepped) -> int:
            stepped[number] = moved[number]
            return moved[number]

        total = rotation.do_work(range(7), step)
        assert total == sum(stepped.values())
        assert total < CYCLE + 2 * CYCLE, "one more session than fill a cycle, at most"
        for number in range(7):
            waits[number] = 0 if number in stepped else waits[number] + 1
        assert max(waits) < 7


def test_sessions_that_end_while_they_are_stepped_take_nothing_from_the_others() -> None:
    rotation, sessions, stepped = Rotation(), dict.fromkeys(range(6), CYCLE), []

    def step(item: tuple[int, int]) -> int:
        number, length = item
        stepped.append(number)
        if number % 2:
            del sessions[number]
        return length

    for _ in range(12):
        rotation.do_work(sessions.items(), step)
    assert set(stepped[:9]) == set(range(6))
    assert stepped.count(1) == stepped.count(3) == stepped.count(5) == 1
