"""What archive, consensus module and container have in common: threads, a mark file, an end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import ArchiveServer, MediaDriver
from headrace._agent.agent import Agent
from headrace.archive.files.mark_file import ArchiveMarkFile
from headrace.cluster import ClusteredService, ConsensusModule, ServiceContainer
from headrace.cluster.files.mark_file import ClusterMarkFile
from tests.helpers import TIMEOUT_S, await_true


class Service(ClusteredService):
    pass


def archive(driver: MediaDriver, path: Path, on_error: Callable[[str], object]) -> Agent:
    return ArchiveServer(
        driver=driver, archive_directory=path, control_channel_enabled=False, on_error=on_error
    )


def module(driver: MediaDriver, path: Path, on_error: Callable[[str], object]) -> Agent:
    return ConsensusModule(
        driver=driver,
        cluster_directory=path,
        members="0,localhost:0,localhost:0,localhost:0,localhost:0,localhost:0",
        ingress_channel="aeron:ipc",
        on_error=on_error,
    )


def container(driver: MediaDriver, path: Path, on_error: Callable[[str], object]) -> Agent:
    return ServiceContainer(Service(), driver=driver, cluster_directory=path, on_error=on_error)


@pytest.mark.parametrize("make", [archive, module, container])
def test_an_agent_may_be_closed_from_its_own_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Agent]
) -> None:
    """Which runs its handlers: it ends after that turn, and a thread that waits for it is not left waiting."""
    agents: list[Agent] = []
    made, called, may_go_on = threading.Event(), threading.Event(), threading.Event()
    seen: list[tuple[str, bool]] = []

    def close(text: str) -> None:
        made.wait(TIMEOUT_S)
        agents[0].close()
        seen.append((text, agents[0].is_closed))
        called.set()
        may_go_on.wait(TIMEOUT_S)

    def refuse(*_: object) -> None:
        raise OSError("no room")

    with MediaDriver.embedded() as driver:
        agents.append(make(driver, tmp_path, close))
        monkeypatch.setattr(ArchiveMarkFile, "update", refuse)
        monkeypatch.setattr(ClusterMarkFile, "update", refuse)
        made.set()
        assert called.wait(TIMEOUT_S)
        closing = threading.Thread(target=agents[0].close)
        closing.start()
        may_go_on.set()
        closing.join()
        assert agents[0].is_closed
        assert agents[0].failure is None
        agents[0].close()
        # Its thread does it as well, when no other waits; who closes it meanwhile waits until that is done.
        monkeypatch.undo()
        agents.insert(0, make(driver, tmp_path, close))
        closes, may_close = agents[0]._close, threading.Event()

        def close_late() -> None:
            assert may_close.wait(TIMEOUT_S)
            closes()

        monkeypatch.setattr(agents[0], "_close", close_late)
        monkeypatch.setattr(ArchiveMarkFile, "update", refuse)
        monkeypatch.setattr(ClusterMarkFile, "update", refuse)
        await_true(lambda: agents[0].is_closed)
        may_close.set()
        agents[0].close()
        assert not any(one.is_alive() for agent in agents for one in agent._threads)
    text, was_closed_in_its_turn = seen[0]
    assert "cannot say in the mark file that this" in text
    assert not was_closed_in_its_turn
