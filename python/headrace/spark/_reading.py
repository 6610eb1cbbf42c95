"""Reads one range from where its archive's options say: files, or a replay."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.spark._archive_options import ArchiveFiles
from headrace.spark._archive_service import replayed

if TYPE_CHECKING:
    from headrace.client import FragmentBatch, RecordingReader
    from headrace.spark._options import ReadOptions
    from headrace.spark._ranges import RecordingRange

__all__ = ["RangeReader", "opened"]

_LOG = logging.getLogger(__name__)
# How long a replay may fill a batch before the rows that came are passed on.
_BATCH_WAIT_S = 0.05


class RangeReader:
    """The messages of a range, all that are whole or an error.

    Args:
        recording_id: Whose they are, for the log.
        reader: Walks the frames, and decides when the range is complete.
        check: Told where the reader is when nothing more came; raises when nothing more will.
    """

    def __init__(self, recording_id: int, reader: RecordingReader, check: Callable[[int], None]) -> None:
        self._recording_id = recording_id
        self._reader = reader
        self._check = check

    def batches(self, row_count: int) -> Iterator[FragmentBatch]:
        """Everything, in batches of at most so many messages.

        Logs a warning at the end if messages were left out because fragments of them are missing.
        """
        reader = self._reader
        while not reader.is_at_end:
            batch = reader.read_batch(row_count, timeout_s=_BATCH_WAIT_S)
            if len(batch):
                yield batch
            elif not reader.is_at_end:
                self._check(reader.position)
        if reader.incomplete_count:
            _LOG.warning(
                "recording_id=%d has not all fragments of %d messages, the first of them at position=%d: left out",
                self._recording_id,
                reader.incomplete_count,
                reader.incomplete_position,
            )

    def boundary(self) -> int:
        """Reads everything; gives the end of the last whole message."""
        reader = self._reader
        while not reader.is_at_end:
            reader.skip_to_boundary(_BATCH_WAIT_S)
            if not reader.is_at_end:
                self._check(reader.position)
        return reader.boundary


@contextmanager
def opened(
    part: RecordingRange, options: ReadOptions, *, with_payload: bool = True, filtered: bool = True
) -> Iterator[RangeReader]:
    """A reader of a range; ``filtered`` applies the options' session, times and checksum."""
    archive = options.archive
    if isinstance(archive, ArchiveFiles):
        reader = part.reader(None, options, with_payload=with_payload, is_filtered=filtered)
        yield RangeReader(part.recording_id, reader, _never_waits)
        return
    with replayed(archive, part) as replay:
        reader = part.reader(replay.image, options, with_payload=with_payload, is_filtered=filtered)
        yield RangeReader(part.recording_id, reader, replay.check)


def _never_waits(position: int) -> None:
    raise AssertionError(f"files are read to the end of the range or to an error, not to position={position}")
