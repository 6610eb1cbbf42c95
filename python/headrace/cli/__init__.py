"""The `headrace` command.

One module for each subcommand. What they share: `options` (the options that mean the same everywhere), `output`
(tables that redraw, lines of JSON), `lifecycle` (how a command ends and with which exit status).
"""

from headrace.cli.app import main

__all__ = ["main"]
