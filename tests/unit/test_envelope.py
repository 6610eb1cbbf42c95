"""The envelope of messages with keys, numbers and headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import ConfigError
from headrace.archive.envelope import Envelope, EnvelopeError


@given(
    st.binary(max_size=200),
    st.binary(max_size=50),
    st.integers(-1, (1 << 63) - 1),
    st.dictionaries(st.text(max_size=20), st.binary(max_size=50), max_size=5),
)
def test_what_is_encoded_is_decoded(
    payload: bytes, key: bytes, number: int, headers: dict[str, bytes]
) -> None:
    envelope = Envelope(payload, key, number, headers)
    assert Envelope.decode(envelope.encode()) == envelope


def test_the_layout_is_this() -> None:
    data = Envelope(b"pay", b"k", 7, {"n": b"v"}).encode()
    assert data.hex(" ", -4) == bytes.fromhex(
        "01010100 00000000 0700000000000000 6b 01006e 01000000 76 706179"
    ).hex(" ", -4)


@given(st.binary(max_size=80))
def test_other_bytes_are_refused_or_read(data: bytes) -> None:
    try:
        envelope = Envelope.decode(data)
    except EnvelopeError:
        return
    assert envelope.encode() == data or len(envelope.headers) < data[1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="must have at most 65535"):
        Envelope(b"", b"k" * 65536).encode()
    with pytest.raises(ConfigError, match="must be at most 255"):
        Envelope(b"", headers={str(one): b"" for one in range(256)}).encode()
    with pytest.raises(EnvelopeError, match="length=3 is below"):
        Envelope.decode(b"abc")
