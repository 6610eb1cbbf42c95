"""What a user may say about publishing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._settings.config import default_directory
from headrace.spark._option_values import INT32, MILLISECONDS, Options, refuse

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["SinkOptions"]

# Spark hands the last two, its own, over as well.
_NAMES = (
    "channel",
    "streamId",
    "aeronDirectory",
    "payloadColumn",
    "delivery",
    "timeoutMs",
    "path",
    "checkpointLocation",
)


@dataclass(frozen=True, kw_only=True)
class SinkOptions:
    """The options of the sink. Picklable."""

    channel: str
    stream_id: int
    aeron_directory: str
    payload_column: str
    is_marked: bool
    timeout_s: float

    @classmethod
    def parse(cls, given: Mapping[str, str], schema: StructType) -> SinkOptions:
        """Check the options against the rows.

        Raises:
            ConfigError: An option is unknown, missing or wrong, or the column is unknown.
        """
        options = Options(given, _NAMES)
        channel = options.required("channel", "where are the rows to be published?")
        stream_id = options.whole("streamId", INT32)
        if stream_id is None:
            refuse("streamId", "", "which stream are the rows to be published on?")
        column = options.text("payloadColumn", "payload") or ""
        kinds = {field.name: field.dataType.typeName() for field in schema.fields}
        if column not in kinds:
            refuse("payloadColumn", column, f"no such column; known are {', '.join(kinds)}")
        if kinds[column] not in ("binary", "string"):
            refuse("payloadColumn", column, f"is {kinds[column]}, and must be binary or string")
        return cls(
            channel=channel,
            stream_id=stream_id,
            aeron_directory=options.text("aeronDirectory") or default_directory(),
            payload_column=column,
            is_marked=options.choice("delivery", ("plain", "marked"), "plain") == "marked",
            timeout_s=(options.whole("timeoutMs", MILLISECONDS, 30_000) or 0) / 1000,
        )
