"""The seeded network without sockets: what goes in comes out, as often as the counters say."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.testing import Conditions, NetworkPath, choose_seed, path_random

MS = 1_000_000
chances = st.floats(0.0, 1.0)


def run(conditions: Conditions, seed: int, count: int, step_ns: int = MS) -> tuple[list[bytes], NetworkPath]:
    """Sends numbered datagrams at fixed times, then lets everything held arrive."""
    path = NetworkPath(conditions, path_random(seed, "forward/0"))
    arrived: list[bytes] = []
    for number in range(count):
        now_ns = number * step_ns
        path.receive(number.to_bytes(4, "big"), now_ns)
        arrived.extend(path.deliveries(now_ns))
    while (deadline_ns := path.next_deadline_ns()) is not None:
        arrived.extend(path.deliveries(deadline_ns))
    return arrived, path


def test_a_perfect_path_changes_nothing() -> None:
    arrived, path = run(Conditions(), seed=1, count=100)
    assert arrived == [number.to_bytes(4, "big") for number in range(100)]
    assert (path.counters.delivered, path.counters.delivered_bytes) == (100, 400)


@given(
    loss=chances, duplicate=chances, reorder=chances, jitter_ms=st.integers(0, 20), seed=st.integers(0, 2**32)
)
def test_the_counters_account_for_every_datagram(
    loss: float, duplicate: float, reorder: float, jitter_ms: int, seed: int
) -> None:
    conditions = Conditions(loss=loss, duplicate=duplicate, reorder=reorder, jitter_s=jitter_ms / 1000)
    arrived, path = run(conditions, seed, count=60)
    counters = path.counters
    assert counters.received == 60 == counters.dropped + counters.passed
    assert len(arrived) == counters.delivered == counters.passed + counters.duplicated
    copies = Counter(arrived)
    assert len(copies) == counters.passed
    assert sum(copies.values()) - len(copies) == counters.duplicated


@given(seed=st.integers(0, 2**32))
def test_the_same_seed_and_order_give_the_same_network(seed: int) -> None:
    conditions = Conditions(loss=0.2, duplicate=0.1, reorder=0.2, jitter_s=0.003)
    assert run(conditions, seed, 80)[0] == run(conditions, seed, 80)[0]


def test_another_seed_gives_another_network() -> None:
    conditions = Conditions(loss=0.5)
    assert run(conditions, 1, 80)[0] != run(conditions, 2, 80)[0]


@pytest.mark.parametrize("loss", [0.05, 0.2])
def test_the_share_lost_is_the_share_asked_for(loss: float) -> None:
    _, path = run(Conditions(loss=loss), seed=11, count=20_000)
    assert path.counters.dropped / 20_000 == pytest.approx(loss, rel=0.1)


def test_one_chance_does_not_move_the_others() -> None:
    plain = set(run(Conditions(loss=0.3), 5, 200)[0])
    with_more = set(run(Conditions(loss=0.3, duplicate=0.4, jitter_s=0.01), 5, 200)[0])
    assert plain == with_more


def test_a_reordered_datagram_is_overtaken_by_as_many_as_asked() -> None:
    path = NetworkPath(Conditions(reorder=1.0, reorder_depth=2), path_random(1, "x"))
    path.receive(b"held", 0)
    path.conditions = Conditions()
    order = []
    for number in range(4):
        path.receive(b"%d" % number, number)
        order.extend(path.deliveries(number))
    assert order == [b"0", b"1", b"held", b"2", b"3"]


def test_a_reordered_datagram_that_nothing_follows_still_arrives() -> None:
    path = NetworkPath(Conditions(reorder=1.0, reorder_timeout_s=0.005), path_random(1, "x"))
    path.receive(b"last", 0)
    assert list(path.deliveries(5 * MS - 1)) == []
    assert path.next_deadline_ns() == 5 * MS
    assert list(path.deliveries(5 * MS)) == [b"last"]


def test_delay_moves_everything_by_the_same_time() -> None:
    path = NetworkPath(Conditions(delay_s=0.004), path_random(1, "x"))
    path.receive(b"a", 10)
    assert list(path.deliveries(4 * MS)) == []
    assert list(path.deliveries(4 * MS + 10)) == [b"a"]


def test_a_cut_path_delivers_nothing_new() -> None:
    path = NetworkPath(Conditions(), path_random(1, "x"))
    path.is_cut = True
    path.receive(b"a", 0)
    path.is_cut = False
    path.receive(b"b", 0)
    assert list(path.deliveries(0)) == [b"b"]
    assert (path.counters.cut, path.counters.passed) == (1, 1)


def test_only_the_affected_kind_suffers() -> None:
    conditions = Conditions(loss=1.0, affects=lambda datagram: datagram[3] % 2 == 0)
    arrived, _ = run(conditions, seed=3, count=10)
    assert [datagram[3] for datagram in arrived] == [1, 3, 5, 7, 9]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"loss": 1.5}, "loss=1.5"),
        ({"delay_s": -1.0}, "delay_s=-1.0"),
        ({"reorder_depth": 0}, "reorder_depth=0"),
    ],
)
def test_impossible_conditions_are_refused(wrong: dict[str, float], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Conditions(**wrong)  # type: ignore[arg-type]


def test_a_seed_is_taken_from_the_caller_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SEED", "99")
    assert (choose_seed(3), choose_seed()) == (3, 99)
    monkeypatch.setenv("HEADRACE_SEED", "x")
    with pytest.raises(ValueError, match="HEADRACE_SEED='x'"):
        choose_seed()
