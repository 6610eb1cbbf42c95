"""Handlers that are compiled, called without the interpreter."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

import headrace
from headrace.client import native
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.boundary


def send(publication, count=100):
    return publication.offer_batch(np.arange(count, dtype="<i8").reshape(-1, 1))


def test_a_ctypes_handler_gets_context_payload_and_header(stream):
    publication, subscription = stream
    send(publication, 3)
    seen = []

    @native.HANDLER_TYPE
    def handler(context, payload, length, header):
        seen.append((context, bytes(payload[:length]), header.contents.position, header.contents.session_id))

    assert subscription.poll_native(handler, 4711) == 3
    assert seen == [
        (4711, number.to_bytes(8, "little"), 64 * (number + 1), publication.session_id) for number in range(3)
    ]


def test_a_numba_handler_runs_without_the_interpreter(stream):
    numba = pytest.importorskip("numba")
    header_dtype = native.HEADER_DTYPE

    @numba.cfunc(native.numba_signature())
    def handler(context, payload, length, header):
        sums = numba.carray(context, 4, np.int64)
        sums[0] += 1
        sums[1] += numba.carray(payload, length)[0]
        fields = numba.carray(header, 1, header_dtype)[0]
        sums[2] = fields.position
        sums[3] += fields.length

    publication, subscription = stream
    send(publication)
    sums = np.zeros(4, np.int64)
    assert subscription.poll_native(handler, sums.ctypes.data) == 100
    assert sums.tolist() == [100, sum(range(100)), publication.position, 800]
    assert subscription.poll_native(handler.address, sums.ctypes.data) == 0


def test_a_cffi_handler_works(stream):
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    seen = []

    @ffi.callback("void(void *, const uint8_t *, size_t, const void *)")
    def handler(context, payload, length, header):
        seen.append(length)

    publication, subscription = stream
    send(publication, 2)
    assert subscription.poll_native(handler) == 2
    assert seen == [8, 8]


def test_messages_are_assembled_unless_told_otherwise(stream):
    publication, subscription = stream
    lengths = []

    @native.HANDLER_TYPE
    def handler(context, payload, length, header):
        lengths.append((length, header.contents.length, header.contents.flags))

    publication.offer(bytes(3000))
    assert subscription.poll_native(handler) == 3
    publication.offer(bytes(1400))
    assert subscription.poll_native(handler, assemble=False) == 2
    assert lengths == [(3000, 3000, 0xC0), (1376, 1376, 0x80), (24, 24, 0x40)]


def test_the_interpreter_goes_on_while_a_handler_runs(stream):
    """The handler waits for another thread, which can only come if the GIL is free."""
    publication, subscription = stream
    send(publication, 1)
    arrived = threading.Event()
    other = threading.Thread(target=arrived.set)

    @native.HANDLER_TYPE
    def handler(context, payload, length, header):
        other.start()
        assert arrived.wait(TIMEOUT_S)

    await_true(lambda: subscription.poll_native(handler))
    other.join()


@pytest.mark.parametrize("handler", [print, "text", None])
def test_what_has_no_address_is_refused(stream, handler):
    _, subscription = stream
    with pytest.raises(TypeError, match="must be an address"):
        subscription.poll_native(handler)


def test_address_zero_is_refused(stream):
    _, subscription = stream
    with pytest.raises(ValueError, match="not 0"):
        subscription.poll_native(0)


def test_the_header_is_the_same_in_every_description():
    assert native.HEADER_DTYPE.itemsize == ctypes.sizeof(native.Header) == 40
    for name, _ in native.Header._fields_:
        assert native.HEADER_DTYPE.fields[name][1] == getattr(native.Header, name).offset


def test_a_closed_subscription_is_refused(stream):
    _, subscription = stream
    subscription.close()
    with pytest.raises(headrace.ClosedError):
        subscription.poll_native(native.HANDLER_TYPE(lambda *arguments: None))
