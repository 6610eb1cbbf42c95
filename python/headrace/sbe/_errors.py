"""The exceptions of :mod:`headrace.sbe`.

HeadraceError
├── SchemaError (also ValueError)            a schema breaks a rule; names file, element and rule
├── EncodeError (also ValueError)            a value does not fit its field; names message and field
└── DecodeError (also ValueError)            bytes are not such a message; names template, field and offset
    └── UnknownTemplateError                 the schema has no message with this template id, or is another schema
"""

from __future__ import annotations

from headrace._base.exceptions import HeadraceError

__all__ = ["DecodeError", "EncodeError", "SchemaError", "UnknownTemplateError"]


class SchemaError(HeadraceError, ValueError):
    """A message schema breaks a rule.

    Attributes:
        file: Where the schema came from.
        element: Path of names to the element, for example ``message 'Order' > field 'price'``.
        rule: The rule that it breaks.
    """

    def __init__(self, file: str, element: str, rule: str) -> None:
        super().__init__(f"{file}: {element}: {rule}")
        self.file = file
        self.element = element
        self.rule = rule


class EncodeError(HeadraceError, ValueError):
    """A value does not fit its field, or is missing.

    Attributes:
        message: Name of the message, with the group when the field is in one.
        field: Name of the field.
    """

    def __init__(self, message: str, field: str, reason: str) -> None:
        super().__init__(f"{message}.{field}: {reason}")
        self.message = message
        self.field = field


class DecodeError(HeadraceError, ValueError):
    """Bytes are truncated, corrupt, or not of this message.

    Attributes:
        template: Name of the message, empty when the header itself cannot be read.
        field: Where decoding stopped, empty for the message as a whole.
        offset: Byte at which the field begins, in the given data or in that message of a batch.
        index: Which message of a batch, ``None`` for a single one.
        reason: The fault.
    """

    def __init__(
        self, template: str, field: str, offset: int, reason: str, *, index: int | None = None
    ) -> None:
        where = ".".join(filter(None, (template or "message", field)))
        which = "" if index is None else f", message {index} of the batch"
        super().__init__(f"{where} at offset {offset}{which}: {reason}")
        self.template = template
        self.field = field
        self.offset = offset
        self.index = index
        self.reason = reason


class UnknownTemplateError(DecodeError):
    """The header is of another schema, or names a template that the schema does not have."""
