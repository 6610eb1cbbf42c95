"""Where the messages of `headrace publish` come from."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

STDIN = "-"


def messages(sources: tuple[str, ...], length: int | None) -> Iterator[bytes]:
    """The messages of files in turn; `-` is stdin. A line each without its end, or `length` bytes each.

    Raises:
        OSError: a file cannot be read.
    """
    for source in sources:
        with _opened(source) as file:
            yield from _lines(file) if length is None else _records(file, length)


@contextlib.contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    if source == STDIN:
        if sys.stdin is None:
            raise OSError("stdin is closed; name a file, or redirect one: headrace publish - < FILE")
        yield sys.stdin.buffer
        return
    with Path(source).open("rb") as file:
        yield file


def _lines(file: BinaryIO) -> Iterator[bytes]:
    for line in file:
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _records(file: BinaryIO, length: int) -> Iterator[bytes]:
    # The last record may be shorter: nothing of a file is left out.
    while record := file.read(length):
        yield record
