"""The calls that a service has carried out for each client, so that it carries out none twice. Part of its state."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ClientResults", "Results"]


@dataclass(slots=True)
class ClientResults:
    """The calls of one client.

    Attributes:
        oldest_id: The client has the answers to all calls before this one.
        answers: The answers, as sent, to the calls from `oldest_id` on that were carried out.
    """

    oldest_id: int = 1
    answers: dict[int, bytes] = field(default_factory=dict)

    def advance(self, oldest_id: int) -> None:
        """Forget the answers that the client has."""
        for command_id in [known for known in self.answers if known < oldest_id]:
            del self.answers[command_id]
        self.oldest_id = max(self.oldest_id, oldest_id)


class Results:
    """The calls of all clients, in the order in which the clients were last heard."""

    def __init__(self) -> None:
        self._clients: dict[bytes, ClientResults] = {}

    def open(self, client_id: bytes, clients_max: int) -> None:
        """Add a client. If there are too many, forget the one that was not heard for longest."""
        if client_id not in self._clients:
            while len(self._clients) >= clients_max:
                del self._clients[next(iter(self._clients))]
            self._clients[client_id] = ClientResults()

    def heard(self, client_id: bytes) -> ClientResults | None:
        """The calls of a client, which counts as heard now; ``None`` if it is not known."""
        calls = self._clients.pop(client_id, None)
        if calls is not None:
            self._clients[client_id] = calls
        return calls

    def close(self, client_id: bytes) -> None:
        """Forget a client."""
        self._clients.pop(client_id, None)

    def __len__(self) -> int:
        return len(self._clients)

    def stored(self) -> list[tuple[bytes, int, dict[int, bytes]]]:
        """All, for a snapshot."""
        return [(client_id, calls.oldest_id, calls.answers) for client_id, calls in self._clients.items()]

    def restore(self, stored: list[tuple[bytes, int, dict[int, bytes]]]) -> None:
        """All, from a snapshot."""
        self._clients = {
            client_id: ClientResults(oldest_id, answers) for client_id, oldest_id, answers in stored
        }
