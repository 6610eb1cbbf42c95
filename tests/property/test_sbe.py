"""Any value that fits goes through unchanged; any bytes give a message or a DecodeError, alone and in batches."""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from headrace import sbe
from headrace.sbe._model import Body, Composite, Data, EnumType, Group, Member, SetType
from tests.golden.sbe import MESSAGES, NEWEST, ORDERS, market

pytestmark = pytest.mark.property

SCHEMAS = {(order, version): market(order, version) for order in ORDERS for version in range(NEWEST + 1)}
CHOICES = st.tuples(st.sampled_from(ORDERS), st.sampled_from(MESSAGES))
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def of_member(member: Member) -> st.SearchStrategy[Any]:
    kind = member.type
    if isinstance(kind, Composite):
        return st.tuples(*(of_member(inner) for inner in kind.members if not inner.is_constant))
    if isinstance(kind, EnumType):
        return st.sampled_from([name for name, _ in kind.values])
    if isinstance(kind, SetType):
        return st.integers(0, (1 << 8 * kind.size) - 1)
    if kind.is_text:
        return st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=kind.length)
    if kind.is_bytes:
        return st.binary(min_size=kind.length, max_size=kind.length)
    if kind.primitive.name == "char":
        return st.characters(max_codepoint=255)
    if kind.primitive.is_float:
        item = st.floats(allow_nan=False, width=8 * kind.primitive.size)
    else:
        bits = 8 * kind.primitive.size
        low = 0 if kind.primitive.is_unsigned else -(1 << bits - 1)
        item = st.integers(low, low + (1 << bits) - 1)
    if kind.length != 1:
        return st.tuples(*[item] * kind.length)
    return st.none() | item.filter(lambda value: value != kind.null) if member.optional else item


def of_data(data: Data) -> st.SearchStrategy[Any]:
    if not data.encoding:
        return st.binary(max_size=40)
    top = 127 if data.encoding == "ascii" else 0x10FFFF
    return st.text(st.characters(max_codepoint=top, exclude_categories=["Cs"]), max_size=20)


def of_body(body: Body) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(
        *map(of_member, body.wire_fields),
        *(st.lists(of_body(group.body), max_size=3) for group in body.groups),
        *map(of_data, body.data),
    )


def plain(value: Any) -> Any:
    """Enums as names and records as tuples: what the strategies make."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return [plain(item) for item in value] if isinstance(value, list) else value


def values_of(codec: sbe.MessageCodec) -> st.SearchStrategy[tuple[Any, ...]]:
    return of_body(codec.model.body)


def rows(value: Any) -> Any:
    """What Arrow gives back for a decoded value."""
    if isinstance(value, sbe.Record):
        return {name: rows(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, sbe.BitSet):
        return int(value)
    return [rows(item) for item in value] if isinstance(value, (list, tuple)) else value


def outcome(decode: Callable[[], Any]) -> Any:
    """What was decoded, or the error that is allowed."""
    try:
        return decode()
    except sbe.DecodeError as error:
        return error


@SETTINGS
@given(CHOICES, st.data())
def test_a_message_comes_back_as_it_went(choice: tuple[str, str], data: st.DataObject) -> None:
    codec = SCHEMAS[choice[0], NEWEST][choice[1]]
    values = data.draw(values_of(codec))
    encoded = codec.encode(*values)
    message, end = codec.decode_from(encoded + b"after")
    assert plain(message) == values
    assert end == len(encoded)
    assert codec.encode(*message) == encoded
    assert codec.encode(**message.to_dict()) == encoded
    for same in (bytearray(encoded), memoryview(encoded), np.frombuffer(encoded, np.uint8)):
        assert codec.decode(same) == message
    assert codec.decode(b"...." + encoded, 4) == message
    assert SCHEMAS[choice[0], NEWEST].decode(encoded) == message


@SETTINGS
@given(CHOICES, st.data())
def test_a_batch_is_its_messages(choice: tuple[str, str], data: st.DataObject) -> None:
    """Also when other templates and older versions lie between them."""
    order, name = choice
    codec = SCHEMAS[order, NEWEST][name]
    encoded, expected, wanted = [], [], []
    for _ in range(data.draw(st.integers(0, 5))):
        version = data.draw(st.integers(0, NEWEST))
        writer = SCHEMAS[order, version][data.draw(st.sampled_from([name, name, "Trade", "Text"]))]
        encoded.append(writer.encode(*data.draw(values_of(writer))))
        if writer.name == name:
            wanted.append(len(encoded) - 1)
            expected.append(codec.decode(encoded[-1]))
    selection = codec.select(encoded)
    assert selection.rows.tolist() == wanted
    batch = selection.to_arrow(enums="name")
    batch.validate(full=True)
    assert batch.schema == codec.arrow_schema(enums="name")
    assert batch.to_pylist() == [rows(message) for message in expected]
    for style in ("dictionary", "value"):
        selection.to_arrow(enums=style).validate(full=True)


@SETTINGS
@given(CHOICES, st.integers(0, NEWEST), st.integers(0, NEWEST), st.data())
def test_versions_read_each_other(
    choice: tuple[str, str], written: int, read: int, data: st.DataObject
) -> None:
    # Version 2 added a group before data, which no earlier reader can step over.
    assume(choice[1] != "Evolved" or not read < 2 <= written)
    writer, reader = SCHEMAS[choice[0], written][choice[1]], SCHEMAS[choice[0], read][choice[1]]
    sent = writer.decode(writer.encode(*data.draw(values_of(writer))))
    got = reader.decode(writer.encode(*sent))
    for name in set(sent._fields) & set(got._fields) - {"items"}:
        assert plain(getattr(got, name)) == plain(getattr(sent, name))
    for name in set(got._fields) - set(sent._fields):
        assert not getattr(got, name)
    if choice[1] == "Evolved":
        assert [item.old for item in got.items] == [item.old for item in sent.items]


@SETTINGS
@given(CHOICES, st.data())
def test_damaged_bytes_give_a_message_or_a_decode_error(choice: tuple[str, str], data: st.DataObject) -> None:
    order, name = choice
    schema = SCHEMAS[order, NEWEST]
    codec = schema[name]
    damaged = bytearray(codec.encode(*data.draw(values_of(codec))))
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from([0, 1, 127, 255]))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    messages = [bytes(damaged), codec.encode(*data.draw(values_of(codec)))]
    single = outcome(lambda: schema.decode(messages[0]))
    assert not isinstance(single, sbe.DecodeError) or single.offset >= 0
    batched = outcome(lambda: codec.to_arrow(messages, enums="name").to_pylist())
    expected = outcome(lambda: [rows(codec.decode(message)) for message in messages])
    if isinstance(expected, sbe.UnknownTemplateError):
        # Of another template or schema now, so not of this batch.
        expected = [rows(codec.decode(messages[1]))]
    if isinstance(expected, sbe.DecodeError):
        assert isinstance(batched, sbe.DecodeError)
        assert (batched.index, batched.field, batched.offset) == (0, expected.field, expected.offset)
    else:
        assert repr(batched) == repr(expected)


@SETTINGS
@given(st.sampled_from(ORDERS), st.binary(max_size=80))
def test_random_bytes_never_crash(order: str, data: bytes) -> None:
    schema = SCHEMAS[order, NEWEST]
    for name in MESSAGES:
        codec = schema[name]
        header = struct.pack(f"{'<' if order == 'little' else '>'}4H", *data[:4].ljust(4, b"\0"))
        headers = (
            codec.header_bytes,
            header[:2] + codec.header_bytes[2:],
            codec.header_bytes[:6] + header[6:],
            b"",
        )
        for start in headers:
            outcome(lambda: codec.decode(start + data))  # noqa: B023
            outcome(lambda: codec.to_arrow([start + data]))  # noqa: B023


def test_the_strategies_reach_every_kind_of_item() -> None:
    """A check of nothing proves nothing."""
    kinds = set()
    for name in MESSAGES:
        body = SCHEMAS["little", NEWEST][name].model.body
        kinds |= {type(item) for item in (*body.groups, *body.data)} | {
            type(field.type) for field in body.fields
        }
    assert {Group, Data, Composite, EnumType, SetType} < kinds
    assert math.isnan(SCHEMAS["little", NEWEST]["Order"].model.body.fields[-1].type.null)
