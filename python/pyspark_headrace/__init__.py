"""Makes ``spark.read.format("headrace")`` work: Spark imports every module called ``pyspark_*`` by itself.

Every Python process that Spark starts for planning imports this, and one such module that fails to import disables
all of them. So nothing of Headrace is imported here before a ``headrace`` source or sink is really used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The data source called ``headrace``; its options are those of :mod:`headrace.spark`."""

    @classmethod
    def name(cls) -> str:
        """What goes into ``format()``."""
        return "headrace"

    def schema(self) -> str:
        """The columns the options ask for."""
        from headrace.spark import _source

        return _source.schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads recordings once."""
        from headrace.spark import _source

        return _source.reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Follows recordings."""
        from headrace.spark import _source

        return _source.stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Publishes a data frame."""
        from headrace.spark import _source

        return _source.writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Publishes a streaming query."""
        from headrace.spark import _source

        return _source.stream_writer(self.options, schema)
