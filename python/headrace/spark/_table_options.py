"""Options of tables: ``CREATE TABLE ... USING headrace OPTIONS (...)``.

Spark gives a source all that it knows of a table, its own entries included, when the table is created, and none of it
when the table is read: then the source is given the columns alone. So the options go into the comment of the first
column, which Spark keeps with the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.spark._archive_options import names_archive

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["commented", "created_with", "read_with"]

_GIVEN = "option."
_COMMENT = "read with the headrace options "


def created_with(given: Mapping[str, str]) -> dict[str, str] | None:
    """The options that a user gave a table; ``None`` if this is not what Spark says of a table."""
    if given.get("provider", "").lower() != "headrace":
        return None
    options = {name.removeprefix(_GIVEN): value for name, value in given.items() if name.startswith(_GIVEN)}
    if not names_archive(options) and "location" in given:
        options["path"] = given["location"]
    return options


def commented(columns: list[str], options: Mapping[str, str]) -> list[str]:
    """Columns as ``name type``, of which the first remembers the options."""
    text = (_COMMENT + json.dumps(options)).replace("\\", "\\\\").replace("'", "\\'")
    return [f"{columns[0]} COMMENT '{text}'", *columns[1:]]


def read_with(given: Mapping[str, str], columns: StructType) -> dict[str, str]:
    """The options of a query: those it was given, and those that its table was created with."""
    if not names_archive(given) and columns.fields:
        metadata: dict[str, Any] = columns.fields[0].metadata or {}
        comment = str(metadata.get("comment", ""))
        if comment.startswith(_COMMENT):
            of_table: dict[str, str] = json.loads(comment.removeprefix(_COMMENT))
            return of_table | dict(given)
    return dict(given)
