"""Each rule of a schema, broken once: the error names file, element and rule."""

from __future__ import annotations

import codecs
import gc
import pickle
from encodings.aliases import aliases
from pathlib import Path

import pytest

from headrace import sbe
from headrace.sbe._arrow import ASCII_SUPERSET

HEADER = (
    '<composite name="messageHeader">'
    + "".join(
        f'<type name="{name}" primitiveType="uint16"/>'
        for name in ("blockLength", "templateId", "schemaId", "version")
    )
    + "</composite>"
)
GROUP = (
    '<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>'
    '<type name="numInGroup" primitiveType="uint16"/></composite>'
)
TEXT = (
    '<composite name="text"><type name="length" primitiveType="uint8"/>'
    '<type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>'
)
INT = '<field name="a" id="1" type="int32"/>'


def schema(
    types: str = "", body: str = INT, attributes: str = 'id="1" version="2"', message: str = 'id="5"'
) -> str:
    return (
        f"<messageSchema {attributes}><types>{HEADER}{GROUP}{TEXT}{types}</types>"
        f'<message name="M" {message}>{body}</message></messageSchema>'
    )


def nested(tag: str, depth: int) -> str:
    """Elements within each other; the innermost is named 0."""
    inside = INT if tag == "group" else '<type name="n" primitiveType="int8"/>'
    for number in range(depth):
        inside = f'<{tag} name="n{number}">{inside}</{tag}>'
    return inside


BROKEN = {
    "no xml": ("<messageSchema", "document", "well-formed"),
    "another root": ("<types/>", "types", "messageSchema"),
    "no id": (schema(attributes=""), "messageSchema", "needs the attribute id"),
    "byte order": (
        schema(attributes='id="1" byteOrder="middle"'),
        "messageSchema",
        "littleEndian, bigEndian",
    ),
    "template id": (schema(message='id="x"'), "message 'M'", "whole number"),
    "unknown type": (
        schema(body='<field name="a" type="nothing"/>'),
        "message 'M' > field 'a'",
        "no type 'nothing'",
    ),
    "name": (schema(body='<field name="a b" type="int8"/>'), "field 'a b'", "a name is"),
    "name twice": (schema(body=INT + '<field name="a" id="2" type="int8"/>'), "field 'a'", "same name"),
    "id twice": (schema(body=INT + '<field name="b" id="1" type="int8"/>'), "field 'b'", "id=1"),
    "offset": (
        schema(body=INT + '<field name="b" type="int8" offset="3"/>'),
        "field 'b'",
        "offset=3 lies before the end of the element before it, 4",
    ),
    "block length": (
        schema(message='id="5" blockLength="3"'),
        "message 'M'",
        "blockLength=3 is less than the 4",
    ),
    "order of items": (schema(body='<data name="d" type="text"/>' + INT), "field 'a'", "fields come first"),
    "since": (
        schema(body='<field name="a" type="int8" sinceVersion="3"/>'),
        "field 'a'",
        "sinceVersion=3 must be 0 to 2",
    ),
    "dimension": (
        schema(body=f'<group name="g" dimensionType="text">{INT}</group>'),
        "group 'g'",
        "blockLength",
    ),
    "data type": (
        schema(body='<data name="d" type="groupSizeEncoding"/>'),
        "data 'd'",
        "needs a member length",
    ),
    "primitive": (
        schema('<type name="T" primitiveType="int7"/>'),
        "type 'T'",
        "primitiveType='int7' must be one of",
    ),
    "type twice": (schema(TEXT), "composite 'text'", "same name"),
    "null value": (
        schema('<type name="T" primitiveType="int8" nullValue="128"/>'),
        "type 'T'",
        "-128 to 127",
    ),
    "null value beyond a float": (
        schema('<type name="T" primitiveType="float" nullValue="1e39"/>'),
        "type 'T'",
        "nullValue='1e39' must be a number that a float of 32 bits can hold",
    ),
    "encoding": (
        schema('<type name="T" primitiveType="char" length="2" characterEncoding="martian"/>'),
        "type 'T'",
        "characterEncoding='martian'",
    ),
    "no encoding of text": (
        schema('<type name="T" primitiveType="uint8" length="0" characterEncoding="rot13"/>'),
        "type 'T'",
        "characterEncoding='rot13' must be an encoding of text, such as UTF-8 or ISO-8859-1",
    ),
    "an encoding that takes nothing": (
        schema('<type name="T" primitiveType="uint8" length="0" characterEncoding="undefined"/>'),
        "type 'T'",
        "characterEncoding='undefined' must be an encoding of text",
    ),
    "zeros within characters": (
        schema('<type name="T" primitiveType="char" length="4" characterEncoding="UTF-16LE"/>'),
        "type 'T'",
        "characterEncoding='UTF-16LE' has zero bytes within its characters",
    ),
    "zeros within one character": (
        schema('<type name="T" primitiveType="char" characterEncoding="utf-32"/>'),
        "type 'T'",
        "characterEncoding='utf-32' has zero bytes within its characters",
    ),
    "length of a primitive by ref": (
        schema(body='<data name="d" type="text"/>').replace(
            '<type name="length" primitiveType="uint8"/>', '<ref name="length" type="uint32"/>'
        ),
        "composite 'text' > ref 'length'",
        '\'uint32\' is not a type of the schema: write <type name="length" primitiveType="uint32"/>',
    ),
    "length that is an enum": (
        schema(body='<data name="d" type="text"/>').replace(
            '<type name="length" primitiveType="uint8"/>',
            '<enum name="length" encodingType="uint8"><validValue name="a">1</validValue></enum>',
        ),
        "data 'd'",
        "the data type 'text': length must be an unsigned integer",
    ),
    "length that is a set": (
        schema(
            '<set name="S" encodingType="uint8"><choice name="a">1</choice></set>',
            '<data name="d" type="text"/>',
        ).replace('<type name="length" primitiveType="uint8"/>', '<ref name="length" type="S"/>'),
        "data 'd'",
        'write <type name="length" primitiveType="uint16"/>',
    ),
    "composites in each other": (
        schema(nested("composite", 40)),
        "composite 'n7'",
        "32 of them may be nested",
    ),
    "too many composites in each other": (
        schema(nested("composite", 3000)),
        "composite",
        "64 elements may be nested",
    ),
    "composites that name the next": (
        schema(
            "".join(
                f'<composite name="c{number}"><ref name="a" type="c{number + 1}"/></composite>'
                for number in range(3000)
            )
        ),
        "composite 'c32'",
        "32 of them may be nested",
    ),
    "composites that name the one before": (
        schema(
            '<type name="c0" primitiveType="int8"/>'
            + "".join(
                f'<composite name="c{number + 1}"><ref name="a" type="c{number}"/></composite>'
                for number in range(3000)
            )
        ),
        "composite 'c33'",
        "32 of them may be nested",
    ),
    "enums that name the next": (
        schema("".join(f'<enum name="e{number}" encodingType="e{number + 1}"/>' for number in range(3000))),
        "enum 'e0'",
        "encodingType='e1' must be one of",
    ),
    "groups in each other": (
        schema(body=nested("group", 3000)),
        "group",
        "64 elements may be nested",
    ),
    "constant": (
        schema('<type name="T" primitiveType="int8" presence="constant"/>', '<field name="a" type="T"/>'),
        "field 'a'",
        "a constant needs",
    ),
    "value reference": (
        schema(body='<field name="a" type="int8" presence="constant" valueRef="E.x"/>'),
        "field 'a'",
        "no type 'E'",
    ),
    "enum of float": (
        schema('<enum name="E" encodingType="float"><validValue name="a">1</validValue></enum>'),
        "enum 'E'",
        "encodingType='float'",
    ),
    "template id beyond the header": (
        schema(message='id="70000"'),
        "message 'M'",
        "70000 does not fit templateId of the header, a uint16: at most 65535",
    ),
    "block beyond the header": (
        schema(message='id="5" blockLength="65536"'),
        "message 'M'",
        "65536 does not fit blockLength",
    ),
    "schema id beyond the header": (schema(attributes='id="65536"'), "messageSchema", "schemaId"),
    "version beyond the header": (
        schema(attributes='id="1" version="65536"'),
        "messageSchema",
        "does not fit version",
    ),
    "var-data that is not last": (
        schema(body='<data name="d" type="text"/>').replace(
            'characterEncoding="UTF-8"/>', 'characterEncoding="UTF-8"/><type name="z" primitiveType="int8"/>'
        ),
        "data 'd'",
        "needs a last member varData",
    ),
    "constant enum without a value": (
        schema(
            '<enum name="E" encodingType="uint8" presence="constant"><validValue name="a">1</validValue></enum>',
            '<field name="a" type="E"/>',
        ),
        "field 'a'",
        "a constant needs a valueRef",
    ),
    "bit": (
        schema('<set name="S" encodingType="uint8"><choice name="a">8</choice></set>'),
        "choice 'a'",
        "0 to 7",
    ),
    "cycle": (
        schema(
            '<composite name="A"><ref name="b" type="B"/></composite>'
            '<composite name="B"><ref name="a" type="A"/></composite>'
        ),
        "ref 'a'",
        "A > B > A contain each other",
    ),
    "array of nothing": (
        schema('<type name="T" primitiveType="int8" length="0"/>', '<field name="a" type="T"/>'),
        "field 'a'",
        "only varData",
    ),
    "include in text": (
        schema().replace("<types>", '<include xmlns="http://www.w3.org/2001/XInclude" href="x.xml"/><types>'),
        "include 'x.xml'",
        "cannot include",
    ),
    "no header": (schema().replace("messageHeader", "other"), "messageSchema", "no type 'messageHeader'"),
    "header without version": (
        schema().replace('"version" p', '"release" p'),
        "messageSchema",
        "needs a member version",
    ),
    "template twice": (
        schema().replace("</messageSchema>", '<message name="N" id="5"/></messageSchema>'),
        "message 'N'",
        "id=5 is that of message 'M'",
    ),
}


@pytest.mark.parametrize(("text", "element", "rule"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rule_is_named(text: str, element: str, rule: str) -> None:
    with pytest.raises(sbe.SchemaError) as raised:
        sbe.Schema.from_text(text, name="orders.xml")
    assert raised.value.file == "orders.xml"
    assert element in raised.value.element
    assert rule in raised.value.rule
    assert str(raised.value).startswith("orders.xml: ")


def test_the_unbroken_schema_is_read() -> None:
    """Or the test above would show nothing."""
    read = sbe.Schema.from_text(schema())
    assert list(read) == ["M"]
    assert (read.schema_id, read.version, read.byte_order) == (1, 2, "little")


def test_an_included_file_is_named_in_its_errors(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text('<types><type name="T" primitiveType="oops"/></types>')
    (tmp_path / "whole.xml").write_text(
        schema().replace(
            "<types>", '<include xmlns="http://www.w3.org/2001/XInclude" href="part.xml"/><types>'
        )
    )
    with pytest.raises(sbe.SchemaError, match="oops") as raised:
        sbe.Schema.from_file(tmp_path / "whole.xml")
    assert raised.value.file == str(tmp_path / "part.xml")


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(
        '<messageSchema><include xmlns="http://www.w3.org/2001/XInclude" href="a.xml"/></messageSchema>'
    )
    with pytest.raises(sbe.SchemaError, match="include each other"):
        sbe.Schema.from_file(tmp_path / "a.xml")


def test_a_schema_can_be_sent_to_another_process() -> None:
    there = pickle.loads(pickle.dumps(sbe.Schema.from_text(schema(), snake_case=True)))
    assert there["M"].decode(there["M"].encode(a=3)).a == 3


@pytest.mark.parametrize(
    ("name", "snake"),
    [("orderId", "order_id"), ("from", "from_"), ("_private", "private"), ("HTTPPort2", "http_port2")],
)
def test_names_become_python_names(name: str, snake: str) -> None:
    body = f'<field name="{name}" type="int32"/>'
    assert sbe.Schema.from_text(schema(body=body), snake_case=True)["M"].type._fields == (snake,)


def test_composites_and_groups_may_lie_as_deep_within_each_other_as_the_rule_says() -> None:
    """All of encoding, decoding and columns come to the innermost."""
    codec = sbe.Schema.from_text(schema(nested("composite", 32), '<field name="a" type="n31"/>'))["M"]
    value: object = (7,)
    for _ in range(31):
        value = (value,)
    assert codec.decode(codec.encode(a=value)) == (value,)
    assert str(codec.to_arrow([codec.encode(a=value)]).to_pylist()).count("{") == 33
    groups = sbe.Schema.from_text(schema(body=nested("group", 61)))["M"]
    entries: object = [(7,)]
    for _ in range(60):
        entries = [(entries,)]
    message = groups.encode(n60=entries)
    assert groups.decode(message) == (entries,)
    assert str(groups.to_arrow([message]).to_pylist()).count("{") == 62


def test_names_that_become_the_same_stay_apart() -> None:
    body = '<field name="aB" type="int32"/><field name="a_b" type="int32"/>'
    codec = sbe.Schema.from_text(schema(body=body), snake_case=True)["M"]
    assert codec.decode(codec.encode(a_b=1, a_b_=2)) == (1, 2)


@pytest.mark.parametrize(
    "name", ["pack", "error", "explain", "MISSING", "FAULTS", "EncodeError", "encode", "probe", "value"]
)
def test_a_field_may_have_a_name_that_generated_code_uses(name: str) -> None:
    body = f'<field name="{name}" id="1" type="int32"/><field name="other" id="2" type="uint8"/>'
    codec = sbe.Schema.from_text(schema(body=body))["M"]
    assert codec.decode(codec.encode(**{name: 7, "other": 1})) == (7, 1)
    with pytest.raises(sbe.EncodeError, match="is missing") as raised:
        codec.encode(other=1)
    assert raised.value.field == name
    with pytest.raises(sbe.EncodeError, match="256") as raised:
        codec.encode(**{name: 7, "other": 256})
    assert raised.value.field == "other"


def test_a_header_of_another_shape() -> None:
    """Wider members, another order, and members of its own, as later drafts of the standard have them."""
    header = (
        '<composite name="messageHeader"><type name="version" primitiveType="uint8"/>'
        '<type name="blockLength" primitiveType="uint32" offset="4"/><type name="templateId" primitiveType="uint16"/>'
        '<type name="schemaId" primitiveType="uint32"/><type name="numGroups" primitiveType="uint16"/>'
        '<type name="numVarDataFields" primitiveType="uint16"/></composite>'
    )
    body = INT + f'<group name="g">{INT}</group><data name="d" type="text"/>'
    codec = sbe.Schema.from_text(schema(body=body).replace(HEADER, header))["M"]
    data = codec.encode(7, [(1,), (2,)], "x")
    assert data[:18] == bytes.fromhex("02 000000 04000000 0500 01000000 0100 0100")
    assert codec.decode(data) == (7, [(1,), (2,)], "x")
    assert codec.to_arrow([data] * 3).to_pylist() == [{"a": 7, "g": [{"a": 1}, {"a": 2}], "d": "x"}] * 3
    flat = sbe.Schema.from_text(schema().replace(HEADER, header))["M"]
    assert flat.columns([flat.encode(number) for number in range(5)])["a"].tolist() == list(range(5))
    assert flat.decode(flat.encode(9)).a == 9


@pytest.mark.parametrize(
    "content",
    [
        'primitiveType="uint8" characterEncoding="UTF-8"',
        'primitiveType="uint8" length="5" characterEncoding="UTF-8"',
        'primitiveType="char" presence="optional"',
    ],
)
def test_data_of_variable_length_need_not_say_that_its_length_is_none(content: str) -> None:
    text = schema(body=INT + '<data name="d" type="text"/>').replace(
        'primitiveType="uint8" length="0" characterEncoding="UTF-8"', content
    )
    codec = sbe.Schema.from_text(text)["M"]
    data = codec.encode(a=1, d="seven")
    assert data[8:] == bytes.fromhex("01000000 05") + b"seven"
    assert codec.decode(data) == (1, "seven")
    assert codec.to_arrow([data, data]).to_pylist() == [{"a": 1, "d": "seven"}] * 2


def test_the_content_of_var_data_may_be_a_type_that_has_a_name() -> None:
    text = schema(
        '<type name="rest" primitiveType="uint8" length="0" characterEncoding="UTF-8"/>',
        '<data name="d" type="text"/>',
    ).replace(
        '<type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/>',
        '<ref name="varData" type="rest"/>',
    )
    codec = sbe.Schema.from_text(text)["M"]
    assert codec.decode(codec.encode(d="x")).d == "x"


@pytest.mark.parametrize("name", ["schemaId", "version", "templateId", "blockLength"])
def test_a_constant_member_of_the_header_is_not_on_the_wire(name: str) -> None:
    value = {"schemaId": 9, "version": 2, "templateId": 5, "blockLength": 4}[name]
    text = schema(body=INT + '<data name="d" type="text"/>').replace(
        f'<type name="{name}" primitiveType="uint16"/>',
        f'<type name="{name}" primitiveType="uint16" presence="constant">{value}</type>',
        1,
    )
    read = sbe.Schema.from_text(text)
    codec = read["M"]
    data = codec.encode(a=7, d="x")
    assert len(data) == 6 + 4 + 2
    assert value in read.header(data)
    assert read.decode(data) == codec.decode(data) == (7, "x")
    assert codec.to_arrow([data] * 3).to_pylist() == [{"a": 7, "d": "x"}] * 3
    assert codec.to_arrow([data, codec.encode(a=1, d="long")]).to_pylist()[1] == {"a": 1, "d": "long"}


@pytest.mark.parametrize("entry", ["", '<field name="c" type="C"/>'])
def test_an_entry_of_a_group_may_take_no_bytes(entry: str) -> None:
    constant = '<type name="C" primitiveType="int8" presence="constant">5</type>'
    codec = sbe.Schema.from_text(schema(constant, f'{INT}<group name="g">{entry}</group>'))["M"]
    data = codec.encode(a=1, g=[(), {}, ()])
    assert data[8:] == bytes.fromhex("01000000 0000 0300")
    message = codec.decode(data)
    assert message == (1, [(), (), ()])
    assert [getattr(one, "c", 5) for one in message.g] == [5, 5, 5]
    few = codec.encode(a=2, g=[()])
    assert [len(row["g"]) for row in codec.to_arrow([data, few]).to_pylist()] == [3, 1]


def test_entries_without_bytes_are_bounded_though_the_message_does_not_bound_them() -> None:
    codec = sbe.Schema.from_text(schema(body=INT + '<group name="g"/>'))["M"]
    most = codec.encode(a=1, g=[()] * 254)
    assert len(codec.decode(most).g) == 254
    with pytest.raises(sbe.EncodeError, match="255 entries without bytes; at most 254"):
        codec.encode(a=1, g=[()] * 255)
    hostile = most[:-2] + b"\xff\xff"
    for decode in (codec.decode, lambda data: codec.to_arrow([most, data])):
        with pytest.raises(sbe.DecodeError, match="65535 entries without bytes; at most 254"):
            decode(hostile)


@pytest.mark.parametrize("null", ["", 'nullValue="9"'])
def test_a_field_has_the_presence_of_its_enum(null: str) -> None:
    kind = f'<enum name="E" encodingType="uint8" presence="optional" {null}><validValue name="x">1</validValue></enum>'
    codec = sbe.Schema.from_text(schema(kind, '<field name="a" type="E"/>'))["M"]
    data = codec.encode()
    assert data[8:] == (b"\x09" if null else b"\xff")
    assert codec.decode(data).a is None
    required = sbe.Schema.from_text(schema(kind, '<field name="a" type="E" presence="required"/>'))["M"]
    with pytest.raises(sbe.EncodeError, match="is missing"):
        required.encode()


def test_a_field_has_the_constant_of_its_enum() -> None:
    values = '<validValue name="x">1</validValue><validValue name="y">2</validValue>'
    kind = f'<enum name="E" encodingType="uint8" presence="constant" valueRef="E.y">{values}</enum>'
    codec = sbe.Schema.from_text(schema(kind, INT + '<field name="b" type="E"/>'))["M"]
    assert codec.block_length == 4
    assert codec.type.b.name == "y"


@pytest.mark.parametrize(("encoding", "one", "two"), [("uint8", "1", "2"), ("char", "A", "B")])
def test_two_names_of_one_value(encoding: str, one: str, two: str) -> None:
    values = [("old", two), ("new", two), ("first", one), ("second", one)]
    kind = f'<enum name="E" encodingType="{encoding}">'
    kind += "".join(f'<validValue name="{name}">{text}</validValue>' for name, text in values) + "</enum>"
    constant = '<field name="b" type="E" presence="constant" valueRef="E.second"/>'
    read = sbe.Schema.from_text(schema(kind, f'<field name="a" type="E"/>{constant}'))
    codec = read["M"]
    messages = [codec.encode(a=name) for name, _ in values]
    assert messages[0] == messages[1] != messages[2] == messages[3]
    assert [codec.decode(data).a.name for data in messages] == ["old", "old", "first", "first"]
    assert codec.encode(a=read.enum("E")["new"]) == messages[0]
    assert codec.type.b is read.enum("E")["first"]
    for style in ("dictionary", "name"):
        found = codec.to_arrow(messages, enums=style).to_pylist()
        assert [row["a"] for row in found] == ["old", "old", "first", "first"]


def test_two_names_of_one_bit() -> None:
    kind = '<set name="S" encodingType="uint8"><choice name="x">1</choice><choice name="y">1</choice></set>'
    codec = sbe.Schema.from_text(schema(kind, '<field name="a" type="S"/>'))["M"]
    assert codec.encode(a=["x"]) == codec.encode(a=["y"])
    assert list(codec.decode(codec.encode(a=2)).a.names()) == ["x", "y"]


def test_an_enum_without_values_is_null_or_an_error() -> None:
    codec = sbe.Schema.from_text(
        schema('<enum name="E" encodingType="uint8"/>', '<field name="a" type="E"/>')
    )["M"]
    null = codec.encode(a=None)
    assert codec.decode(null).a is None
    assert codec.to_arrow([null, null]).to_pylist() == [{"a": None}] * 2
    with pytest.raises(sbe.DecodeError, match="3 is not a value of enum E"):
        codec.decode(null[:-1] + b"\x03")
    with pytest.raises(sbe.DecodeError, match="3 is not a value of enum E"):
        codec.to_arrow([null, null[:-1] + b"\x03"])


def test_an_offset_of_a_constant_says_nothing() -> None:
    constant = '<type name="C" primitiveType="int8" presence="constant">5</type>'
    codec = sbe.Schema.from_text(schema(constant, INT + '<field name="b" type="C" offset="0"/>'))["M"]
    assert codec.block_length == 4
    assert codec.type.b == 5


def test_numbers_of_64_bits_in_headers_do_not_wrap() -> None:
    """Of a header and a data type that count in 64 bits, each with its greatest number."""
    wide = schema(body='<data name="d" type="text"/>').replace(
        'primitiveType="uint16"', 'primitiveType="uint64"'
    )
    codec = sbe.Schema.from_text(
        wide.replace('"length" primitiveType="uint8"', '"length" primitiveType="uint64"')
    )["M"]
    data = codec.encode("abc")
    assert codec.to_arrow([data, data + b"x"]).to_pylist() == [{"d": "abc"}] * 2
    newer = data[:24] + b"\xff" * 8 + data[32:]
    assert codec.to_arrow([newer]).to_pylist() == [{"d": codec.decode(newer).d}]
    for at in (0, 32):
        hostile = data[:at] + b"\xff" * 8 + data[at + 8 :]
        for decode in (codec.decode, lambda message: codec.to_arrow([message, data])):
            with pytest.raises(sbe.DecodeError):
                decode(hostile)


@pytest.mark.parametrize("null", ["0.1", "-1e-40", "INF", "-INF", "NaN", "1.5"])
@pytest.mark.parametrize("primitive", ["float", "double"])
def test_a_null_value_that_is_no_float_of_32_bits_is_null_all_the_same(primitive: str, null: str) -> None:
    """A field has it as the 32 bits that hold it nearest, and one message and a column agree on it."""
    types = f'<type name="T" primitiveType="{primitive}" presence="optional" nullValue="{null}"/>'
    codec = sbe.Schema.from_text(schema(types, '<field name="a" type="T"/>'))["M"]
    messages = [codec.encode(a=None), codec.encode(a=0.25), codec.encode(a=float(null))]
    assert [codec.decode(message).a for message in messages] == [None, 0.25, None]
    assert codec.to_arrow(messages).column("a").to_pylist() == [None, 0.25, None]


@pytest.mark.parametrize(
    ("encoding", "word"),
    [
        *(("UTF-16LE", "AB"), ("UTF-16", "AB"), ("UTF-32BE", "AB"), ("UTF-8-sig", "AB"), ("cp500", "..")),
        *(
            ("UTF-7", "\u65e5\u672c"),
            ("ISO-2022-JP", "\u65e5\u672c"),
            ("hz", "\u65e5\u672c"),
            ("GB18030", "AB"),
        ),
        *(
            ("US-ASCII", "AB"),
            ("UTF-8", "AB"),
            ("latin-1", "AB"),
            ("ISO-8859-15", "AB"),
            ("windows-1252", "AB"),
        ),
        *(("UTF-8", "\u65e5"), ("latin-1", "\u00e9"), ("KOI8-R", "\u0416"), ("Shift_JIS", "\u65e5")),
    ],
)
def test_a_column_has_the_text_that_one_message_has(encoding: str, word: str) -> None:
    """Also where every byte is one of ASCII, and means something else there."""
    text = TEXT.replace("UTF-8", encoding)
    codec = sbe.Schema.from_text(schema(body='<data name="d" type="text"/>').replace(TEXT, text))["M"]
    messages = [codec.encode(d=word), codec.encode(d=""), codec.encode(d=word * 2)]
    assert [codec.decode(message).d for message in messages] == [word, "", word * 2]
    assert codec.to_arrow(messages).column("d").to_pylist() == [word, "", word * 2]


@pytest.mark.parametrize("encoding", ["UTF-7", "ISO-2022-JP", "hz", "UTF-8", "Shift_JIS", "EUC-JP"])
def test_a_column_has_the_text_of_a_fixed_length_that_one_message_has(encoding: str) -> None:
    types = f'<type name="T" primitiveType="char" length="12" characterEncoding="{encoding}"/>'
    codec = sbe.Schema.from_text(schema(types, '<field name="a" type="T"/>'))["M"]
    messages = [codec.encode(a="\u65e5\u672c"), codec.encode(a="ok")]
    assert [codec.decode(message).a for message in messages] == ["\u65e5\u672c", "ok"]
    assert codec.to_arrow(messages).column("a").to_pylist() == ["\u65e5\u672c", "ok"]


def test_encodings_whose_low_bytes_a_column_takes_as_they_are_hold_ascii_there() -> None:
    names = {codecs.lookup(name).name for name in aliases.values() if name != "mbcs"}
    taken = {name for name in names if ASCII_SUPERSET.fullmatch(name)}
    assert {"ascii", "utf-8", "iso8859-1", "iso8859-16", "cp1250", "cp1258", "koi8-r"} <= taken
    low = bytes(range(128))
    assert {name for name in taken if low.decode(name) != low.decode("ascii")} == set()


def test_records_survive_a_collector_in_a_hurry() -> None:
    """A record's attributes are taken from a class that is garbage right after."""
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(20):
            codec = sbe.Schema.from_text(schema(body=INT + '<field name="b" id="2" type="int8"/>'))["M"]
            assert codec.decode(codec.encode(a=1, b=2)).b == 2
    finally:
        gc.set_threshold(*threshold)
