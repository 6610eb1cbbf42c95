"""A session with an archive, whose answers tasks can await."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from headrace._base.exceptions import ArchiveError
from headrace.archive.client.session_link import ArchiveLink

if TYPE_CHECKING:
    from headrace._agent.tasks import Task
    from headrace.archive import ArchiveClientConfig
    from headrace.archive.client.exchange import Steps
    from headrace.client import Client

__all__ = ["AskedArchive"]

R = TypeVar("R")


class AskedArchive(ArchiveLink):
    """A session with an archive. Its owner steps it each turn.

    Args:
        client: The client to use.
        config: Which archive.
        name: What errors call it.
    """

    def __init__(self, client: Client, config: ArchiveClientConfig, name: str) -> None:
        super().__init__(client, config)
        self._name = name
        self._timeout_s = config.message_timeout_s

    def _gone(self) -> ArchiveError:
        return ArchiveError(f"{self._name} is gone")

    def connected(self) -> Task[None]:
        """Wait until the archive takes requests; its owner steps it meanwhile.

        Raises:
            HeadraceError: The archive refuses the session, or does not answer.
        """
        while not self.is_ready:
            if self.failure is not None:
                raise self.failure
            yield

    def asked(self, what: Steps[R]) -> Task[R]:
        """Send a request, and return the archive's answer.

        Raises:
            ArchiveError: The archive refuses the request, or is gone.
        """
        if not self.is_ready:
            raise self._gone()
        exchange = self.ask(what)
        try:
            while not exchange.is_done:
                yield
        except GeneratorExit:
            self.forget(exchange)
            raise
        return self.answer(exchange)
