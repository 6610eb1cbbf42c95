"""What users of the codec meet: errors that name the field, buffers of every kind, batches of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace import sbe
from tests.golden.sbe import examples, market

MARKET = market("little")
ORDER, TRADE, TEXT, BOOK, TREE = (MARKET[name] for name in ("Order", "Trade", "Text", "Book", "Tree"))
FIELDS = dict(zip(ORDER.type._fields, examples("Order")[0], strict=True))


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("orderId", -1, "-1"),
        ("orderId", "7", "'7'"),
        ("orderId", None, "None"),
        ("letter", "xy", "'xy'"),
        ("side", "Hold", "not one of the enum's values"),
        ("status", 1, "1 is not one of the enum's values"),
        ("flags", ["Nope"], "no choice 'Nope'"),
        ("flags", 1 << 16, "65536"),
        ("symbol", "TOOLONG", "7 bytes; at most 6"),
        ("symbol", "\u00e9", "can't encode"),
        ("key", b"123", "3 bytes; exactly 4"),
        ("levels", [1, 2], "expected 3"),
        ("quote", 5, "must be a tuple, a mapping"),
    ],
)
def test_a_value_that_does_not_fit_is_named(field: str, value: Any, reason: str) -> None:
    with pytest.raises(sbe.EncodeError, match=reason) as raised:
        ORDER.encode(**(FIELDS | {field: value}))
    assert (raised.value.message, raised.value.field) == ("Order", field)


def test_a_value_within_a_composite_or_group_is_named() -> None:
    quote = dict(zip(ORDER.schema.types["Quote"].members, FIELDS["quote"], strict=True))
    named = {member.name: value for member, value in quote.items()} | {"size": -1}
    with pytest.raises(sbe.EncodeError) as raised:
        ORDER.encode(**(FIELDS | {"quote": named}))
    assert (raised.value.message, raised.value.field) == ("Quote", "size")
    with pytest.raises(sbe.EncodeError) as raised:
        TREE.encode(1, [{"branchId": 1, "leaves": [{"weight": "heavy"}]}])
    assert (raised.value.message, raised.value.field) == ("Tree.branches.leaves", "weight")


def test_a_missing_field_is_named_and_an_unknown_one_too() -> None:
    with pytest.raises(sbe.EncodeError, match=r"Trade\.tick: is missing"):
        TRADE.encode(*examples("Trade")[0][:-1])
    with pytest.raises(TypeError, match="colour"):
        TRADE.encode(*examples("Trade")[0], colour=1)
    with pytest.raises(sbe.EncodeError, match="size_"):
        BOOK.encode(1, bids=[{"price": (1,), "size_": 2}])


def test_more_entries_or_bytes_than_can_be_counted_are_refused() -> None:
    with pytest.raises(sbe.EncodeError, match="fills"):
        BOOK.encode(1, fills=[("Buy", 1)] * 256)
    with pytest.raises(sbe.EncodeError, match="255 bytes; at most 254"):
        TEXT.encode(1, title="x" * 255)
    with pytest.raises(sbe.EncodeError, match="must be bytes"):
        TEXT.encode(1, attachment="text")


def test_encoding_into_a_buffer() -> None:
    data = TRADE.encode(*examples("Trade")[0])
    buffer = bytearray(60)
    assert TRADE.encode_into(buffer, 10, *examples("Trade")[0]) == len(data)
    assert buffer == bytes(10) + data
    for offset in (-1, 11, 60, 61):
        with pytest.raises(sbe.EncodeError, match="no room"):
            TRADE.encode_into(buffer, offset, *examples("Trade")[0])


def test_a_message_without_header() -> None:
    data = TEXT.encode_body(*examples("Text")[0])
    assert TEXT.encode(*examples("Text")[0]).endswith(data)
    assert TEXT.decode_body(b"..." + data, 3) == (examples("Text")[0], len(data) + 3)
    with pytest.raises(sbe.DecodeError):
        TEXT.decode_body(data, len(data) + 1)


def test_messages_one_after_another() -> None:
    data = b"".join(TEXT.encode(*values) for values in examples("Text"))
    offset, found = 0, []
    while offset < len(data):
        message, offset = TEXT.decode_from(data, offset)
        found.append(message)
    assert found == examples("Text")


@pytest.mark.parametrize("offset", [-1, -50, 1, 43, 50, 51, 10**12])
def test_an_offset_that_leads_nowhere_is_an_error(offset: int) -> None:
    data = TRADE.encode(*examples("Trade")[0])
    with pytest.raises(sbe.DecodeError):
        TRADE.decode(data, offset)


def test_a_message_of_another_template_or_schema_is_named() -> None:
    data = TRADE.encode(*examples("Trade")[0])
    with pytest.raises(sbe.UnknownTemplateError, match="template id 1, not 2"):
        ORDER.decode(data)
    with pytest.raises(sbe.UnknownTemplateError, match="schema id 902, not 901"):
        TRADE.decode(data[:4] + b"\x86\x03" + data[6:])
    with pytest.raises(sbe.UnknownTemplateError, match="template 99 of schema 901"):
        MARKET.decode(data[:2] + b"\x63\x00" + data[4:])
    assert MARKET.template(99) is None


def test_records_are_compared_changed_and_matched() -> None:
    trade = TRADE.decode(TRADE.encode(*examples("Trade")[0]))
    assert trade == examples("Trade")[0]
    assert trade.replace(tick=5).tick == 5
    with pytest.raises(TypeError, match="colour"):
        trade.replace(colour=1)
    match trade:
        case TRADE.type(price=price):
            assert price == trade.price
    assert "price=101.25" in repr(trade)
    assert trade.to_dict()["delta"] == -70_000


# --- batches -----------------------------------------------------------------------------------------------------

TRADES = [TRADE.encode(number, *examples("Trade")[0][1:]) for number in range(4)]
WHOLE = b"".join(TRADES)
OFFSETS = np.arange(5, dtype=np.int32) * len(TRADES[0])


@pytest.mark.parametrize(
    "arguments",
    [
        (TRADES,),
        (tuple(map(bytearray, TRADES)),),
        (WHOLE, OFFSETS),
        (b"..." + WHOLE, (OFFSETS + 3).tolist()),
        (np.frombuffer(WHOLE, np.uint8), OFFSETS.astype(np.int64)),
        (np.frombuffer(WHOLE, np.uint8).reshape(4, -1),),
        (pa.array(TRADES, pa.binary()),),
        (pa.array([b"x", *TRADES], pa.large_binary())[1:],),
        (pa.chunked_array([TRADES[:1], TRADES[1:]], pa.binary()),),
    ],
    ids=["list", "tuple", "offsets", "list of offsets", "array", "rows", "arrow", "large arrow", "chunked"],
)
def test_a_batch_may_be_given_in_many_ways(arguments: tuple[Any, ...]) -> None:
    assert TRADE.columns(*arguments, names=["tradeId"])["tradeId"].tolist() == [0, 1, 2, 3]
    assert TRADE.to_arrow(*arguments, names=["tick", "tradeId"]).column(1).to_pylist() == [0, 1, 2, 3]


def test_an_empty_batch_has_all_columns() -> None:
    for codec in MARKET.values():
        for none in ([], np.empty((0, 50), np.uint8), pa.array([], pa.binary())):
            assert codec.to_arrow(none).schema == codec.arrow_schema()
            assert all(len(column) == 0 for column in codec.columns(none).values())
        assert codec.to_arrow([TRADES[0]] if codec is not TRADE else []).num_rows == 0


@pytest.mark.parametrize("offsets", [[0, 10**6], [-1, 50], [50, 0], [0, 60, 50], [], [[0, 50]], [0.0, 50.0]])
def test_offsets_that_lie_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets must"):
        TRADE.columns(WHOLE, offsets)


@pytest.mark.parametrize("messages", [WHOLE, 5, [5], "text"])
def test_what_is_no_batch_is_refused(messages: Any) -> None:
    with pytest.raises(TypeError):
        TRADE.columns(messages)


def test_a_null_is_no_message() -> None:
    with pytest.raises(ValueError, match="null"):
        TRADE.columns(pa.array([None, b"x"], pa.binary()))


def test_a_message_in_a_batch_is_named_by_its_index() -> None:
    with pytest.raises(sbe.DecodeError, match="message 2 of the batch") as raised:
        TRADE.columns([TRADES[0], TRADES[1], TRADES[2][:30]])
    assert (raised.value.template, raised.value.index, raised.value.field) == ("Trade", 2, "price")
    order = bytearray(ORDER.encode(**FIELDS))
    order[10 + 7] = 99
    with pytest.raises(sbe.DecodeError, match="99 is not a value of enum Side") as raised:
        ORDER.to_arrow([TRADES[0], bytes(order)])
    assert (raised.value.index, raised.value.field, raised.value.offset) == (1, "side", 17)


def test_unknown_columns_and_styles_are_refused() -> None:
    with pytest.raises(KeyError, match="colour"):
        TRADE.columns(TRADES, names=["colour"])
    with pytest.raises(KeyError, match="colour"):
        TRADE.to_arrow(TRADES, names=["colour"])
    with pytest.raises(ValueError, match="enums='colour'"):
        TRADE.to_arrow(TRADES, enums="colour")


def test_a_hostile_count_costs_nothing() -> None:
    """65,535 entries in a message of a few bytes are refused before any is looked at."""
    data = bytearray(TREE.encode(1, [], b""))
    data[10:14] = b"\x00\x00\xff\xff"
    for decode in (TREE.decode, lambda message: TREE.to_arrow([message])):
        with pytest.raises(sbe.DecodeError, match="65535 entries"):
            decode(bytes(data))
