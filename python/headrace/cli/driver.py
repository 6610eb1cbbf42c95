"""`headrace driver`: a media driver in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import click

from headrace.cli import options
from headrace.cli.lifecycle import until_stopped

_CHECK_INTERVAL_S = 0.2
_MODES = ["DEDICATED", "SHARED_NETWORK", "SHARED"]
_MODE = "aeron.threading.mode"


class PropertyType(click.ParamType[tuple[str, str]]):
    """A setting as `name=value`."""

    name = "name=value"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """The name and the value."""
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            self.fail(
                f"{value!r} is not of the form name=value, as in aeron.term.buffer.length=64m", param, ctx
            )
        return name.strip(), text.strip()


property_option = click.option(
    "--set",
    "-D",
    "settings",
    type=PropertyType(),
    multiple=True,
    help="A setting by its property name; repeatable.",
)
allow_unknown_option = click.option(
    "--allow-unknown", is_flag=True, help="Ignore settings that no part of this process knows."
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print errors only.")


def known_settings(
    settings: Iterable[tuple[str, str]], known: Collection[str], *, allow_unknown: bool
) -> dict[str, str]:
    """What `-D` gave; without what nothing knows, if that is allowed, and else what takes them refuses it by name."""
    return {name: value for name, value in settings if not allow_unknown or name in known}


def check_threads(properties: Mapping[str, str]) -> None:
    """Refuse a driver that works only when its program calls it: a command does not.

    Raises:
        ConfigError: The mode is INVOKER, by ``-D`` or by the environment.
    """
    # Here for the same reason as in `command`.
    from headrace._base.checks import wrong

    mode = properties.get(_MODE, os.environ.get(_MODE.upper().replace(".", "_"), ""))
    if mode.strip().upper() == "INVOKER":
        rule = (
            "must be DEDICATED, SHARED_NETWORK or SHARED for a command; INVOKER is for programs that call "
            "driver.invoke()"
        )
        raise wrong(_MODE, mode, rule)


@click.command()
@options.directory_setting_option
@click.option(
    "--threading-mode",
    "-m",
    type=click.Choice(_MODES, case_sensitive=False),
    metavar=f"[{'|'.join(_MODES)}]",
    help="DEDICATED: a thread each for conductor, sender and receiver; SHARED_NETWORK: one for sender and receiver; "
    "SHARED: one for all three. A further thread makes and deletes logs.  "
    "[default: DEDICATED; fewer threads if the driver may use only some of the processors]",
)
@property_option
@click.option(
    "--delete-on-start",
    is_flag=True,
    help="Before starting, delete the directory and every file in it, even if another driver uses it.",
)
@click.option(
    "--delete-on-shutdown",
    is_flag=True,
    help="Delete the directory, and every file in it, when the driver stops.",
)
@allow_unknown_option
@quiet_option
def command(
    directory: Path | None,
    threading_mode: str | None,
    settings: tuple[tuple[str, str], ...],
    delete_on_start: bool,
    delete_on_shutdown: bool,
    allow_unknown: bool,
    quiet: bool,
) -> None:
    """Run a media driver until Ctrl-C or SIGTERM. Both stop it cleanly, with exit status 0.

    Settings come from defaults, then the environment (AERON_...), then -D, then the other options; a later one
    overrides an earlier one.

    \b
    Examples:
      headrace driver
      headrace driver --dir /dev/shm/mine --threading-mode SHARED --delete-on-shutdown
      headrace driver -D aeron.term.buffer.length=64m -D aeron.shared.idle.strategy=spin
    """
    # Here and not above: `headrace stat` and `--help` answer without loading the extension.
    from headrace import DriverError, MediaDriver

    properties = known_settings(settings, MediaDriver.property_names(), allow_unknown=allow_unknown)
    check_threads(properties if threading_mode is None else {_MODE: threading_mode})
    with until_stopped() as stop:
        with stop.while_starting():
            driver = MediaDriver(
                directory=directory,
                threading_mode=threading_mode,
                dir_delete_on_start=delete_on_start or None,
                dir_delete_on_shutdown=delete_on_shutdown or None,
                properties=properties,
            )
        with driver:
            if not quiet:
                mode = driver.chosen_threading or driver.settings[_MODE]
                click.echo(f"media driver in {driver.directory}; threading mode {mode}; Ctrl-C ends it")
            while not driver.is_terminated and not stop.wait(_CHECK_INTERVAL_S):
                pass
            failure = driver.failure
        if failure is not None:
            raise DriverError(failure)
        if not quiet:
            click.echo("media driver stopped")
