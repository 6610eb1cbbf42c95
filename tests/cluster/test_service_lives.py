"""Which acknowledgements count: those of the life of a service that is there now, in their turn."""

from __future__ import annotations

import pytest

from headrace.cluster.errors import ClusterTerminalError
from headrace.cluster.member.service_incarnations import ServiceIncarnations
from headrace.cluster.protocol.control import ServiceAck
from headrace.positions import NULL_VALUE


def first(service_id: int, client_id: int, position: int = 0) -> ServiceAck:
    return ServiceAck(
        log_position=position, timestamp=0, ack_id=0, relevant_id=client_id, service_id=service_id
    )


def later(service_id: int, ack_id: int, position: int) -> ServiceAck:
    return ServiceAck(
        log_position=position, timestamp=0, ack_id=ack_id, relevant_id=NULL_VALUE, service_id=service_id
    )


def opened(count: int) -> ServiceIncarnations:
    lives = ServiceIncarnations(count)
    lives.open()
    lives.await_position(0)
    return lives


def test_what_was_acknowledged_before_a_module_could_be_known_does_not_count() -> None:
    lives = ServiceIncarnations(1)
    lives.await_position(0)
    assert not lives.take(first(0, 100), 7)
    lives.open()
    assert lives.missing == (0,)


def test_a_service_that_ends_before_all_have_started_is_waited_for_anew() -> None:
    lives = opened(2)
    assert lives.take(first(0, 100), 7)
    assert lives.gone(100) == 0
    assert lives.take(first(1, 101), 8)
    assert lives.taken() is None
    assert lives.missing == (0,)
    assert lives.take(first(0, 102), 9)
    assert lives.taken() == (first(0, 102), first(1, 101))


def test_the_latest_life_counts_while_the_driver_has_not_noticed_that_the_one_before_is_gone() -> None:
    lives = opened(1)
    lives.take(first(0, 100), 7)
    lives.take(first(0, 101), 8)
    assert lives.taken() == (first(0, 101),)
    assert (lives.counts(7), lives.counts(8)) == (False, True)
    assert lives.gone(100) is None


def test_what_a_life_that_never_began_with_this_module_sends_does_not_count() -> None:
    lives = opened(1)
    assert not lives.take(later(0, 3, 500), 6)
    assert not lives.counts(6)
    assert lives.missing == (0,)


@pytest.mark.parametrize("at_once", [True, False])
def test_two_containers_of_a_service_are_named(at_once: bool) -> None:
    """The second comes after all have started, or the first acknowledges more after the second has come."""
    lives = opened(1)
    lives.take(first(0, 100), 7)
    if at_once:
        lives.taken()
        with pytest.raises(ClusterTerminalError, match="two containers, of the clients 100 and 101"):
            lives.take(first(0, 101), 8)
        return
    lives.take(first(0, 101), 8)
    lives.taken()
    with pytest.raises(ClusterTerminalError, match="service_id=0 has two containers"):
        lives.take(later(0, 1, 0), 7)


def test_services_of_one_session_each_have_a_life() -> None:
    """Those of Aeron on a driver share it."""
    lives = opened(2)
    lives.take(first(0, 100), 7)
    lives.take(first(1, 101), 7)
    assert lives.taken() is not None
    assert lives.gone(100) == 0
    assert lives.counts(7)


def test_an_acknowledgement_of_another_position_is_an_error() -> None:
    lives = opened(1)
    lives.take(first(0, 100, position=96), 7)
    with pytest.raises(ClusterTerminalError, match="acknowledges position 96 with ack_id=0"):
        lives.taken()


def test_positions_that_were_given_up_are_acknowledged_in_their_turn() -> None:
    lives = opened(1)
    lives.take(first(0, 100), 7)
    assert lives.taken() is not None
    lives.await_position(64)
    assert lives.taken() is None
    lives.await_position(128)
    lives.take(later(0, 1, 64), 7)
    assert lives.taken() is None
    lives.take(later(0, 2, 128), 7)
    assert lives.taken() == (later(0, 2, 128),)
    lives.await_position(192)
    lives.forget_after(160)
    lives.await_position(160)
    lives.take(later(0, 3, 160), 7)
    assert lives.taken() == (later(0, 3, 160),)
