"""The rows of headrace.sbe: one message at a time against ``struct``, many against a loop of it."""

import struct
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np

from benches.report import Measurement, Row
from headrace import sbe

ROUNDS = 15
CALLS = 20_000
BATCH = 65_536
LARGE_BATCH = 1_000_000
_HEADER = "".join(
    f'<type name="{name}" primitiveType="uint16"/>'
    for name in ("blockLength", "templateId", "schemaId", "version")
)
_TYPES = ("uint64", "int64", "double", "double", "uint32", "int32", "int32", "uint16", "uint8", "int8")
_FIELDS = "".join(f'<field name="f{index}" id="{index}" type="{kind}"/>' for index, kind in enumerate(_TYPES))
SCHEMA = (
    f'<messageSchema id="1" version="0"><types><composite name="messageHeader">{_HEADER}</composite></types>'
    f'<message name="Ten" id="1">{_FIELDS}</message></messageSchema>'
)
VALUES = (2**63 + 5, -(2**40), 101.25, -0.5, 4_000_000_000, -70_000, 12, 65_000, 200, -100)
BY_HAND = struct.Struct("<HHHHQqddIiiHBb")


def _nanoseconds(name: str, statement: str, **names: Any) -> Callable[[], float]:
    """A measurement of one statement, repeated in a loop without a call around it."""
    source = f"def {name}():\n    for _ in repeat:\n        {statement}\n"
    exec(source, names | {"repeat": range(CALLS)}, names)
    loop = names[name]

    def measure() -> float:
        start = perf_counter_ns()
        loop()
        return (perf_counter_ns() - start) / CALLS

    return measure


def _alternating(*measures: Callable[[], float]) -> list[Measurement]:
    """Measures in turns, so that what else the machine does hits all alike."""
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]
    return [Measurement(observations=column) for column in zip(*rounds, strict=True)]


def sbe_single() -> Row:
    """Encoding and decoding one message of ten numbers through the public API."""
    codec = sbe.Schema.from_text(SCHEMA)["Ten"]
    data = codec.encode(*VALUES)
    v = {f"v{index}": value for index, value in enumerate(VALUES)}
    arguments = ", ".join(v)
    decode, unpack, encode, encode_named, pack = _alternating(
        _nanoseconds("decode", "decode(data)", decode=codec.decode, data=data),
        _nanoseconds("unpack", "unpack(data, 0)", unpack=BY_HAND.unpack_from, data=data),
        _nanoseconds("encode", f"encode({arguments})", encode=codec.encode, **v),
        _nanoseconds(
            "named", f"encode({', '.join(f'f{i}=v{i}' for i in range(10))})", encode=codec.encode, **v
        ),
        _nanoseconds("pack", f"pack(51, 1, 1, 0, {arguments})", pack=BY_HAND.pack, **v),
    )
    assert BY_HAND.pack(codec.block_length, 1, 1, 0, *VALUES) == data
    return Row(
        name="sbe-single",
        unit="ns",
        ours=decode,
        peer_name="struct.Struct.unpack_from, nothing checked",
        peer=unpack,
        target="<= 2 x the time (ratio >= 0.5)",
        configuration=(
            f"decoding one little-endian message of ten numbers, {len(data)} bytes with its header, from bytes into an "
            "object with attributes, header checked; one thread"
        ),
        higher_is_better=False,
        notes={
            "encode by position, ns": encode.value,
            "encode by name, ns": encode_named.value,
            "struct.Struct.pack, ns": pack.value,
            "encode ratio": pack.value / encode.value,
            "encode by name ratio": pack.value / encode_named.value,
        },
    )


def _rate(decode: Callable[[], object], count: int) -> Callable[[], float]:
    def measure() -> float:
        start = perf_counter_ns()
        decode()
        return count * 1e9 / (perf_counter_ns() - start)

    return measure


def _batch(codec: sbe.MessageCodec, count: int) -> tuple[np.ndarray, np.ndarray]:
    data = codec.encode(*VALUES)
    return np.frombuffer(data * count, np.uint8), np.arange(count + 1, dtype=np.int32) * len(data)


def sbe_columnar() -> Row:
    """Decoding many messages of ten numbers into ten numpy columns."""
    codec = sbe.Schema.from_text(SCHEMA)["Ten"]
    payload, offsets = _batch(codec, BATCH)
    large, large_offsets = _batch(codec, LARGE_BATCH)
    unpack, starts = BY_HAND.unpack_from, offsets[:-1].tolist()
    few = starts[: BATCH // 8]
    assert codec.columns(payload, offsets)["f9"].tolist() == [-100] * BATCH
    rates = (
        _rate(lambda: codec.columns(payload, offsets), BATCH),
        _rate(lambda: list(zip(*[unpack(payload, start) for start in few], strict=True)), len(few)),
        _rate(lambda: codec.to_arrow(payload, offsets), BATCH),
        _rate(lambda: codec.columns(large, large_offsets), LARGE_BATCH),
        _rate(lambda: codec.select(payload, offsets).records(), BATCH),
    )
    columns, loop, arrow, large_columns, records = _alternating(*rates)
    return Row(
        name="sbe-columnar",
        unit="msg/s",
        ours=columns,
        peer_name="a loop of struct.Struct.unpack_from and zip",
        peer=loop,
        target=">= 10 M msg/s",
        configuration=(
            f"{BATCH} messages of ten numbers, {codec.encoded_length} bytes each with header, one payload with int32 "
            "offsets as poll_batch gives them, into ten contiguous columns; headers and bounds checked; one thread"
        ),
        notes={
            "into an Arrow record batch, msg/s": arrow.value,
            f"{LARGE_BATCH} messages a call, msg/s": large_columns.value,
            "as a view of records, nothing copied, msg/s": records.value,
        },
    )
