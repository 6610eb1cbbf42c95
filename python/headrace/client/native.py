"""Compiled handlers, which ``Subscription.poll_native`` calls without the interpreter.

The C declaration of a handler::

    struct headrace_header {
        int64_t position;        /* stream position after the message */
        int64_t reserved_value;
        int32_t session_id;
        int32_t stream_id;
        int32_t term_id;
        int32_t term_offset;     /* of the message's first frame */
        int32_t length;          /* of the payload */
        uint32_t flags;          /* of the frame; 0xC0 for a whole message */
    };
    void handler(void *context, const uint8_t *payload, size_t length,
                 const struct headrace_header *header);

With numba::

    import numba
    from headrace.client import native

    @numba.cfunc(native.numba_signature())
    def handler(context, payload, length, header):
        total = numba.carray(context, 1, numba.int64)
        total[0] += length
"""

from __future__ import annotations

import ctypes
from typing import Any

from headrace._base.extras import needs

with needs("numpy"):
    import numpy as np

__all__ = ["HANDLER_TYPE", "HEADER_DTYPE", "Header", "address_of", "numba_signature"]

HEADER_DTYPE = np.dtype(
    [
        ("position", "i8"),
        ("reserved_value", "i8"),
        ("session_id", "i4"),
        ("stream_id", "i4"),
        ("term_id", "i4"),
        ("term_offset", "i4"),
        ("length", "i4"),
        ("flags", "u4"),
    ]
)
"""The header as a numpy record, for ``numba.carray(header, 1, HEADER_DTYPE)[0]``."""


class Header(ctypes.Structure):
    """The header for handlers made with ctypes."""

    _fields_ = (
        ("position", ctypes.c_int64),
        ("reserved_value", ctypes.c_int64),
        ("session_id", ctypes.c_int32),
        ("stream_id", ctypes.c_int32),
        ("term_id", ctypes.c_int32),
        ("term_offset", ctypes.c_int32),
        ("length", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
    )


HANDLER_TYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t, ctypes.POINTER(Header)
)
"""The type of a handler for ctypes. A Python function wrapped in it works, and takes the GIL for each call."""


def numba_signature() -> Any:
    """The signature for ``numba.cfunc``: ``(context, payload, length, header)``."""
    with needs("numba"):
        from numba import types

    payload: Any = types.CPointer(types.uint8)  # type: ignore[no-untyped-call]
    return types.void(types.voidptr, payload, types.uintp, types.voidptr)


def address_of(handler: object) -> int:
    """The address of a numba ``cfunc``, a ctypes function or a cffi function pointer.

    Raises:
        TypeError: The object is of another kind.
    """
    address = getattr(handler, "address", None)
    if isinstance(address, int):
        return address
    if isinstance(handler, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return ctypes.cast(handler, ctypes.c_void_p).value or 0
    try:
        import cffi
    except ImportError:
        pass
    else:
        ffi = cffi.FFI()
        if isinstance(handler, ffi.CData):
            return int(ffi.cast("uintptr_t", handler))
    raise TypeError(
        f"handler={handler!r}: must be an address, a numba cfunc, a ctypes function or a cffi function pointer"
    )
