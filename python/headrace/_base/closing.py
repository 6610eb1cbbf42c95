"""What a ``with`` block closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["AsyncClosing", "Closing", "EitherClosing"]


class Closing(ABC):
    """A context manager that gives itself and closes itself."""

    @abstractmethod
    def close(self) -> None:
        """Give up what this holds. Closing again does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class EitherClosing(Closing):
    """A context manager whose ``close()`` blocks: ``async with`` closes it without blocking the event loop."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # asyncio is loaded by programs that await something, and by no other.
        from headrace._base.threads import run_in_thread

        await run_in_thread(self.close, lambda _: None)


class AsyncClosing(ABC):
    """An asynchronous context manager that gives itself and closes itself."""

    @abstractmethod
    async def close(self) -> None:
        """Give up what this holds. Closing again does nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
