"""Simple Binary Encoding: messages with a fixed layout, described by an XML schema.

::

    from headrace import sbe

    schema = sbe.Schema.from_file("orders.xml")
    order = schema["NewOrder"]
    data = order.encode(orderId=7, price=101.5)
    order.decode(data).price
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._base.extras import needs
from headrace._base.names import publish as _publish
from headrace.sbe._codec import Header, MessageCodec
from headrace.sbe._errors import DecodeError, EncodeError, SchemaError, UnknownTemplateError
from headrace.sbe._schema import Schema
from headrace.sbe._values import BitSet, Record

if TYPE_CHECKING:
    from headrace.sbe._select import Selection

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


def __getattr__(name: str) -> Any:
    # Of many messages at once, for which numpy is loaded: the archive, which reads one at a time, does without.
    if name == "Selection":
        with needs("numpy"):
            from headrace.sbe._select import Selection

        return Selection
    raise AttributeError(f"module 'headrace.sbe' has no attribute {name!r}")


_publish(__name__, globals(), __all__)
