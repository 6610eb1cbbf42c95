"""Claims: committed on success, aborted on exception, their views over after."""

from __future__ import annotations

import gc
import struct

import numpy as np
import pytest

import headrace
from headrace import OfferResult
from tests.helpers import TIMEOUT_S, await_true, take

pytestmark = pytest.mark.boundary


@pytest.fixture(params=[False, True], ids=["concurrent", "exclusive"])
def pair(request, open_stream):
    return open_stream(exclusive=request.param)


def test_a_claim_is_sent_when_its_block_ends(pair):
    publication, subscription = pair
    claim = publication.try_claim(16)
    assert claim
    assert (len(claim), claim.position) == (16, 64)
    with claim as view:
        assert not view.readonly
        assert len(view) == 16
        struct.pack_into("<qd", view, 0, 7, 0.5)
        assert subscription.poll(lambda payload, header: None, 10) == 0
    assert take(subscription, 1) == [struct.pack("<qd", 7, 0.5)]


def test_an_exception_aborts_the_claim_and_passes(pair):
    publication, subscription = pair

    def fail() -> None:
        with publication.try_claim(100) as view:
            view[:3] = b"bad"
            raise LookupError("half-way")

    with pytest.raises(LookupError, match="half-way"):
        fail()
    publication.offer(b"next")
    assert take(subscription, 1) == [b"next"]


def test_the_view_raises_once_the_claim_has_ended(pair):
    publication, _ = pair
    with publication.try_claim(8) as view:
        view[:] = b"12345678"
    with pytest.raises(ValueError, match="released"):
        view[0] = 0
    claim = publication.try_claim(8)
    view = claim.view
    assert claim.view is view
    claim.abort()
    claim.abort()
    with pytest.raises(ValueError, match="released"):
        bytes(view)
    with pytest.raises(headrace.ClosedError):
        _ = claim.view
    with pytest.raises(headrace.ClosedError):
        claim.commit()


@pytest.mark.parametrize("keep", [lambda view: view[2:4], lambda view: np.frombuffer(view, np.uint8)])
def test_a_view_that_lives_on_aborts_the_claim(pair, keep):
    publication, subscription = pair
    claim = publication.try_claim(8)
    kept = keep(claim.view)
    with pytest.raises(BufferError, match="aborted"):
        claim.commit()
    kept[0] = 1  # still mapped, and no subscriber will read it
    publication.offer(b"next")
    assert take(subscription, 1) == [b"next"]


def test_an_array_that_is_gone_by_the_end_does_no_harm(pair):
    publication, subscription = pair
    with publication.try_claim(8) as view:
        np.frombuffer(view, np.uint8)[:] = 9
    assert take(subscription, 1) == [b"\x09" * 8]


def test_a_dropped_claim_does_not_hold_the_stream_up(pair):
    publication, subscription = pair
    claim = publication.try_claim(8)
    publication.offer(b"after")
    assert subscription.poll(lambda payload, header: None, 10) == 0
    del claim
    gc.collect()
    assert take(subscription, 1) == [b"after"]


def test_the_view_of_a_dropped_claim_is_over(pair):
    publication, subscription = pair
    view = publication.try_claim(8).view
    gc.collect()
    with pytest.raises(ValueError, match="released"):
        view[0] = 1
    publication.offer(b"after")
    assert take(subscription, 1) == [b"after"]


def test_an_array_that_outlives_its_claim_is_told_of(pair, monkeypatch):
    publication, _ = pair
    claim = publication.try_claim(8)
    kept = np.frombuffer(claim.view, np.uint8)
    with pytest.raises(BufferError, match="still held"):
        claim.abort()
    told = []
    monkeypatch.setattr("sys.unraisablehook", told.append)
    dropped = publication.try_claim(8)
    kept = np.frombuffer(dropped.view, np.uint8)
    del dropped
    gc.collect()
    assert [type(each.exc_value) for each in told] == [BufferError]
    del kept


def test_a_claim_outlives_its_publication(pair):
    publication, _ = pair
    claim = publication.try_claim(8)
    view = claim.view
    publication.close()
    view[:] = b"deadbeef"
    claim.commit()


def test_the_reserved_value_travels_with_the_frame(pair):
    publication, subscription = pair
    claim = publication.try_claim(4)
    claim.reserved_value = -5
    assert claim.reserved_value == -5
    claim.view[:] = b"data"
    assert claim.commit() == claim.position
    headers = []
    await_true(lambda: subscription.poll(lambda payload, header: headers.append(header), 1))
    assert headers[0].reserved_value == -5


def test_refusals_and_rules(pair):
    publication, _ = pair
    with pytest.raises(headrace.ConfigError, match="max_payload_length=1376"):
        publication.try_claim(1377)
    with pytest.raises(
        headrace.ConfigError, match="length=-1: must be a whole number from 0 to max_payload_length"
    ):
        publication.try_claim(-1)
    while claim := publication.try_claim(1376):
        claim.abort()
    while publication.try_claim(1000) is OfferResult.ADMIN_ACTION:
        pass
    publication.close()
    assert publication.try_claim(8) is OfferResult.CLOSED
    with pytest.raises(headrace.PublicationClosedError):
        publication.claim_blocking(8)


def test_claim_blocking_gives_a_claim(pair):
    publication, subscription = pair
    with publication.claim_blocking(2, timeout_s=TIMEOUT_S) as view:
        view[:] = b"ok"
    assert take(subscription, 1) == [b"ok"]
