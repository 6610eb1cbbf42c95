"""`headrace completion`: what makes a shell complete the command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_SHELLS = ["bash", "zsh", "fish"]


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the script with which a shell completes this command's names and options.

    \b
    Examples:
      headrace completion bash >> ~/.bashrc
      headrace completion zsh >> ~/.zshrc
      headrace completion fish > ~/.config/fish/completions/headrace.fish
    """
    root = click.get_current_context().find_root()
    kind = get_completion_class(shell)
    assert kind is not None, f"click completes {shell}"
    click.echo(kind(root.command, {}, "headrace", "_HEADRACE_COMPLETE").source())
