"""Stand-ins for what a driver would give, so that sessions run against a clock that a test moves."""

import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from headrace import ConfigError, HeadraceError, OfferResult
from headrace._base.states import NoEvents
from headrace.archive.files.frames import frames_in, read_frame
from headrace.archive.protocol.messages import Message, decode

_Added = TypeVar("_Added")


class FakePending(Generic[_Added]):
    """What the driver adds when the test lets it, which by default is at once, or what it says instead."""

    def __init__(self, added: _Added, *, is_ready: bool = True) -> None:
        self.added = added
        self.is_ready = is_ready
        self.refusal: HeadraceError | None = None
        self.is_cancelled = False

    def poll(self) -> _Added | None:
        if self.refusal is not None:
            raise self.refusal
        return self.added if self.is_ready else None

    def cancel(self) -> None:
        self.is_cancelled = True


class FakePublication:
    """Takes messages while it is connected and open."""

    def __init__(self, session_id: int = 7, stream_id: int = 20) -> None:
        self.channel = "aeron:ipc"
        self.session_id = session_id
        self.stream_id = stream_id
        self.registration_id = 4711
        self.max_message_length = 8192
        self.is_connected = True
        self.available_window = 1 << 20
        self.refusal: OfferResult | None = None
        self.sent: list[Message] = []
        self.blocks: list[bytes] = []
        self.paddings: list[int] = []
        self.events: list[str] = []

    def offer(self, data: bytes) -> int | OfferResult:
        if not self.is_connected:
            return OfferResult.NOT_CONNECTED
        if self.refusal is not None:
            return self.refusal
        message = decode(data)
        assert message is not None
        self.sent.append(message)
        return 64 * len(self.sent)

    def offer_recorded(
        self, read: Callable[[memoryview, memoryview], int], length: int, within: int
    ) -> SimpleNamespace | OfferResult:
        if self.refusal is not None:
            return self.refusal
        header, rest = bytearray(32), bytearray(length - 32)
        filled = read(memoryview(header), memoryview(rest))
        block, at = (header + rest)[:filled], 0
        for offset, frame in frames_in(block):
            at = offset
            if offset >= within or offset + frame.span > len(block) or frame.is_padding:
                break
            struct.pack_into("<ii", block, offset + 12, self.session_id, self.stream_id)
            at = offset + frame.span
        self.blocks.append(bytes(block[:at]))
        next_frame = read_frame(block, at) if at < min(within, len(block)) else None
        padding = next_frame.length if next_frame is not None and next_frame.is_padding else 0
        is_malformed = next_frame is not None and next_frame.length < len(header)
        return SimpleNamespace(length=at, padding=padding, is_malformed=is_malformed)

    def append_padding(self, length: int) -> int | OfferResult:
        if length > self.max_message_length:
            raise ConfigError(f"length={length} is too long")
        self.paddings.append(length)
        return 64

    def names(self) -> list[str]:
        return [type(message).__name__ for message in self.sent]

    def revoke(self) -> None:
        self.events.append("revoke")

    def close(self) -> None:
        self.events.append("close")


class FakeCounter:
    """A number."""

    def __init__(self) -> None:
        self.value = 0
        self.reference_id = 0
        self.is_closed = False

    def set_reference_id(self, reference_id: int) -> None:
        self.reference_id = reference_id

    def close(self) -> None:
        self.is_closed = True


class FakeImage:
    """Gives blocks of frames, one a poll, then ends."""

    def __init__(self, blocks: list[tuple[bytes, int]] | None = None) -> None:
        self.blocks = blocks or []
        self.term_length = 64 * 1024
        self.session_id = 5
        self.stream_id = 1001
        self.source_identity = "aeron:ipc"
        self.is_closed = False
        self.is_end_of_stream = False

    def block_poll(
        self, handler: Callable[[memoryview, int, int, int], object], limit: int, *, view: bool
    ) -> int:
        if not self.blocks:
            return 0
        block, length = self.blocks[0]
        handler(memoryview(block), self.session_id, 0, 0)
        del self.blocks[0]
        return length


class FakeLog:
    """Keeps what an archive tells of itself, by severity."""

    def __init__(self) -> None:
        self.infos: list[str] = []
        self.warnings: list[str] = []
        self.errors: list[str] = []

    def info(self, text: str) -> None:
        self.infos.append(text)

    def warning(self, text: str, detail: str = "") -> None:
        self.warnings.append(f"{text}: {detail}" if detail else text)

    def error(self, text: str, cause: BaseException | None = None, detail: str = "") -> None:
        self.errors.append(f"{text}: {detail}" if detail else text)


class Heard:
    """What a recording session said."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def on_started(self, session: object) -> None:
        self.events.append("started")

    def on_progress(self, session: object) -> None:
        self.events.append("progress")

    def on_stopped(self, session: object) -> None:
        self.events.append("stopped")


def begun(session: Any) -> Any:
    """One whose changes no one hears of."""
    session.life.begin(NoEvents(), "a test", 0)
    return session
