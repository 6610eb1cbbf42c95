"""Groups of commands: modules load when their command is used, and a misspelt name is answered with the nearest."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

# A command of another group is offered only when it is spelt nearly the same: there are many of them.
_LIKENESS_WITHIN = 0.7


class LazyCommand(NamedTuple):
    """Where a subcommand is found, and its line of help."""

    module: str
    summary: str
    attribute: str = "command"
    is_group: bool = False


class LazyGroup(click.Group):
    """A group whose subcommands load when they are used: `headrace stat` needs no numpy."""

    def __init__(self, *args: Any, subcommands: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._subcommands = subcommands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help text."""
        return list(self._subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads a subcommand."""
        found = self._subcommands.get(cmd_name)
        if found is None:
            return None
        command: click.Command = getattr(importlib.import_module(found.module), found.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The names with their line of help, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in self._subcommands.items()])

    def _near(self, ctx: click.Context, name: str) -> list[str]:
        """What may have been meant: commands that are spelt nearly so, here or in a group that is here."""
        near = difflib.get_close_matches(name, self._subcommands)
        for group, found in self._subcommands.items():
            if found.is_group:
                command = self.get_command(ctx, group)
                assert isinstance(command, LazyGroup), f"{group} is said to be a group"
                within = difflib.get_close_matches(name, command._subcommands, n=1, cutoff=_LIKENESS_WITHIN)
                near += [f"headrace {group} {each}" for each in within]
        return near

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first argument, or an error that names the nearest ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchOption:
            raise
        except click.UsageError:
            near = self._near(ctx, args[0])
            if not near:
                raise
            names = " or ".join(f"`{name}`" for name in near)
            raise click.UsageError(f"No such command {args[0]!r}; did you mean {names}?", ctx) from None
