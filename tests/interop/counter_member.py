"""A member in Python with the service of `java/CounterService.java`, which takes the same properties and says the same.

usage: python -m tests.interop.counter_member node|module|container PROPERTY=VALUE...

A module has its service in another process, and a container is that one. Prints READY once it runs, and a line for what
befalls its service; ends with a signal, or when the cluster ends. At SIGQUIT it prints its stacks, as a JVM does.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import headrace
from headrace.archive import ArchiveConfig
from headrace.cluster import (
    ClientSession,
    CloseReason,
    Cluster,
    ClusterNode,
    ConsensusModuleConfig,
    ContainerConfig,
    Role,
    ServiceContainer,
)
from tests.interop.counter_service import Counter

_PLACES = ("aeron.archive.dir", "aeron.cluster.dir")


def say(*words: str) -> None:
    """Print a line. Each is one write, since two threads print: of `print`, the words of one come between another's."""
    sys.stdout.write(f"{' '.join(words)}\n")
    sys.stdout.flush()


class Telling(Counter):
    """Says what befalls it."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        super().on_start(cluster, snapshot)
        say("STARTED", self.state)

    def on_session_open(self, session: ClientSession, timestamp: int) -> None:
        say("OPENED")

    def on_session_close(self, session: ClientSession, timestamp: int, reason: CloseReason) -> None:
        say("CLOSED", reason.name)

    def on_role_change(self, role: Role) -> None:
        say(role.name)

    def on_take_snapshot(self) -> Iterable[bytes]:
        say("SNAPSHOT", self.state)
        return super().on_take_snapshot()

    def on_terminate(self, cluster: Cluster) -> None:
        say("TERMINATED", self.state)


def told(text: str) -> None:
    """Say what goes wrong."""
    say("ERROR", text)


def run_node(properties: dict[str, str], *services: Telling) -> None:
    """A node; its services are elsewhere if there are none."""
    of = {
        part: {
            name: value
            for name, value in properties.items()
            if name.startswith(f"aeron.{part}.") and name not in _PLACES
        }
        for part in ("archive", "cluster")
    }
    with (
        headrace.MediaDriver(
            directory=properties["aeron.dir"],
            threading_mode="SHARED",
            dir_delete_on_start=True,
            dir_delete_on_shutdown=True,
        ) as driver,
        ClusterNode(
            *services,
            service_count=1,
            directory=Path(properties["aeron.cluster.dir"]).parent,
            driver=driver,
            archive_settings=ArchiveConfig.from_properties(of["archive"]),  # type: ignore[arg-type]
            authorisation="ALLOW_ALL",
            on_error=told,
            **ConsensusModuleConfig.from_properties(of["cluster"]),
        ) as node,
    ):
        say("READY")
        node.wait()


def run_container(properties: dict[str, str]) -> None:
    """A container, on the driver of a module."""
    known = ContainerConfig.property_names()
    of = {name: value for name, value in properties.items() if name in known}
    with ServiceContainer(Telling(), properties=of, on_error=told) as container:
        say("READY")
        container.join()


def main(what: str, properties: dict[str, str]) -> None:
    """One of them, until a signal, or the end of the cluster."""
    headrace.exit_on_sigterm()
    faulthandler.register(signal.SIGQUIT, all_threads=True)
    if what == "container":
        run_container(properties)
    else:
        run_node(properties, *([Telling()] if what == "node" else []))
    say("ENDED")


if __name__ == "__main__":
    main(sys.argv[1], dict(word.split("=", 1) for word in sys.argv[2:]))  # type: ignore[arg-type]
