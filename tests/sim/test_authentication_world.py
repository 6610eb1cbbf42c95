"""Clients of a simulated archive that asks who they are: over a bad network, in any order, by seed."""

from __future__ import annotations

import random
import threading

import pytest

import headrace
from headrace.archive import Archive, ArchiveError
from headrace.security import Accepted, Challenge, Rejected, Verdict
from headrace.testing import Link, World

pytestmark = pytest.mark.sim

BAD = Link(loss=0.03, duplicate=0.02, reorder=0.05, jitter_s=200e-6)
NAMES = ("alice", "bob", "carol")


class Book:
    """Users with secrets; those whose name is sent alone are asked to prove that they know theirs."""

    def __init__(self) -> None:
        self.secrets = {name: f"{name}'s secret" for name in NAMES}

    def on_connect(self, credentials: bytes) -> Verdict:
        name, colon, secret = credentials.decode().partition(":")
        if colon:
            return self._judge(name, secret)
        return Challenge(b"your secret?", lambda answer: self._judge(name, answer.decode()))

    def _judge(self, name: str, secret: str) -> Verdict:
        if self.secrets.get(name) != secret:
            return Rejected()
        return Accepted(name.encode(), lambda: self._recheck(name, secret))

    def _recheck(self, name: str, secret: str) -> Verdict:
        return self._judge(name, secret) if name in self.secrets else Rejected(f"user {name!r} was removed")


class Proof:
    """What a client sends that is to be asked."""

    def __init__(self, name: str, secret: str) -> None:
        self._name, self._secret = name, secret

    def encoded_credentials(self) -> bytes:
        return self._name.encode()

    def on_challenge(self, challenge: bytes) -> bytes:
        assert challenge == b"your secret?"
        return self._secret.encode()


class Clients:
    """A node with the archive and one with its clients; who is connected, and what must be true of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.book = Book()
        store, self.desk = world.add_node("store"), world.add_node("desk")
        self.server = store.run_archive(
            authenticator=self.book,
            control_channel="aeron:udp?endpoint=store:8010",
            low_storage_space_threshold=0,
        )
        world.set_links(BAD)
        self.sessions: dict[str, Archive] = {}
        self.done: list[str] = []

    def connect(self, credentials: bytes | Proof) -> Archive:
        return Archive.connect(
            self.desk.connect(),
            control_channel="aeron:udp?endpoint=store:8010",
            response_channel="aeron:udp?endpoint=desk:0",
            message_timeout_s=10,
            credentials=credentials,
        )

    def act(self, chance: random.Random) -> None:
        """One of the users comes, tries, is removed, or is put back."""
        name = chance.choice(NAMES)
        secret = f"{name}'s secret"
        is_right, is_asked = chance.random() < 0.6, chance.random() < 0.5
        sent = secret if is_right else "a guess"
        if chance.random() < 0.3:
            if name in self.book.secrets:
                del self.book.secrets[name]
                self.done.append(f"{name} is removed")
                self.world.run_for(3)
            else:
                self.book.secrets[name] = secret
                self.done.append(f"{name} is back")
        else:
            try:
                session = self.connect(Proof(name, sent) if is_asked else f"{name}:{sent}".encode())
            except headrace.AuthenticationError:
                assert not is_right or name not in self.book.secrets
                self.done.append(f"{name} is refused, asked={is_asked}")
            else:
                assert is_right
                assert name in self.book.secrets
                self.sessions[name] = session
                self.done.append(f"{name} is accepted, asked={is_asked}")
        self.check()

    def check(self) -> None:
        """Those who are accepted are served, and those who were removed are not."""
        for name, session in list(self.sessions.items()):
            if name in self.book.secrets:
                assert session.list_recordings() == []
            else:
                del self.sessions[name]
                with pytest.raises(ArchiveError):
                    session.list_recordings()


def run(seed: int) -> list[str]:
    """What happens with a seed."""
    before = set(threading.enumerate())
    with World(seed) as world:
        clients, chance = Clients(world), random.Random(seed)
        for _ in range(25):
            clients.act(chance)
        assert clients.server.failure is None
        assert set(threading.enumerate()) <= before
        return clients.done


@pytest.mark.parametrize("seed", range(4))
def test_users_are_served_while_they_are_in_the_book(seed: int) -> None:
    """With the right secret, sent or asked for, and no others; their sessions end when they are removed."""
    done = run(seed)
    assert {line.partition(" ")[2].partition(",")[0] for line in done} == {
        "is accepted",
        "is refused",
        "is removed",
        "is back",
    }


def test_the_same_seed_gives_the_same_run_of_an_authenticator() -> None:
    """An authenticator runs in the turn of an archive that a program steps."""
    assert run(7) == run(7)
