"""Many messages in one call, both ways."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import headrace
from headrace import OfferResult
from tests.helpers import await_true, take

pytestmark = pytest.mark.boundary

RECORD = np.dtype([("key", "<i8"), ("price", "<f8"), ("side", "S1")])


RECORDS = np.array([(1, 0.5, b"b"), (2, 1.5, b"s")], dtype=RECORD)
WORDS = [b"one", b"", b"three", b"four" * 1000]


@pytest.mark.parametrize(
    ("messages", "sent"),
    [
        (WORDS, WORDS),
        (tuple(WORDS), WORDS),
        ([b"bytes", bytearray(b"bytearray"), np.arange(2, dtype="u1")], [b"bytes", b"bytearray", b"\0\x01"]),
        ([], []),
        (np.arange(6, dtype="u1").reshape(2, 3), [b"\0\x01\x02", b"\x03\x04\x05"]),
        (np.arange(12, dtype="u1").reshape(2, 6)[:, ::2], [b"\0\x02\x04", b"\x06\x08\x0a"]),
        (np.array([[0, 1], [2, 3]], "<i2"), [b"\0\0\x01\0", b"\x02\0\x03\0"]),
        (np.empty((3, 0), "u1"), [b"", b"", b""]),
        (RECORDS, [record.tobytes() for record in RECORDS]),
        (np.array([b"ab", b"c"]), [b"ab", b"c\0"]),
        (pa.array(WORDS, pa.binary()), WORDS),
        (pa.array(WORDS, pa.binary())[1:3], WORDS[1:3]),
        (pa.array(WORDS, pa.large_binary()), WORDS),
        (pa.array([b"abcd", b"efgh", b"ijkl"], pa.binary(4))[1:], [b"efgh", b"ijkl"]),
        (pa.array([], pa.binary()), []),
        (pa.array(["text"], pa.string()), [b"text"]),
        (pa.chunked_array([pa.array(WORDS[:2]), pa.array(WORDS[2:])]), WORDS),
    ],
)
@pytest.mark.parametrize("blocking", [False, True])
def test_every_kind_of_batch_arrives_message_by_message(stream, messages, sent, blocking):
    publication, subscription = stream
    if blocking:
        assert publication.offer_batch_blocking(messages) == publication.position
    else:
        result = publication.offer_batch(messages)
        assert result
        assert (result.accepted, result.requested, result.stopped_by) == (len(sent), len(sent), None)
        assert result.position == (publication.position if sent else None)
    assert take(subscription, len(sent)) == sent


@pytest.mark.parametrize(
    ("messages", "error", "text"),
    [
        (b"one message", TypeError, "use offer"),
        ("text", TypeError, "use offer"),
        (7, TypeError, "list or tuple"),
        ([b"fine", "text"], TypeError, r"messages\[1\]"),
        (np.arange(3.0), TypeError, "two dimensions"),
        (np.zeros((2, 3, 4), "u1"), TypeError, "3 dimension"),
        (np.ma.array(np.zeros((2, 1), "u1"), mask=[[1], [0]]), TypeError, "masked values"),
        (np.array([[b"a", None]], object), TypeError, "Python objects"),
        (pa.array([1, 2]), TypeError, "int64"),
        (pa.array([b"a", None]), ValueError, "1 null"),
        (
            [b"fine", bytes(8193)],
            headrace.ConfigError,
            r"len\(messages\[1\]\)=8193.*none of the batch was sent",
        ),
        (np.zeros((2, 8193), "u1"), headrace.ConfigError, "max_message_length=8192"),
    ],
)
def test_what_is_no_batch_is_refused_before_anything_is_sent(stream, messages, error, text):
    publication, _ = stream
    with pytest.raises(error, match=text):
        publication.offer_batch(messages)
    assert publication.position == 0


def test_malformed_arrow_offsets_do_not_reach_outside_the_data(stream):
    publication, _ = stream
    offsets = pa.py_buffer(np.array([0, 1 << 20, 3], np.int32))
    array = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"abc")])
    with pytest.raises(ValueError, match="not a range of the 3 payload bytes"):
        publication.offer_batch(array)


def test_a_batch_says_where_and_why_it_stopped(stream):
    publication, subscription = stream
    result = publication.offer_batch(np.zeros((100, 1000), "u1"))
    assert not result
    assert not result.is_complete
    assert result.stopped_by is OfferResult.BACK_PRESSURED
    assert 0 < result.accepted < 100 == result.requested
    assert result.position == publication.position
    assert "BACK_PRESSURED" in repr(result)
    assert len(take(subscription, result.accepted)) == result.accepted
    publication.close()
    closed = publication.offer_batch([b"x"])
    assert (closed.accepted, closed.position, closed.stopped_by) == (0, None, OfferResult.CLOSED)


def test_a_blocking_batch_that_gives_up_says_how_far_it_came(stream):
    publication, subscription = stream
    with pytest.raises(headrace.PublicationTimeoutError) as refusal:
        publication.offer_batch_blocking([bytes(1000)] * 100, timeout_s=0.01)
    assert refusal.value.result is OfferResult.BACK_PRESSURED
    accepted = refusal.value.accepted
    assert 0 < accepted < 100
    assert len(take(subscription, accepted)) == accepted


def test_columns_line_up_with_polled_headers(stream):
    publication, subscription = stream
    for number, word in enumerate(WORDS):
        if len(word) > 1000:
            publication.offer(word)
            continue
        claim = publication.try_claim(len(word))
        claim.reserved_value = number
        claim.view[:] = word
        claim.commit()
    batch = subscription.poll_batch(100)
    assert list(batch) == batch.to_list() == WORDS
    assert [batch[index] for index in range(-4, 4)] == WORDS * 2
    assert batch.positions.tolist() == [64, 96, 160, publication.position]
    assert batch.offsets.tolist() == [0, 3, 3, 8, 4008]
    assert batch.session_ids.tolist() == [publication.session_id] * 4
    assert batch.stream_ids.tolist() == [publication.stream_id] * 4
    assert batch.reserved_values.tolist() == [0, 1, 2, 0]
    assert batch.payload.tobytes() == b"".join(WORDS)
    for column in (batch.payload, batch.offsets, batch.positions, batch.session_ids, batch.reserved_values):
        assert not column.flags.writeable
    assert batch.payload_length is None
    with pytest.raises(IndexError):
        batch[4]
    with pytest.raises(ValueError, match="differ in length"):
        batch.as_array()
    assert "4 messages" in repr(batch)


def test_an_empty_batch_is_well_formed(stream):
    _, subscription = stream
    batch = subscription.poll_batch()
    assert len(batch) == 0
    assert batch.offsets.tolist() == [0]
    assert batch.positions.tolist() == []
    assert batch.to_arrow().num_rows == 0
    assert batch.as_array().shape == (0, 0)
    assert batch.as_array(RECORD).shape == (0,)


def test_equal_payloads_become_arrays_without_a_copy(stream):
    publication, subscription = stream
    publication.offer_batch(RECORDS)
    batch = subscription.poll_batch()
    assert batch.payload_length == RECORD.itemsize
    assert batch.as_array().shape == (2, RECORD.itemsize)
    records = batch.as_array(RECORD)
    assert records.tolist() == RECORDS.tolist()
    assert np.shares_memory(records, batch.payload)
    publication.offer_batch(np.arange(6, dtype="<i4").reshape(2, 3))
    rows = subscription.poll_batch().as_array("<i4")
    assert rows.tolist() == [[0, 1, 2], [3, 4, 5]]
    publication.offer_batch([b"abc", b"def"])
    with pytest.raises(ValueError, match="payload_length=3 is not a multiple of the item size 8"):
        subscription.poll_batch().as_array("<i8")


def test_arrays_keep_the_memory_of_their_batch_alive(stream):
    publication, subscription = stream
    publication.offer_batch([b"abc"])
    positions = subscription.poll_batch().positions
    assert positions.tolist() == [64]


def test_arrow_shares_the_memory_and_the_capsule_protocol_works(stream):
    publication, subscription = stream
    publication.offer_batch(WORDS)
    batch = subscription.poll_batch()
    table = batch.to_arrow()
    table.validate(full=True)
    assert table.schema.names == ["payload", "position", "session_id", "stream_id", "reserved_value"]
    assert table["payload"].to_pylist() == WORDS
    assert table["position"].to_pylist() == batch.positions.tolist()
    assert table["payload"].buffers()[2].address == batch.payload.ctypes.data
    assert pa.record_batch(batch).equals(table)
    # And what came out goes back in.
    assert publication.offer_batch(table["payload"])
    assert take(subscription, 4) == WORDS


def test_limits_count_fragments_and_the_rest_stays(stream):
    publication, subscription = stream
    publication.offer_batch([b"a", b"b", b"c"])
    assert subscription.poll_batch(2).to_list() == [b"a", b"b"]
    publication.offer(b"d" * 3000)
    assert subscription.poll_batch(2).to_list() == [b"c"]
    assert subscription.poll_batch(200).to_list() == [b"d" * 3000]
    publication.offer(b"e" * 3000)
    assert [len(part) for part in subscription.poll_batch(assemble=False)] == [1376, 1376, 248]


def test_batches_pass_through_many_terms_in_order(stream):
    publication, subscription = stream
    rows = np.arange(64 * 50, dtype="<i8").reshape(-1, 1)
    received: list[int] = []
    sent = 0

    def step() -> bool:
        nonlocal sent
        sent += publication.offer_batch(rows[sent:]).accepted
        batch = subscription.poll_batch()
        received.extend(batch.as_array("<i8").tolist() if len(batch) else [])
        return len(received) == len(rows)

    await_true(step)
    assert received == rows[:, 0].tolist()
