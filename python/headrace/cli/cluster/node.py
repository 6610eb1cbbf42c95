"""`headrace cluster node`: a member of a cluster in a process of its own."""

from __future__ import annotations

import contextlib
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.archive import is_control_given
from headrace.cli.controls import ShownFormatter
from headrace.cli.driver import PropertyType, allow_unknown_option
from headrace.cli.lifecycle import Stop, until_stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace import MediaDriver
    from headrace.archive import ArchiveServer
    from headrace.cluster import ClusteredService, ConsensusModule, ServiceContainer

_MODULE, _CONTAINER, _ARCHIVE, _DRIVER = "consensus module", "services", "archive", "driver"
# Each container has its own of these, whatever a property says.
_SNAPSHOT_STREAM, _SERVICE_ID = "aeron.cluster.snapshot.stream.id", "aeron.cluster.service.id"


@click.command("node")
@options.directory_setting_option
@click.option(
    "--set",
    "-D",
    "settings",
    type=PropertyType(),
    multiple=True,
    help="A setting by its property name; repeatable.",
)
@click.option("--driver", "with_driver", is_flag=True, help="Also run a media driver, in the same process.")
@click.option("--archive", "with_archive", is_flag=True, help="Also run an archive, in the same process.")
@click.option(
    "--service",
    "-s",
    "services",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Also run a service, in the same process; repeatable, in the order of service ids. A function that gives a "
    "service may be named as well.",
)
@allow_unknown_option
@click.option("--quiet", "-q", is_flag=True, help="Print errors only.")
def node_command(
    directory: Path | None,
    settings: tuple[tuple[str, str], ...],
    with_driver: bool,
    with_archive: bool,
    services: tuple[str, ...],
    allow_unknown: bool,
    quiet: bool,
) -> None:
    """Run a member of a cluster until Ctrl-C or SIGTERM. Both stop it cleanly, with exit status 0.

    It uses the driver of --dir, and an archive on it; services may run in processes of their own. Settings come from
    defaults, then the environment (AERON_CLUSTER_...), then -D, then the other options; a later one overrides an
    earlier one. A cluster that an operator has shut down ends the process with exit status 1, and so does a failure;
    the mark file in aeron.cluster.dir says why.

    \b
    Examples:
      headrace cluster node --driver --archive --service prices:OrderBook -D aeron.cluster.ingress.channel=aeron:udp \\
        -D aeron.cluster.members=0,localhost:9002,localhost:9003,localhost:9004,localhost:9005,localhost:8010
    """
    log = logging.StreamHandler()
    log.setFormatter(ShownFormatter("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[log])
    made = [_service(name) for name in services]
    with until_stopped() as stop, contextlib.ExitStack() as held:
        kinds = {
            _MODULE: True,
            _CONTAINER: bool(services),
            _ARCHIVE: with_archive,
            _DRIVER: with_driver,
        }
        parts = {kind for kind, is_run in kinds.items() if is_run}
        node = _Node(directory, _shared(dict(settings), parts, allow_unknown), held)
        node.open(made, with_driver=with_driver, with_archive=with_archive)
        if not quiet:
            click.echo(
                f"member {node.module.config.member_id} in {node.module.directory}, driver in "
                f"{node.aeron_directory}; Ctrl-C ends it"
            )
        node.run(stop)
    if not quiet:
        click.echo("member stopped")


def service_maker(name: str) -> Callable[[], ClusteredService]:
    """What makes services of the class that `package.module:Class` names, after a look whether it can.

    Raises:
        ConfigError: There is no such class.
    """
    _service(name, "MODULE:CLASS")
    return lambda: _service(name, "MODULE:CLASS")


def _service(name: str, given_as: str = "--service") -> ClusteredService:
    """The service that `package.module:Class` names, looked for in the working directory too.

    Raises:
        ConfigError: There is none.
    """
    from headrace import ConfigError
    from headrace.cluster import ClusteredService
    from headrace.security.named import made_of_class

    if "" not in sys.path:
        sys.path.insert(0, "")
    service = made_of_class(given_as, name)
    if not isinstance(service, ClusteredService):
        rule = (
            "must be a subclass of headrace.cluster.ClusteredService, or a function that gives an instance of one; "
            f"around a replicated object: headrace.cluster.objects.ObjectService({type(service).__qualname__}())"
        )
        raise ConfigError(f"{given_as}={name}: {rule}", given_as, name, rule)
    return service


def _shared(properties: dict[str, str], parts: set[str], allow_unknown: bool) -> dict[str, dict[str, str]]:
    """The properties of each part; one that several know is for all of them.

    Raises:
        ConfigError: No part knows one.
    """
    from headrace import ConfigError, MediaDriver
    from headrace._declared import DeclaredConfig
    from headrace.archive import ArchiveConfig
    from headrace.cluster import ConsensusModuleConfig, ContainerConfig

    declared: dict[str, type[DeclaredConfig]] = {
        _MODULE: ConsensusModuleConfig,
        _CONTAINER: ContainerConfig,
        _ARCHIVE: ArchiveConfig,
    }
    known = {kind: set(config.property_names()) for kind, config in declared.items() if kind in parts}
    if _DRIVER in parts:
        known[_DRIVER] = set(MediaDriver.property_names())
    if _CONTAINER in parts:
        known[_CONTAINER] -= {_SNAPSHOT_STREAM, _SERVICE_ID}
    shared: dict[str, dict[str, str]] = {kind: {} for kind in parts}
    for name, value in properties.items():
        owners = [kind for kind in parts if name in known[kind]]
        for kind in owners:
            shared[kind][name] = value
        if not owners and not allow_unknown:
            what = " or ".join(sorted(parts))
            rule = f"is not a setting of the {what}; --allow-unknown passes it over"
            raise ConfigError(f"{name}={value}: {rule}", name, value, rule)
    return shared


class _Node:
    """The parts of the member, which take turns on this thread.

    Args:
        directory: The driver's, if one was given.
        properties: Of each part.
        held: Closes what is opened, last to first.
    """

    def __init__(
        self, directory: Path | None, properties: dict[str, dict[str, str]], held: contextlib.ExitStack
    ) -> None:
        self._directory = directory
        self._properties = properties
        self._held = held
        self._driver: MediaDriver | None = None
        self._archive: ArchiveServer | None = None
        self._containers: list[ServiceContainer] = []

    def open(self, services: list[ClusteredService], *, with_driver: bool, with_archive: bool) -> None:
        """Start all parts."""
        if with_driver:
            from headrace import MediaDriver

            self._driver = self._held.enter_context(
                MediaDriver(directory=self._directory, properties=self._properties[_DRIVER])
            )
        if with_archive:
            self._archive = self._held.enter_context(self._opened_archive())
        self.module = self._held.enter_context(self._opened_module(len(services)))
        for service_id, service in enumerate(services):
            self._containers.append(self._held.enter_context(self._opened_container(service, service_id)))

    @property
    def _where(self) -> dict[str, Any]:
        """On which driver a part runs."""
        if self._driver is not None:
            return {"driver": self._driver}
        return {"aeron_directory": self._directory}

    @property
    def aeron_directory(self) -> str:
        """The driver's."""
        return self.module._client.directory

    def _opened_archive(self) -> ArchiveServer:
        from headrace.archive import ArchiveServer

        properties = self._properties[_ARCHIVE]
        values: dict[str, Any] = {} if is_control_given(properties) else {"control_channel_enabled": False}
        return ArchiveServer(properties=properties, is_invoked=True, **self._where, **values)

    def _opened_module(self, service_count: int) -> ConsensusModule:
        from headrace.cluster import ConsensusModule

        return ConsensusModule(
            properties=self._properties[_MODULE],
            is_invoked=True,
            service_count=service_count or None,
            **self._where,
        )

    def _opened_container(self, service: ClusteredService, service_id: int) -> ServiceContainer:
        from headrace.cluster import ServiceContainer

        config = self.module.config
        return ServiceContainer(
            service,
            properties=self._properties[_CONTAINER],
            is_invoked=True,
            service_id=service_id,
            cluster_directory=config.services_directory or config.cluster_directory,
            app_version=config.app_version,
            **self._where,
        )

    def run(self, stop: Stop) -> None:
        """Give all parts their turns until stopped.

        Raises:
            ClusterError: The cluster was told to end.
            HeadraceError: A part cannot go on.
        """
        from headrace.cluster import ClusterError
        from headrace.cluster.turns import NodeTurns

        NodeTurns(self.module, self._archive, self._containers).run(lambda: stop.is_set)
        if self.module.has_terminated:
            raise ClusterError("the cluster has terminated: an operator asked for it")
