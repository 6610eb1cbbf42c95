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
from headrace.cli.driver import PropertyType, allow_unknown_option, check_threads
from headrace.cli.lifecycle import Stop, ends_in_time, until_stopped
from headrace.cli.properties import named_by_property

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace import MediaDriver
    from headrace.archive import ArchiveServer
    from headrace.cluster import ClusteredService, ConsensusModuleConfig, ServiceContainer

_MODULE, _CONTAINER, _ARCHIVE, _DRIVER = "consensus module", "services", "archive", "driver"
# Each container has its own of these, whatever a property says.
_SNAPSHOT_STREAM, _SERVICE_ID = "aeron.cluster.snapshot.stream.id", "aeron.cluster.service.id"
# What a member must be told.
_EXAMPLES = {
    "aeron.cluster.members": "0,localhost:9002,localhost:9003,localhost:9004,localhost:9005,localhost:8010",
    "aeron.cluster.ingress.channel": "aeron:udp",
}


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

    Without --driver it uses the driver of --dir, without --archive an archive on that driver, without --service
    services in processes of their own. Settings come from defaults, then the environment (AERON_CLUSTER_...), then -D,
    then the other options; a later one overrides an earlier one. When an operator ends the cluster, or a part fails,
    the process ends with exit status 1; the mark file in aeron.cluster.dir says why. SIGTERM and Ctrl-C before the
    member is open end the process with 143 and 130.

    \b
    Examples:
      headrace cluster node --driver --archive --service prices:OrderBook -D aeron.cluster.ingress.channel=aeron:udp \\
        -D aeron.cluster.members=0,localhost:9002,localhost:9003,localhost:9004,localhost:9005,localhost:8010
    """
    log = logging.StreamHandler()
    log.setFormatter(ShownFormatter("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[log])
    made = [_service(name) for name in services]
    with until_stopped() as stop, ends_in_time(stop), contextlib.ExitStack() as held:
        kinds = {
            _MODULE: True,
            _CONTAINER: bool(services),
            _ARCHIVE: with_archive,
            _DRIVER: with_driver,
        }
        parts = {kind for kind, is_run in kinds.items() if is_run}
        node = _Node(directory, _shared(dict(settings), parts, allow_unknown), made, held)
        node.check()
        node.open()
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
        properties: Of each part that runs here.
        services: The services that run here.
        held: Closes what is opened, last to first.
    """

    def __init__(
        self,
        directory: Path | None,
        properties: dict[str, dict[str, str]],
        services: list[ClusteredService],
        held: contextlib.ExitStack,
    ) -> None:
        self._directory = directory
        self._properties = properties
        self._services = services
        self._held = held
        self._driver: MediaDriver | None = None
        self._archive: ArchiveServer | None = None
        self._containers: list[ServiceContainer] = []

    def check(self) -> None:
        """Look at the settings of all parts but the driver, which looks at its own first of all.

        Raises:
            ConfigError: One is wrong; nothing is made.
        """
        from headrace.archive import ArchiveConfig
        from headrace.cluster import ConsensusModuleConfig, ContainerConfig

        if _ARCHIVE in self._properties:
            with named_by_property(ArchiveConfig):
                ArchiveConfig.of(**self._archive_settings())
        with named_by_property(ConsensusModuleConfig, _EXAMPLES):
            module = ConsensusModuleConfig.of(**self._module_settings())
        for service_id in range(len(self._services)):
            with named_by_property(ContainerConfig):
                ContainerConfig.of(**self._container_settings(service_id, module))

    def open(self) -> None:
        """Start all parts."""
        from headrace import MediaDriver
        from headrace.archive import ArchiveServer
        from headrace.cluster import ConsensusModule, ServiceContainer

        if _DRIVER in self._properties:
            check_threads(self._properties[_DRIVER])
            self._driver = self._held.enter_context(
                MediaDriver(directory=self._directory, properties=self._properties[_DRIVER])
            )
        if _ARCHIVE in self._properties:
            self._archive = self._held.enter_context(
                ArchiveServer(is_invoked=True, **self._where, **self._archive_settings())
            )
        self.module = self._held.enter_context(
            ConsensusModule(is_invoked=True, **self._where, **self._module_settings())
        )
        for service_id, service in enumerate(self._services):
            settings = self._container_settings(service_id, self.module.config)
            container = ServiceContainer(service, is_invoked=True, **self._where, **settings)
            self._containers.append(self._held.enter_context(container))

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

    def _archive_settings(self) -> dict[str, Any]:
        properties = self._properties[_ARCHIVE]
        values: dict[str, Any] = {} if is_control_given(properties) else {"control_channel_enabled": False}
        return {"properties": properties, **values}

    def _module_settings(self) -> dict[str, Any]:
        return {"properties": self._properties[_MODULE], "service_count": len(self._services) or None}

    def _container_settings(self, service_id: int, module: ConsensusModuleConfig) -> dict[str, Any]:
        return {
            "properties": self._properties[_CONTAINER],
            "service_id": service_id,
            "cluster_directory": module.services_directory or module.cluster_directory,
            "app_version": module.app_version,
        }

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
