"""Follows recordings, micro-batch by micro-batch.

An offset (:mod:`headrace.spark._offset`) says how far each recording was read, from where the new ones are read, and
which have ended. What a batch reads follows from its two offsets alone, so reading it again gives the same rows.
Recordings that are gone and were read to their end leave the offset; what becomes of a query that finds messages gone
which it has not read, :class:`DataLoss` decides.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from headrace._base.exceptions import ConfigError
from headrace.archive import ArchiveFileError
from headrace.spark._archive_options import ArchiveFiles
from headrace.spark._columns import batches
from headrace.spark._hold import QueryHold
from headrace.spark._offset import Offset, Positions, began, ended, offset_of, positions, unfinished
from headrace.spark._ranges import RangeTask, RecordingRange, tasks_of
from headrace.spark._reading import opened
from headrace.spark._recordings import (
    Gone,
    Selected,
    look_up,
    refuse_patterns_without_match,
    refuse_unknown,
    select,
    still_recorded,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.spark._options import ReadOptions

__all__ = ["DataLoss", "RecordingStreamReader"]

_LOG = logging.getLogger(__name__)


class DataLoss:
    """What becomes of a query that finds messages gone which it has not read: option ``failOnDataLoss``.

    Args:
        is_failure: It fails, naming them; otherwise it goes on, and each loss is logged once as a warning.
    """

    def __init__(self, *, is_failure: bool) -> None:
        self._is_failure = is_failure
        self._told: set[str] = set()

    def found(self, text: str) -> None:
        """Take note of a loss.

        Raises:
            ArchiveFileError: The query must not go on.
        """
        if self._is_failure:
            text += "; to go on without what is gone, set the option failOnDataLoss to false"
            raise ArchiveFileError(text)
        if text not in self._told:
            self._told.add(text)
            _LOG.warning("%s; failOnDataLoss=false, so the query goes on", text)


class RecordingStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """New messages of all recordings that match the options, those that begin later included."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._target: Positions | None = None
        self._loss = DataLoss(is_failure=options.fails_on_data_loss)
        self._is_warned = False
        # How far it wants the recordings that it saw at its last look.
        self._wanted: dict[str, float] = {}
        name, archive = options.retention_hold, options.archive
        self._hold: QueryHold | None = None
        if name is not None and isinstance(archive, ArchiveFiles):
            self._hold = QueryHold(archive.directory, name)

    def initialOffset(self) -> Offset:
        """Nothing read of anything: a recording that is missing in an offset is read from its beginning."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """``maxBytesPerTrigger``."""
        return ReadMaxBytes(self._options.max_bytes_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at what is recorded now."""
        chosen = select(self._options)
        for each in chosen:
            if each.end is None:
                _LOG.warning("%s; this run leaves it out", still_recorded(each))
        self._target = {str(each.recording_id): self._end(each) for each in chosen}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Where the next batch ends: after whole messages, within the limit."""
        chosen = select(self._options)
        read = positions(start)
        refuse_unknown(self._options, chosen, known=map(int, read))
        if not chosen:
            self._warn_of_patterns()
        chosen = self._held(chosen, start)
        latest = self._without_gone(start, chosen)
        unfinished_to = _still_unfinished(start, chosen)
        backlog = {}
        at = {str(each.recording_id): self._next(each, read) for each in chosen}
        for selected in chosen:
            key = str(selected.recording_id)
            position = at[key]
            if position != read.get(key, position):
                latest[key] = position
            end = self._end(selected)
            if self._target is not None:
                end = min(end, self._target.get(key, position))
            if end > position and not self._is_read(selected, position, unfinished_to):
                backlog[key] = selected, position, end
        budgets = _shared({key: end - position for key, (_, position, end) in backlog.items()}, limit)
        for key, (selected, position, end) in backlog.items():
            if budgets[key] > 0:
                stop = min(end, position + budgets[key])
                boundary = self._boundary(selected, position, stop, is_frame_at_start=key in read)
                is_unfinished = boundary < stop and not selected.descriptor.is_active
                if boundary > position or is_unfinished:
                    latest[key] = boundary
                if is_unfinished and selected.end is not None:
                    unfinished_to[key] = selected.end
        return self._offset(start, latest, chosen, at, unfinished_to)

    def _offset(
        self,
        start: Offset,
        latest: Positions,
        chosen: list[Selected],
        at: Positions,
        unfinished_to: Positions,
    ) -> Offset:
        """The offset after another, with positions that ``chosen`` and those before give."""
        there = {str(each.recording_id): each for each in chosen}
        done = ended(start) & (latest.keys() - there.keys())
        for key, selected in there.items():
            if key in latest and self._is_read(selected, latest[key], unfinished_to):
                done.add(key)
        # Where nothing is new the offset stays as it is: to Spark another text is another batch.
        read = positions(start)
        began_at = began(start) if latest == read else {key: at[key] for key in latest if key not in read}
        still = {key: end for key, end in unfinished_to.items() if key in latest}
        return offset_of(latest, done, began_at=began_at, unfinished_to=still)

    def reportLatestOffset(self) -> Offset:
        """How far everything is recorded, from which Spark reports the lag."""
        return offset_of({str(each.recording_id): self._end(each) for each in select(self._options)})

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The tasks that read what is between two offsets."""
        # Whatever the options choose now: what was planned before Spark was restarted is read as it was planned.
        read, to_read = positions(start), positions(end)
        begins = began(end) | read
        moved = {int(key) for key, stop in to_read.items() if stop != begins.get(key)}
        ranges = []
        for recording_id, found in sorted(look_up(self._options.archive, moved).items()):
            key = str(recording_id)
            stop = to_read[key]
            if isinstance(found, Gone):
                self._loss.found(
                    f"recording_id={recording_id} was to be read from position={read.get(key, 'its start')} to "
                    f"position={stop}, but {found.reason}"
                )
                continue
            position = self._planned(found, begins.get(key), stop)
            if found.end is not None and stop > found.end:
                self._loss.found(
                    f"recording_id={recording_id} was to be read to position={stop}, but ends at "
                    f"position={found.end} now: it was truncated"
                )
                stop = found.end
            if stop > position:
                descriptor = found.descriptor
                # The message before `stop` is whole, so nothing after it is needed.
                is_frame = position == read.get(key, descriptor.start_position)
                ranges.append(RecordingRange.of(descriptor, position, stop, stop, is_frame_at_start=is_frame))
        return tasks_of(ranges, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one task's ranges."""
        if isinstance(partition, RangeTask):
            yield from batches(partition, self._options, self._schema)

    def commit(self, end: Offset) -> None:
        """Spark has committed everything before an offset."""
        if self._hold is not None:
            committed = positions(end)
            reached = committed | unfinished(end)
            # One that was extended since is still needed.
            done = {key for key in ended(end) if reached[key] >= self._wanted.get(key, 0)}
            self._hold.move(committed, done)

    def _held(self, chosen: list[Selected], start: Offset) -> list[Selected]:
        """Hold what the query has not read of recordings, and look at them again if they were not held before.

        A retention may have come between the first look and the hold.
        """
        self._wanted = {str(each.recording_id): self._wanted_end(each) for each in chosen}
        if self._hold is None:
            return chosen
        read, unfinished_to = positions(start), _still_unfinished(start, chosen)
        at = {each.recording_id: read.get(str(each.recording_id), self._first(each)) for each in chosen}
        is_read = {
            each.recording_id: self._is_read(each, at[each.recording_id], unfinished_to) for each in chosen
        }
        unread = {each: position for each, position in at.items() if not is_read[each]}
        # No commit will speak of a recording that ended empty.
        self._hold.release({each for each in at if is_read[each] and str(each) not in read})
        begun = self._hold.begin(unread)
        if not begun:
            return chosen
        again = [each for each in select(self._options) if each.recording_id in at]
        self._hold.release(begun - {each.recording_id for each in again})
        return again

    def _warn_of_patterns(self) -> None:
        """Say once that ``channel`` and ``streamId`` match nothing: recordings that begin later may match."""
        if self._is_warned:
            return
        self._is_warned = True
        try:
            refuse_patterns_without_match(self._options)
        except ConfigError as refusal:
            _LOG.warning("%s; the query waits for recordings that match", refusal)

    def _wanted_end(self, selected: Selected) -> float:
        """Up to where there may be messages of a recording that the query wants."""
        end = math.inf if selected.descriptor.is_active or selected.end is None else selected.end
        return end if self._options.end_position is None else min(end, self._options.end_position)

    def _is_read(self, selected: Selected, position: int, unfinished_to: Positions) -> bool:
        """Whether nothing of a recording is left to read from a position on."""
        reached = max(position, unfinished_to.get(str(selected.recording_id), 0))
        return reached >= self._wanted_end(selected)

    def _without_gone(self, start: Offset, chosen: list[Selected]) -> Positions:
        """Positions without the recordings that are gone for good and were read to their end."""
        latest = positions(start)
        known = {int(key) for key in latest}
        held = set() if self._hold is None else self._hold.held()
        missing = (known | held) - {each.recording_id for each in chosen}
        found_gone = look_up(self._options.archive, missing)
        self._release_gone(found_gone, known)
        for recording_id, found in found_gone.items():
            if isinstance(found, Gone) and recording_id in known:
                key = str(recording_id)
                self._check_gone(key, found, start)
                # A recording that the options name is known by its key, and one that is invalid may come back.
                if found.is_deleted and self._options.recordings is None:
                    del latest[key]
        return latest

    def _check_gone(self, key: str, found: Gone, start: Offset) -> None:
        """Tell of what the query has not read of a recording that is gone."""
        position, bound = positions(start)[key], self._options.end_position
        reached = unfinished(start).get(key, position)
        is_read = key in ended(start) if found.end is None else reached >= found.end
        if not is_read and (bound is None or position < bound):
            self._loss.found(
                f"recording_id={key} {found.reason}, and was read up to position={position} "
                + ("only; where it ended is not known" if found.end is None else f"of {found.end} only")
            )

    def _release_gone(self, found: dict[int, Selected | Gone], known: set[int]) -> None:
        """End the holds of recordings that were purged, whatever left them there."""
        if self._hold is None:
            return
        gone = {key: one for key, one in found.items() if isinstance(one, Gone) and one.is_deleted}
        # One of which the catalog and the query know nothing may be still to come.
        self._hold.release({key for key, one in gone.items() if one.end is not None or key in known})

    def _next(self, selected: Selected, read: Positions) -> int:
        """Where a recording is to be read on, or from."""
        key, bound = str(selected.recording_id), self._options.end_position
        if key not in read:
            return self._first(selected)
        if bound is not None and bound <= read[key] and (selected.end is None or bound <= selected.end):
            # What is wanted was read, whatever became of it.
            return read[key]
        return self._checked(selected, read[key])

    def _planned(self, selected: Selected, begin: int | None, stop: int) -> int:
        """From where a batch reads a recording; ``None`` if its offsets do not say, as of older versions."""
        if begin is not None:
            return self._checked(selected, begin)
        start = selected.descriptor.start_position
        if stop <= start:
            self._loss.found(
                f"recording_id={selected.recording_id} was to be read from its start to position={stop}, but begins "
                f"at start_position={start} now: all of that was deleted"
            )
        return self._first(selected)

    def _first(self, selected: Selected) -> int:
        """From where a recording is read that the query has not read yet."""
        return max(selected.descriptor.start_position, self._options.start_position)

    def _checked(self, selected: Selected, position: int) -> int:
        """Where a recording can be read on that is to be read from a position."""
        start, recording_id = selected.descriptor.start_position, selected.recording_id
        if position < start:
            self._loss.found(
                f"recording_id={recording_id} was to be read on from position={position}, but begins at "
                f"start_position={start} now: what lay between was deleted"
            )
            return start
        if selected.end is not None and position > selected.end:
            self._loss.found(
                f"recording_id={recording_id} was read up to position={position}, but ends at "
                f"position={selected.end} now: it was truncated, and may have gone on with other messages"
            )
            return selected.end
        return position

    def _end(self, selected: Selected) -> int:
        """How far a recording may be read now."""
        start = selected.descriptor.start_position
        if selected.end is None:
            return start
        if self._options.end_position is None:
            return selected.end
        return max(start, min(selected.end, self._options.end_position))

    def _boundary(self, selected: Selected, position: int, stop: int, *, is_frame_at_start: bool) -> int:
        """The end of the last whole message that begins before ``stop``."""
        assert selected.end is not None, "only asked for recordings with something to read"
        # No message lies across terms, so the last term tells.
        term_begin = stop - stop % selected.descriptor.term_buffer_length
        if term_begin > position:
            position, is_frame_at_start = term_begin, True
        if position >= stop:
            return position
        part = RecordingRange.of(
            selected.descriptor, position, stop, selected.end, is_frame_at_start=is_frame_at_start
        )
        with opened(part, self._options, with_payload=False, filtered=False) as reader:
            return max(position, reader.boundary())


def _still_unfinished(start: Offset, chosen: list[Selected]) -> Positions:
    """Where recordings stopped within a message, and have not gone on since an offset."""
    there = {str(each.recording_id): each for each in chosen}
    return {
        key: end
        for key, end in unfinished(start).items()
        if key not in there or (there[key].end == end and not there[key].descriptor.is_active)
    }


def _shared(backlog: dict[str, int], limit: ReadLimit) -> dict[str, int]:
    """How many bytes of each backlog go into a batch: each recording the same, unless it has less."""
    if isinstance(limit, ReadAllAvailable) or not isinstance(limit, ReadMaxBytes):
        return backlog
    shares, left = {}, limit.max_bytes
    for index, key in enumerate(sorted(backlog, key=lambda key: backlog[key])):
        shares[key] = min(backlog[key], max(32, left // (len(backlog) - index)))
        left = max(0, left - shares[key])
    return shares
