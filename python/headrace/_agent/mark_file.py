"""The mark file of a program that runs on a directory, as an archive and the components of a cluster have one.

    0     message header: u16 block length 128 | u16 template 200 | u16 schema | u16 version 2
    8     the numbers of the layout: first i32 version, 0 until ready; at 16 i64 activity timestamp, ms
    120   i64 process id | i64 start timestamp, ms, of a program of ours that holds a lock on the file; else zeros
    136   the texts of the layout, each u32 length and ASCII
    8192  error buffer

A program of ours holds a lock on the file, which ends with its process, and says so at 120: once the lock is free, the
program is dead, whatever the clock was. Other programs overwrite process id and start timestamp among the numbers
alone, so theirs differ from those at 120. For them the activity timestamp counts, which they renew every second and set
to -1 when they stop in order: if it is younger than ten seconds, the directory is taken.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from headrace._agent.mark_link import mark_directory, new_mark_directory
from headrace.positions import NULL_VALUE, align

if TYPE_CHECKING:
    from headrace._agent.storage import Storage, StorageFile
    from headrace._base.exceptions import HeadraceError

__all__ = ["HEADER_LENGTH", "LIVENESS_TIMEOUT_MS", "TEXTS_OFFSET", "MarkFile", "MarkLayout"]

HEADER_LENGTH = 8192
LIVENESS_TIMEOUT_MS = 10_000
TEXTS_OFFSET = 136
_NUMBERS_OFFSET = _VERSION_OFFSET = 8
_ACTIVITY_OFFSET, _LOCK_HOLDER_OFFSET = 16, 120
_HEADER = struct.Struct("<HHHH")
_LOCK_HOLDER = struct.Struct("<qq")
_LENGTH = struct.Struct("<I")
_INT, _LONG = struct.Struct("<i"), struct.Struct("<q")
_BLOCK_LENGTH, _TEMPLATE, _SCHEMA_VERSION = 128, 200, 2
_PAGE_LENGTH = 4096
_FULL_SYNC = 2


class _CommonFields(Protocol):
    @property
    def start_timestamp(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def header_length(self) -> int: ...
    @property
    def error_buffer_length(self) -> int: ...


F = TypeVar("F", bound=_CommonFields)


class MarkLayout(ABC, Generic[F]):
    """The header of one kind of mark file, and when its directory is taken.

    Args:
        kind: The dataclass of the fields: the numbers, then the texts.
        numbers: How the numbers are packed.
        schema: The schema of the message header.
        error: Raised for a file that is damaged or taken.
    """

    def __init__(
        self, kind: type[F], numbers: struct.Struct, schema: int, error: type[HeadraceError]
    ) -> None:
        self._kind: Any = kind
        self._numbers = numbers
        self._schema = schema
        self.error = error
        self._text_count = sum(item.type == "str" for item in dataclasses.fields(kind))  # type: ignore[arg-type]

    @abstractmethod
    def locked_text(self, path: str, holder: F | None) -> str:
        """The error for a file that another program of ours has locked, if the header says which."""

    @abstractmethod
    def check_idle(self, header: bytes, where: Storage, name: str, now_ms: int, timeout_ms: int) -> None:
        """Refuse a directory on which a program runs that holds no lock; that of ours was found to be free."""

    def encode(self, fields: F) -> bytes:
        """The header of a program that holds the lock.

        Raises:
            HeadraceError: The texts are too long; the layout's error.
        """
        values = dataclasses.astuple(fields)  # type: ignore[call-overload]
        count = len(values) - self._text_count
        message_header = _HEADER.pack(_BLOCK_LENGTH, _TEMPLATE, self._schema, _SCHEMA_VERSION)
        numbers = message_header + self._numbers.pack(*values[:count])
        holder = _LOCK_HOLDER.pack(fields.pid, fields.start_timestamp)
        parts = [numbers.ljust(_LOCK_HOLDER_OFFSET, b"\0"), holder]
        for text in values[count:]:
            data = text.encode("ascii", "replace")
            parts += _LENGTH.pack(len(data)), data
        header = b"".join(parts)
        if len(header) > HEADER_LENGTH:
            raise self.error(
                f"the channels and names make a header of length={len(header)} in the mark file, above "
                f"{HEADER_LENGTH}: shorten them"
            )
        return header

    def decode(self, header: bytes, path: str, offset: int = _NUMBERS_OFFSET) -> F:
        """The fields of a header whose numbers begin at an offset.

        Raises:
            HeadraceError: It is damaged; the layout's error.
        """
        numbers = self._numbers.unpack_from(header, offset)
        offset, texts = offset + TEXTS_OFFSET - _NUMBERS_OFFSET, []
        for _ in range(self._text_count):
            begin = offset + _LENGTH.size
            length = _LENGTH.unpack_from(header, offset)[0] if begin <= len(header) else 0
            if begin + length > len(header):
                raise self.error(
                    f"{path}: a text of length={length} at offset={offset} ends outside the header"
                )
            offset = begin + length
            texts.append(header[begin:offset].decode("ascii", "replace"))
        return self._kind(*numbers, *texts)  # type: ignore[no-any-return]

    def numbers(self, header: bytes, offset: int = _NUMBERS_OFFSET) -> F:
        """The fields without their texts, of which a kill may have left a part."""
        return self._kind(  # type: ignore[no-any-return]
            *self._numbers.unpack_from(header, offset), *[""] * self._text_count
        )

    def is_header(self, data: bytes) -> bool:
        """Whether bytes begin with the header of such a file."""
        return len(data) >= TEXTS_OFFSET and _HEADER.unpack_from(data)[1:3] == (_TEMPLATE, self._schema)

    def is_of_lock_holder(self, header: bytes, fields: F) -> bool:
        """Whether the program that wrote the header held the lock."""
        holder = _LOCK_HOLDER.unpack_from(header, _LOCK_HOLDER_OFFSET)
        return any(holder) and holder == (fields.pid, fields.start_timestamp)

    def lock(self, file: StorageFile, path: str) -> None:
        """Lock a file for this process.

        Raises:
            HeadraceError: Another process has locked it; the layout's error.
        """
        if file.try_lock():
            return
        header = file.read(0, TEXTS_OFFSET)
        is_known = self.is_header(header) and any(_LOCK_HOLDER.unpack_from(header, _LOCK_HOLDER_OFFSET))
        raise self.error(self.locked_text(path, self.numbers(header) if is_known else None))

    def read(self, storage: Storage, name: str) -> F | None:
        """The fields of a directory's mark file, to which a link may lead; ``None`` without one.

        Raises:
            HeadraceError: It is damaged, or the link names no directory; the layout's error.
            OSError: It cannot be read.
        """
        where = mark_directory(storage, name, self.error)
        try:
            file = where.open(name, read_only=True)
        except FileNotFoundError:
            return None
        with closing(file):
            data = file.read(0, HEADER_LENGTH)
        path = where.describe(name)
        if len(data) < TEXTS_OFFSET:
            raise self.error(f"{path}: length={len(data)} is below the {TEXTS_OFFSET} bytes of a mark file")
        if not self.is_header(data):
            template, schema = _HEADER.unpack_from(data)[1:3]
            raise self.error(
                f"{path}: template={template} schema={schema} where {_TEMPLATE} and {self._schema} are expected"
            )
        return self.decode(data, path)

    def read_errors(self, storage: Storage, name: str, fields: F) -> bytes:
        """The error buffer of a mark file with these fields."""
        with closing(mark_directory(storage, name, self.error).open(name, read_only=True)) as file:
            return file.read(max(fields.header_length, 0), max(fields.error_buffer_length, 0))

    @contextmanager
    def idle(self, storage: Storage, name: str, now_ms: int) -> Iterator[None]:
        """Keep programs of ours away from a directory while its files are changed, or the mark file is moved.

        Raises:
            HeadraceError: One runs on it, or one that holds no lock did less than ten seconds ago; the layout's error.
            OSError: The mark file cannot be read.
        """
        where = mark_directory(storage, name, self.error)
        try:
            file = where.open(name, read_only=True)
        except FileNotFoundError:
            # Files that were copied here: nothing has run on them.
            yield
            return
        with closing(file):
            self.lock(file, where.describe(name))
            self.check_idle(file.read(0, TEXTS_OFFSET), where, name, now_ms, LIVENESS_TIMEOUT_MS)
            yield


class MarkFile(Generic[F]):
    """The mark file of a program that runs: taken with the constructor, shown with :meth:`ready`.

    Raises:
        HeadraceError: Another program runs on the directory, or the file is not ours to use; the layout's error.
        OSError: The disk refuses something.
    """

    _version: int

    def __init__(
        self,
        layout: MarkLayout[F],
        storage: Storage,
        name: str,
        *,
        error_buffer_length: int,
        now_ms: int,
        liveness_timeout_ms: int,
        elsewhere: str | os.PathLike[str] | None,
    ) -> None:
        self.old_errors = b""
        """The error log of the program before this one, to be saved before :meth:`clear_errors`."""
        self._file = _CLOSED
        try:
            with new_mark_directory(
                storage, name, elsewhere, layout.error, lambda: layout.idle(storage, name, now_ms)
            ) as where:
                self.path = where.describe(name)
                length = align(HEADER_LENGTH + error_buffer_length, _PAGE_LENGTH)
                self._file = _opened(where, name, length)
                layout.lock(self._file, self.path)
                header = self._file.read(0, HEADER_LENGTH)
                if layout.is_header(header):
                    layout.check_idle(header, where, name, now_ms, liveness_timeout_ms)
                    old = layout.numbers(header)
                    self._take_over(header, old)
                    self._keep_errors(old)
                self._begin(now_ms)
                self._file.set_length(length)
        except BaseException:
            self._file.close()
            raise

    def _take_over(self, header: bytes, old: F) -> None:
        """Look at the program before this one."""

    def _begin(self, now_ms: int) -> None:
        """Say that the program starts."""
        self.update(now_ms)

    def _keep_errors(self, old: F) -> None:
        if old.header_length == HEADER_LENGTH:
            # No longer than the file, whatever a damaged header says, and no shorter than nothing.
            length = min(old.error_buffer_length, self._file.length() - HEADER_LENGTH)
            self.old_errors = self._file.read(HEADER_LENGTH, max(length, 0))

    def clear_errors(self) -> None:
        """Begin with an empty error buffer."""
        self._file.write(HEADER_LENGTH, bytes(self._file.length() - HEADER_LENGTH))

    def ready(self, now_ms: int) -> None:
        """Say that the program runs."""
        self.update(now_ms)
        self._write_version(self._version)
        self._file.sync(_FULL_SYNC)

    def _write_version(self, version: int) -> None:
        self._file.write(_VERSION_OFFSET, _INT.pack(version))

    def update(self, now_ms: int) -> None:
        """Say that the program still runs."""
        self._file.write(_ACTIVITY_OFFSET, _LONG.pack(now_ms))

    def write_errors(self, offset: int, data: bytes) -> None:
        """Write into the error buffer."""
        self._file.write(HEADER_LENGTH + offset, data)

    def forget(self) -> None:
        """Close the file and change nothing in it, as a kill would: in a forked child it is the parent's."""
        file, self._file = self._file, _CLOSED
        file.close()

    def close(self) -> None:
        """Say that the program stopped in order. Closing again does nothing."""
        try:
            self._file.write(_ACTIVITY_OFFSET, _LONG.pack(NULL_VALUE))
            self._file.sync(_FULL_SYNC)
        finally:
            self.forget()


def _opened(storage: Storage, name: str, length: int) -> StorageFile:
    try:
        return storage.create(name, length)
    except FileExistsError:
        return storage.open(name)


class _ClosedFile:
    """Takes the place of the file once it is closed, so that a late update does no harm."""

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Does nothing."""

    def sync(self, level: int) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


_CLOSED: StorageFile = _ClosedFile()  # type: ignore[assignment]
