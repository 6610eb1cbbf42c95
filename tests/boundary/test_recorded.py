"""Sending what was recorded, read straight into the log."""

from __future__ import annotations

import struct

import pytest

import headrace
from headrace import OfferResult
from tests.helpers import await_true

pytestmark = pytest.mark.boundary

HEADER = struct.Struct("<iBBHiiiiq")


@pytest.fixture
def stream(open_stream):
    return open_stream(exclusive=True)


def frame(publication, position, payload):
    """A frame that another session recorded at this position of the first term."""
    header = HEADER.pack(32 + len(payload), 0, 0xC0, 1, position, -5, -6, publication.initial_term_id, 99)
    return header + payload + bytes(-len(payload) % 32)


def reads(data):
    """What fills the views with data."""

    def read(header, rest):
        length = min(len(data), len(header) + len(rest))
        header[:] = data[:32]
        rest[: length - 32] = data[32:length]
        return length

    return read


def received(subscription, count):
    messages = []

    def poll():
        subscription.poll(lambda payload, header: messages.append((payload, header.session_id)), 10)
        return len(messages) >= count

    await_true(poll)
    return messages


def test_frames_of_another_session_arrive_under_that_of_the_publication(stream):
    publication, subscription = stream
    data = frame(publication, 0, b"one") + frame(publication, 64, b"two" * 30)
    block = publication.offer_recorded(reads(data), len(data), len(data))
    assert (block.length, block.padding, block.is_malformed) == (len(data), 0, False)
    assert publication.position == len(data)
    session_id = publication.session_id
    assert received(subscription, 2) == [(b"one", session_id), (b"two" * 30, session_id)]


def test_what_the_read_raises_is_raised_and_nothing_is_sent(stream):
    publication, _ = stream

    def fail(header, rest):
        rest[:] = b"\xff" * len(rest)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        publication.offer_recorded(fail, 1024, 1024)
    assert publication.position == 0
    assert publication.offer(b"next") == 64


def test_a_read_that_keeps_its_views_sends_nothing(stream):
    publication, _ = stream
    kept = []

    def keep(header, rest):
        kept.append(rest[:10])
        return reads(frame(publication, 0, b"x"))(header, rest)

    with pytest.raises(BufferError, match="nothing was sent"):
        publication.offer_recorded(keep, 64, 64)
    assert publication.position == 0


def test_what_is_no_frame_of_this_place_is_not_sent(stream):
    publication, _ = stream
    block = publication.offer_recorded(reads(frame(publication, 64, b"elsewhere")), 64, 64)
    assert (block.length, block.is_malformed) == (0, True)
    assert publication.position == 0


def test_nothing_is_read_without_a_subscriber_or_a_length(media_client):
    publication = media_client.add_exclusive_publication("aeron:ipc?term-length=64k", 4202)
    read = pytest.fail
    assert publication.offer_recorded(read, 1024, 1024) is OfferResult.NOT_CONNECTED
    with pytest.raises(headrace.ConfigError, match="within=-1"):
        publication.offer_recorded(read, 1024, -1)
    publication.close()
    assert publication.offer_recorded(read, 1024, 1024) is OfferResult.CLOSED


def test_less_than_a_header_is_refused_by_name(stream):
    publication, _ = stream
    with pytest.raises(headrace.ConfigError, match="length=31"):
        publication.offer_recorded(pytest.fail, 31, 31)
