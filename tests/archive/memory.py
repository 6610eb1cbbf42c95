"""A disk in memory that can fill up."""

import errno

from headrace.archive.files.storage import StorageFile


class MemoryStorage:
    """Files as byte arrays. ``space`` bytes can be written before the disk is full."""

    def __init__(self, space: int = 1 << 40) -> None:
        self.files: dict[str, bytearray] = {}
        self.locked: set[str] = set()
        self.modified: dict[str, int] = {}
        self.space = space
        self.syncs: list[str] = []

    def names(self) -> list[str]:
        return sorted(self.files)

    def open(self, name: str, *, read_only: bool = False) -> StorageFile:
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", name)
        return MemoryFile(self, name)

    def create(self, name: str, length: int, *, may_exist: bool = False) -> StorageFile:
        if name in self.files and not may_exist:
            raise FileExistsError(errno.EEXIST, "exists", name)
        self.files.setdefault(name, bytearray())
        file = MemoryFile(self, name)
        file.set_length(length)
        return file

    def length(self, name: str) -> int | None:
        return len(self.files[name]) if name in self.files else None

    def modified_ms(self, name: str) -> int:
        return self.modified.get(name, 0)

    def delete(self, name: str) -> None:
        self.files.pop(name, None)

    def rename(self, name: str, new_name: str) -> None:
        self.files[new_name] = self.files.pop(name)

    def sync(self) -> None:
        self.syncs.append("directory")

    def room_for(self, name: str, length: int) -> int:
        """How many bytes of a write find a place."""
        return min(length, self.space)

    def on_written(self, name: str, offset: int, length: int) -> None:
        """For disks that want to know."""

    def on_synced(self, name: str, level: int) -> None:
        self.syncs.append(f"{name}:{level}")

    def has_hole(self, name: str, offset: int, length: int) -> bool:
        return False

    def usable_bytes(self) -> int:
        return self.space

    def describe(self, name: str = "") -> str:
        return f"memory/{name}"

    @property
    def event_directory(self) -> None:
        return None


class MemoryFile:
    """One of them."""

    def __init__(self, storage: MemoryStorage, name: str) -> None:
        self._storage = storage
        self._name = name
        self._data = storage.files[name]
        self._is_locked = False

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self._data[offset : offset + length])

    def read_into(self, offset: int, *buffers: memoryview) -> int:
        start = offset
        for buffer in buffers:
            data = self.read(offset, len(buffer))
            buffer[: len(data)] = data
            offset += len(data)
        return offset - start

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        room = self._storage.room_for(self._name, len(data))
        self._storage.space -= room
        end = offset + room
        if len(self._data) < end:
            self._data.extend(bytes(end - len(self._data)))
        self._data[offset:end] = bytes(data)[:room]
        self._storage.on_written(self._name, offset, room)
        if room < len(data):
            raise OSError(errno.ENOSPC, "no space left", self._name)

    def set_length(self, length: int) -> None:
        del self._data[length:]
        self._data.extend(bytes(length - len(self._data)))

    def length(self) -> int:
        return len(self._data)

    def sync(self, level: int) -> None:
        if level:
            self._storage.on_synced(self._name, level)

    def has_hole(self, offset: int, length: int) -> bool:
        return self._storage.has_hole(self._name, offset, length)

    def next_data(self, offset: int) -> int | None:
        return offset if offset < len(self._data) else None

    def try_lock(self) -> bool:
        if self._name in self._storage.locked:
            return False
        self._storage.locked.add(self._name)
        self._is_locked = True
        return True

    def close(self) -> None:
        if self._is_locked:
            self._storage.locked.discard(self._name)
