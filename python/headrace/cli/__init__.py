"""The `headrace` command.

One module for each subcommand. What they share: `options` (the options that mean the same everywhere), `output`
(tables that redraw, lines of JSON), `lifecycle` (how a command ends and with which exit status).
"""

from __future__ import annotations

import sys
from typing import NoReturn

from headrace._base.exceptions import MissingExtraError
from headrace._base.extras import needs

__all__ = ["main"]


def main() -> NoReturn:
    """Entry point of the `headrace` command, which needs more than the package does."""
    try:
        with needs("cli"):
            from headrace.cli import app
    except MissingExtraError as missing:
        sys.exit(f"error: {missing}")
    app.main()
