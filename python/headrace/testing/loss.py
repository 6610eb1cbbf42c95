"""Loss at the sockets of a driver, as settings of it: what arrives is dropped on purpose.

Each function returns properties for :class:`headrace.MediaDriver`. They hold for all sockets of that driver, and drop
what it receives; to lose what it sends, give them to the driver on the other side.
"""

from __future__ import annotations

from collections.abc import Iterable

_PREFIX = "aeron.udp.channel"
_ARGUMENTS = f"{_PREFIX}.transport.bindings"
_TYPES = ("PAD", "DATA", "NAK", "SM", "ERR", "SETUP", "RTTM")


def random_loss(rate: float, *, seed: int, frames: Iterable[str] = ("DATA",)) -> dict[str, str]:
    """Drops datagrams at random.

    Args:
        rate: How many, from 0 to 1.
        seed: Not negative. The same seed drops the same datagrams of the same traffic.
        frames: Types of the first frame of a datagram that may be dropped: PAD, DATA, NAK, SM, ERR, SETUP, RTTM.

    Raises:
        ValueError: The rate is not from 0 to 1, the seed is negative, a type is unknown, or there is none.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate={rate} must be from 0 to 1")
    _check_not_negative("seed", seed)
    if isinstance(frames, str) or not (names := list(frames)):
        raise ValueError(f"frames={frames!r} must be a list of types, such as ['DATA']")
    mask = 0
    for name in names:
        if name not in _TYPES:
            raise ValueError(f"frames={name!r} must be of {', '.join(_TYPES)}")
        mask |= 1 << _TYPES.index(name)
    return _settings("loss", "loss", f"rate={rate}|seed={seed}|recv-msg-mask={mask:#x}")


def fixed_loss(*, term_id: int, term_offset: int, length: int) -> dict[str, str]:
    """Drops the first transmission of what overlaps a range of a term, in each stream.

    Args:
        term_id: The term. A publication chooses its first one at random, unless its channel has ``init-term-id``,
            ``term-id`` and ``term-offset``: of streams without a term of this id nothing is dropped.
        term_offset: First byte of the range.
        length: Bytes of the range.

    Raises:
        ValueError: The offset or the length is negative.
    """
    _check_not_negative("term_offset", term_offset)
    _check_not_negative("length", length)
    return _settings(
        "fixed-loss", "fixed.loss", f"term-id={term_id}|term-offset={term_offset}|length={length}"
    )


def gap_loss(*, term_id: int, distance: int, length: int, count: int) -> dict[str, str]:
    """Drops the first transmission of `length` bytes at each multiple of `distance` in a term, in each stream.

    Args:
        term_id: The term; see :func:`fixed_loss`.
        distance: Bytes from gap to gap, rounded up to a power of two. None is at offset 0.
        length: Bytes of a gap, fewer than `distance`.
        count: How many gaps.

    Raises:
        ValueError: A gap is not shorter than the distance, or its length or the count is negative.
    """
    _check_not_negative("length", length)
    _check_not_negative("count", count)
    if length >= distance:
        raise ValueError(f"length={length} must be less than distance={distance}")
    arguments = f"term-id={term_id}|gap-radix={distance}|gap-length={length}|total-gaps={count}"
    return _settings("multi-gap-loss", "multi.gap.loss", arguments)


def _check_not_negative(name: str, value: int) -> None:
    if value < 0:
        raise ValueError(f"{name}={value} must not be negative")


def _settings(name: str, key: str, arguments: str) -> dict[str, str]:
    return {f"{_PREFIX}.incoming.interceptors": name, f"{_ARGUMENTS}.{key}.args": arguments}
