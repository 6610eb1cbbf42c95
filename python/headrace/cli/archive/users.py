"""`headrace archive users`: the file of users that an archive authenticates its clients by."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headrace._base.control_characters import shown
from headrace.cli.lifecycle import FAILED

_FILE = click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))


@click.group("users")
def users_group() -> None:
    """Add, list and remove users in a file of users.

    An archive uses the file with -D aeron.archive.authenticator.supplier=users-file:FILE. The archive
    reads a changed file when the next client connects. It ends the sessions of a user that is
    removed, or gets another secret, within two seconds.
    """


@users_group.command("add")
@_FILE
@click.argument("name")
def add_command(path: Path, name: str) -> None:
    """Add user NAME to FILE, or give the user another secret.

    Asks for the secret twice; if stdin is not a terminal, reads it from the first line of stdin.

    \b
    Examples:
      headrace archive users add /etc/headrace/users alice
      generate-secret | headrace archive users add /etc/headrace/users alice
    """
    from headrace.security import UsersFile

    users = UsersFile(path)
    if sys.stdin is None:
        raise OSError("stdin is closed: the secret cannot be read from it")
    if sys.stdin.isatty():
        secret = click.prompt("Secret", hide_input=True, confirmation_prompt=True, err=True)
    else:
        secret = sys.stdin.readline().rstrip("\r\n")
    users.put(name, secret)


@users_group.command("list")
@_FILE
def list_command(path: Path) -> None:
    """Print the name of each user, one a line."""
    from headrace.security import UsersFile

    for name in sorted(UsersFile(path).users()):
        click.echo(shown(name))


@users_group.command("remove")
@_FILE
@click.argument("name")
def remove_command(path: Path, name: str) -> None:
    """Remove user NAME from FILE.

    The archive ends the sessions and replays of the user within two seconds. Recordings and replications that the user
    started go on.
    """
    from headrace.security import UsersFile

    if not UsersFile(path).remove(name):
        click.echo(f"error: {path} has no user {shown(name)}", err=True)
        raise click.exceptions.Exit(FAILED)
