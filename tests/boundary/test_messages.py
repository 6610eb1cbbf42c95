"""Messages as values: compared, hashed, pickled, printed, made for tests."""

import copy
import pickle

import pytest

import headrace
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.boundary

VALUES = {"payload": b"hello", "position": 64, "session_id": -5, "stream_id": 10, "reserved_value": 2**63 - 1}


def test_messages_are_equal_when_all_their_values_are():
    message = headrace.Message(**VALUES)
    assert message == headrace.Message(**VALUES)
    assert hash(message) == hash(headrace.Message(**VALUES))
    for name, other in (
        ("payload", b"other"),
        ("position", 96),
        ("session_id", 5),
        ("stream_id", 11),
        ("reserved_value", 0),
    ):
        assert message != headrace.Message(**{**VALUES, name: other})
    assert message != b"hello"


def test_a_received_message_can_be_pickled_and_copied(media_client: headrace.Client):
    subscription = media_client.add_subscription("aeron:ipc?term-length=64k", 4901)
    publication = media_client.add_publication("aeron:ipc?term-length=64k", 4901)
    publication.offer_blocking(b"over the log")
    message = subscription.receive(timeout_s=TIMEOUT_S)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(message, protocol)) == message
    assert copy.deepcopy(message) == message
    assert message.payload == b"over the log"


def test_messages_print_their_payload_and_shorten_a_long_one():
    assert repr(headrace.Message(b"hello", 64, -5, 10)) == (
        "Message(b'hello', position=64, session_id=-5, stream_id=10)"
    )
    shown = repr(headrace.Message(b"x" * 1000, reserved_value=7))
    assert "of 1000 bytes" in shown
    assert "reserved_value=7" in shown
    assert len(shown) < 200


def test_a_number_that_does_not_fit_is_refused_by_name():
    with pytest.raises(headrace.ConfigError, match="session_id=2147483648"):
        headrace.Message(b"", session_id=2**31)


def test_idle_strategies_print_their_class():
    assert repr(headrace.BackoffIdleStrategy()) == "BackoffIdleStrategy()"
    assert "spin" in repr(headrace.IdleStrategy("spin"))
