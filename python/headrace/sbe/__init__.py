"""Simple Binary Encoding: messages with a fixed layout, described by an XML schema.

::

    from headrace import sbe

    schema = sbe.Schema.from_file("orders.xml")
    order = schema["NewOrder"]
    data = order.encode(orderId=7, price=101.5)
    order.decode(data).price
"""

from __future__ import annotations

from headrace._extras import needs
from headrace._names import publish as _publish

with needs("numpy"):
    from headrace.sbe._codec import Header, MessageCodec
    from headrace.sbe._errors import DecodeError, EncodeError, SchemaError, UnknownTemplateError
    from headrace.sbe._schema import Schema
    from headrace.sbe._select import Selection
    from headrace.sbe._values import BitSet, Record

__all__ = [
    "BitSet",
    "DecodeError",
    "EncodeError",
    "Header",
    "MessageCodec",
    "Record",
    "Schema",
    "SchemaError",
    "Selection",
    "UnknownTemplateError",
]

_publish(__name__, globals(), __all__)
