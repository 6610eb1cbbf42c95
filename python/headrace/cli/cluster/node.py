"""`headrace cluster node`: a member of a cluster in a process of its own."""

from __future__ import annotations

import contextlib
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from headrace.cli import options
from headrace.cli.archive import is_control_given
from headrace.cli.controls import ShownFormatter
from headrace.cli.driver import allow_unknown_option, check_threads, property_option, quiet_option
from headrace.cli.lifecycle import Stop, ends_in_time, until_stopped
from headrace.cli.properties import named_by_property, shared_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace import MediaDriver
    from headrace._settings.keywords import ArchiveSettings
    from headrace.archive import ArchiveServer
    from headrace.cluster import ClusteredService, ClusterNode, ConsensusModuleConfig, ServiceContainer

_MODULE, _CONTAINER, _ARCHIVE, _DRIVER = "consensus module", "services", "archive", "driver"
# Each container has its own of these, whatever a property says.
_SNAPSHOT_STREAM, _SERVICE_ID = "aeron.cluster.snapshot.stream.id", "aeron.cluster.service.id"
_MEMBERS, _MEMBER_ID = "aeron.cluster.members", "aeron.cluster.member.id"
_REPLACEMENT = "aeron.cluster.member.replacement"
# What a member must be told.
_EXAMPLES = {
    _MEMBERS: "alpha,beta,gamma",
    _MEMBER_ID: "1",
    "aeron.cluster.ingress.channel": "aeron:udp",
}


@click.command("node")
@click.argument(
    "node_directory",
    metavar="[DIRECTORY]",
    required=False,
    type=click.Path(file_okay=False, path_type=Path),
)
@click.option(
    "--members",
    help="The hosts of all members, such as alpha,beta,gamma, or a .toml file that lists them; see "
    "aeron.cluster.members in the settings.",
)
@click.option(
    "--member",
    "member_id",
    type=click.IntRange(min=0),
    help="Which of the members this is, counted from 0.  [default: the one whose host is this machine's name]",
)
@click.option(
    "--replacement",
    "is_replacement",
    is_flag=True,
    help="The member has lost its files: it neither votes nor stands until it has followed a leader.",
)
@options.directory_setting_option
@property_option
@click.option("--driver", "with_driver", is_flag=True, help="Also run a media driver, in the same process.")
@click.option("--archive", "with_archive", is_flag=True, help="Also run an archive, in the same process.")
@click.option(
    "--service",
    "-s",
    "services",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Also run a service, in the same process; repeatable, in the order of service ids. A function that returns "
    "a service works too.",
)
@allow_unknown_option
@quiet_option
def node_command(
    node_directory: Path | None,
    members: str | None,
    member_id: int | None,
    is_replacement: bool,
    directory: Path | None,
    settings: tuple[tuple[str, str], ...],
    with_driver: bool,
    with_archive: bool,
    services: tuple[str, ...],
    allow_unknown: bool,
    quiet: bool,
) -> None:
    """Run a member of a cluster until Ctrl-C or SIGTERM. Both stop it cleanly, with exit status 0.

    With a DIRECTORY the process runs the whole member: a driver, an archive, the consensus module and the services, and
    keeps its files there. Without one it runs the consensus module, and --driver, --archive and --service add the
    others; those that are not added run in other processes on the driver of --dir.

    Settings come from defaults, then the environment (AERON_CLUSTER_...), then -D, then the other options; a later one
    overrides an earlier one. When an operator ends the cluster, or a part fails, the process ends with exit status 1;
    the mark file in aeron.cluster.dir says why. SIGTERM and Ctrl-C before the member is open end the process with 143
    and 130.

    \b
    Examples:
      headrace cluster node /data/prices --members alpha,beta,gamma --service prices:OrderBook
      headrace cluster node --driver --archive --service prices:OrderBook --members localhost \\
        -D aeron.cluster.ingress.channel=aeron:udp
    """
    log = logging.StreamHandler()
    log.setFormatter(ShownFormatter("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[log])
    made = [_service(name) for name in services]
    properties = dict(settings)
    if members is not None:
        properties[_MEMBERS] = members
    if member_id is not None:
        properties[_MEMBER_ID] = str(member_id)
    if is_replacement:
        properties[_REPLACEMENT] = "true"
    with until_stopped() as stop, ends_in_time(stop), contextlib.ExitStack() as held:
        if node_directory is not None:
            if directory is not None or with_driver or with_archive:
                raise click.UsageError(
                    "a member in a DIRECTORY has its own driver and archive: leave out --dir, --driver and --archive"
                )
            shared = _shared(properties, {_MODULE, _ARCHIVE}, allow_unknown)
            node: _Parts | ClusterNode = held.enter_context(_whole(node_directory, shared, made))
        else:
            kinds = {
                _MODULE: True,
                _CONTAINER: bool(services),
                _ARCHIVE: with_archive,
                _DRIVER: with_driver,
            }
            shared = _shared(properties, {kind for kind, is_run in kinds.items() if is_run}, allow_unknown)
            node = _Parts(directory, shared, made, held)
            node.check()
            node.open()
        module = node.module
        if not quiet:
            where = f"member {module.config.member_id} in {module.directory}, driver in {module._client.directory}"
            click.echo(f"{where}; Ctrl-C ends it")
        _run(node, stop)
    if not quiet:
        click.echo("member stopped")


def _run(node: _Parts | ClusterNode, stop: Stop) -> None:
    """Give all parts their turns until stopped.

    Raises:
        ClusterError: The cluster was told to end.
        HeadraceError: A part cannot go on.
    """
    from headrace.cluster import ClusterError
    from headrace.cluster.node.turns import NodeTurns

    NodeTurns(node.module, node.archive, node.containers).run(lambda: stop.is_set)
    if node.module.has_terminated:
        raise ClusterError("the cluster has terminated: an operator requested it")


def _whole(
    directory: Path, properties: dict[str, dict[str, str]], services: list[ClusteredService]
) -> ClusterNode:
    """A node with all its parts."""
    from headrace.archive import ArchiveConfig
    from headrace.cluster import ClusterNode, ConsensusModuleConfig

    with named_by_property(ArchiveConfig), named_by_property(ConsensusModuleConfig, _EXAMPLES):
        archive = cast("ArchiveSettings", ArchiveConfig.from_properties(properties[_ARCHIVE]))
        module = ConsensusModuleConfig.from_properties(properties[_MODULE])
        return ClusterNode(
            *services, directory=directory, archive_settings=archive, is_invoked=True, **module
        )


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
    from headrace.security.plugins import made_of_class

    if "" not in sys.path:
        sys.path.insert(0, "")
    service = made_of_class(given_as, name)
    if not isinstance(service, ClusteredService):
        rule = (
            "must be a subclass of headrace.cluster.ClusteredService, or a function that returns an instance of one; "
            f"around a replicated object: headrace.cluster.objects.ObjectService({type(service).__qualname__}())"
        )
        raise ConfigError(f"{given_as}={name}: {rule}", given_as, name, rule)
    return service


def _shared(properties: dict[str, str], parts: set[str], allow_unknown: bool) -> dict[str, dict[str, str]]:
    """The properties of each part.

    Raises:
        ConfigError: No part knows one.
    """
    from headrace import MediaDriver
    from headrace._settings.declared import DeclaredConfig
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
    return shared_settings(properties, known, allow_unknown=allow_unknown)


class _Parts:
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
        self.archive: ArchiveServer | None = None
        self.containers: list[ServiceContainer] = []

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
            self.archive = self._held.enter_context(
                ArchiveServer(is_invoked=True, **self._where, **self._archive_settings())
            )
        self.module = self._held.enter_context(
            ConsensusModule(is_invoked=True, **self._where, **self._module_settings())
        )
        for service_id, service in enumerate(self._services):
            settings = self._container_settings(service_id, self.module.config)
            container = ServiceContainer(service, is_invoked=True, **self._where, **settings)
            self.containers.append(self._held.enter_context(container))

    @property
    def _where(self) -> dict[str, Any]:
        """On which driver a part runs."""
        if self._driver is not None:
            return {"driver": self._driver}
        return {"aeron_directory": self._directory}

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
