"""A batch's offsets have 32 bits: it ends before they could wrap, whatever length the caller allows."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import pytest

import headrace

pytestmark = [pytest.mark.boundary, pytest.mark.slow]

HEADER = struct.Struct("<iBBHiiiiq")
TERM_LENGTH = 1 << 30
FRAME_LENGTH = 300 << 20
FRAMES_A_TERM = TERM_LENGTH // FRAME_LENGTH
STREAM_ID, SESSION_ID, INITIAL_TERM_ID = 5, 6, 7


def recorded(directory: Path, terms: int) -> int:
    """A recording of long frames, whose payloads are holes in its files; gives its stop position."""
    for term in range(terms):
        with (directory / f"0-{term * TERM_LENGTH}.rec").open("wb") as segment:
            segment.truncate(TERM_LENGTH)
            for index in range(FRAMES_A_TERM + 1):
                offset = index * FRAME_LENGTH
                is_padding = index == FRAMES_A_TERM
                length = TERM_LENGTH - offset if is_padding else FRAME_LENGTH
                numbers = (offset, SESSION_ID, STREAM_ID, INITIAL_TERM_ID + term, index)
                segment.seek(offset)
                segment.write(HEADER.pack(length, 0, 0xC0, 0 if is_padding else 1, *numbers))
    return terms * TERM_LENGTH


def test_a_batch_takes_no_more_than_its_offsets_can_tell(tmp_path: Path):
    terms = 3
    stop = recorded(tmp_path, terms)
    reader = headrace.RecordingReader(
        tmp_path,
        headrace.RecordedFrames(
            0,
            start_position=0,
            initial_term_id=INITIAL_TERM_ID,
            term_length=TERM_LENGTH,
            segment_length=TERM_LENGTH,
            stream_id=STREAM_ID,
        ),
        start=0,
        stop=stop,
        limit=stop,
        is_frame_at_start=True,
    )
    lengths: list[list[int]] = []
    while sum(map(len, lengths)) < terms * FRAMES_A_TERM:
        batch = reader.read_batch(1000, 1 << 40)
        offsets = memoryview(batch.offsets).cast("B").cast("i")
        lengths.append([after - before for before, after in itertools.pairwise(offsets)])
        assert offsets[-1] == memoryview(batch.payload).nbytes
        del batch, offsets
    assert [len(batch) for batch in lengths] == [4, 4, 1]
    assert {length for batch in lengths for length in batch} == {FRAME_LENGTH - HEADER.size}
