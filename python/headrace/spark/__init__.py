"""Apache Spark over recordings.

With the extra ``spark`` installed the data source ``headrace`` is there, with nothing to register::

    frame = spark.read.format("headrace").option("recordings", "3").load("recordings")
    query = spark.readStream.format("headrace").option("streamId", 1001).load("recordings").writeStream...

    service = spark.read.format("headrace").option("controlChannel", "aeron:udp?endpoint=archive-host:8010").load()

The archive, by its files or by its control channel, for both sources:

=========================== ===========================================================================
``archiveDirectory``        The archive's directory, which all executors see; what ``load()`` is given means
                            the same.
``controlChannel``          Instead of a directory: where the archive takes requests, such as
                            ``aeron:udp?endpoint=host:8010``. Executors then have it replay to them.
``controlStreamId``         Stream of the requests, 10 by default.
``controlResponseChannel``  Where the archive answers; by default this host's address towards the archive, on a
                            port that the system chooses.
``controlResponseStreamId`` Stream of the answers, 20 by default.
``replayChannel``           Where the archive replays to, with the same default. With a port other than 0, tasks
                            on a host must share a driver (``aeronDirectory``).
``replayStreamId``          Stream of the replays, 1020 by default.
``timeoutMs``               With ``controlChannel``: how long the archive may take to answer, or send nothing,
                            before the query or task fails; 30000.
``credentialsFile``         With ``controlChannel``: a file on every host whose first line says who asks, as
                            ``name:secret``, for an archive that wants to know.
``aeronDirectory``          With ``controlChannel``: the driver on every host; without it every process starts
                            one of its own. With files: the archive's driver, which shows how far active
                            recordings are; by default what the archive says in its mark file.
=========================== ===========================================================================

What to read of it, for both sources:

===================== =================================================================================
``subscribe``         Names of streams separated by commas: all their recordings, also later ones.
``subscribePattern``  Instead, a regular expression of whole names.
``recordings``        Recording ids separated by commas, or ``all``, the default.
``channel``           Only recordings whose channel contains this text.
``streamId``          Only recordings of this stream. A batch query refuses a channel or stream that no recording
                      has; a streaming query logs a warning and waits.
``sessionId``         Only messages of this publisher.
``startPosition``     Only messages that begin at this position or later.
``endPosition``       Only messages that begin before this position.
``startTime``         From this time on; ISO 8601, or milliseconds since 1970. Eight digits, which may be either, are
                      refused.
``endTime``           Before this time.
``timestamps``        ``reserved_value_ns``, ``_us`` or ``_ms``: what publishers put into the reserved value.
                      There is a column ``timestamp`` then, null where it is 0, which nobody stamped; the two times
                      choose messages by it. Without it they choose recordings that were running between them.
``columns``           Names of columns separated by commas, in the order wanted. Beside decoded columns there are
                      ``payload``, ``bad`` and ``error`` for those who name them.
``codec``             What payloads are: ``binary``, ``json``, ``sbe``, ``python``, or entries of a ``cluster-log``.
``payloadSchema``     For ``json`` and ``python``: the columns, such as ``id bigint, price double``.
``sbeSchema``         For ``sbe``: path of the schema.
``sbeMessage``        For ``sbe``: name of the message; other messages of the schema are left out.
``decoder``           For ``python``: ``module:function``, or :func:`packed` of a function. It is given an
                      Arrow array of payloads and returns columns by name.
``onBadPayload``      For codecs but ``binary``: what is to become of a payload that cannot be decoded. ``fail``, the
                      default, fails the task with :class:`PayloadError`, which names recording and position;
                      ``null`` makes a row of it whose decoded columns are null.
``bytesPerPartition`` How much a task reads at most, about; 128m by default. Small recordings share a task.
``rowsPerBatch``      Rows in an Arrow batch, 16384 by default.
``recordChecksum``    The archive's setting of that name, if it has one: ``CRC-32`` or ``CRC-32C``. Each frame is
                      checked then, and ``session_id`` is the catalog's; without it, it is the checksum.
``maxBytesPerTrigger`` For streams: how much a micro-batch reads, 256m by default.
``failOnDataLoss``    For streams: what becomes of a query that finds messages purged or truncated which it has not
                      read. ``true``, the default, fails it, naming recording and position; ``false`` logs a
                      warning and goes on with what is left.
``retentionHold``     For streams: a name, under which the query keeps what it has not committed from the retention of
                      its recordings, also while it does not run. It needs the archive's directory.
===================== =================================================================================

Options of the sink, ``frame.write.format("headrace").mode("append")`` and ``frame.writeStream.format("headrace")``:

===================== =================================================================================
``channel``           Where to publish; required.
``streamId``          On which stream; required.
``aeronDirectory``    The driver on every executor's host; the default directory if not given.
``payloadColumn``     The column to publish, binary or string; ``payload`` by default.
``delivery``          ``plain``: the payloads as they are. ``marked``: with a header that names query, batch
                      and the attempt that published them, and a marker when the batch is committed; see
                      :class:`CommittedBatches`.
``timeoutMs``         How long to wait for a subscriber, or for room, before the task fails; 30000.
===================== =================================================================================

Bounds are options and not filters: Spark's push-down of filters into Python sources gives wrong rows when one loaded
frame is used with two filters. A loaded frame is what was recorded when it was first used; load again for more.
"""

from __future__ import annotations

from headrace._base.extras import needs
from headrace._base.names import publish as _publish

with needs("spark"):
    from headrace.spark._codecs import packed
    from headrace.spark._committed import CommittedBatch, CommittedBatches
    from headrace.spark._decoding import PayloadError
    from headrace.spark._delta import delta_sink
    from headrace.spark._envelope import EnvelopeError

__all__ = ["CommittedBatch", "CommittedBatches", "EnvelopeError", "PayloadError", "delta_sink", "packed"]

_publish(__name__, globals(), __all__)
