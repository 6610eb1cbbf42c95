"""Messages kept as the reference's Java tool encoded them, so that the codec is held to them without Java."""

from __future__ import annotations

import pytest

from headrace import sbe
from tests.golden.sbe import MESSAGES, ORDERS, examples, golden, market

pytestmark = pytest.mark.golden


@pytest.fixture(scope="module", params=ORDERS)
def order(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_template_has_its_bytes(order: str) -> None:
    assert tuple(golden(order)) == MESSAGES


@pytest.mark.parametrize("name", MESSAGES)
def test_we_write_the_same_bytes(order: str, name: str) -> None:
    assert market(order)[name].encode(*examples(name)[0]) == golden(order)[name]


@pytest.mark.parametrize("name", MESSAGES)
def test_we_read_the_same_values(order: str, name: str) -> None:
    codec = market(order)[name]
    data = golden(order)[name]
    message = codec.decode(data)
    assert message == codec.decode(codec.encode(*examples(name)[0]))
    assert codec.encode(*message) == data


def test_values_are_what_a_python_programmer_expects(order: str) -> None:
    schema = market(order)
    message = schema.decode(golden(order)["Order"])
    assert type(message) is schema["Order"].type
    assert message.letter == "x"
    assert message.side is schema.enum("Side").Sell
    assert message.side == "S"
    assert message.region is schema.enum("Region").West
    assert message.region == -1
    assert list(message.flags.names()) == ["Hidden", "Last"]
    assert schema.set("Flags").Last in message.flags
    assert message.symbol == "ABC"
    assert message.key == bytes([250, 251, 252, 253])
    assert message.levels == (-1, 0, 1)
    assert message.quote.price.mantissa == -12345
    assert (message.quote.price.exponent, message.venue, message.scale) == (-2, "XLON", -250)
    assert message.fixedSide is schema.enum("Side").Sell
    assert (message.count, message.parent, message.ceiling) == (None, 5, None)


def test_columns_hold_the_same_values(order: str) -> None:
    schema = market(order)
    batch = [*golden(order).values()] * 3
    orders = schema["Order"].select(batch)
    assert orders.rows.tolist() == [1, 7, 13]
    assert orders.column("symbol").tolist() == [b"ABC"] * 3
    assert orders.column("quote.price.mantissa").tolist() == [-12345] * 3
    assert orders.column("levels").tolist() == [[-1, 0, 1]] * 3
    assert orders.nulls("count").tolist() == [True] * 3
    assert orders.nulls("parent").tolist() == [False] * 3
    trades = schema["Trade"].select([golden(order)["Trade"]] * 4)
    assert trades.records()["price"].tolist() == [101.25] * 4
    books = schema["Book"].to_arrow(batch, enums="name").to_pylist()
    assert books[2]["fills"][2] == {"side": None, "orders": 65_000}
    assert books[0]["bids"][1] == {"price": {"mantissa": -200}, "size": 20}
    trees = schema["Tree"].to_arrow(batch).to_pylist()
    assert trees[1]["branches"][0]["leaves"][1] == {"weight": 2.5, "label": "bb"}


@pytest.mark.parametrize("name", MESSAGES)
def test_every_truncation_is_an_error_that_says_where(order: str, name: str) -> None:
    codec = market(order)[name]
    data = golden(order)[name]
    for length in range(len(data)):
        with pytest.raises(sbe.DecodeError) as single:
            codec.decode(data[:length])
        assert 0 <= single.value.offset < len(data)
        with pytest.raises(sbe.DecodeError) as batched:
            codec.to_arrow([data, data[:length]])
        assert (batched.value.index, batched.value.field) == (1, single.value.field)
