"""The default name of a client, which the tools show."""

from __future__ import annotations

import os
import sys
from pathlib import PurePath

__all__ = ["program_name"]

# As the label of a counter takes it, with room for the process id.
_LENGTH_MAX = 80


def program_name() -> str:
    """The program and the process, as in ``ticker.py pid=4711``: printable ASCII of at most 100 characters."""
    # Programs that embed Python may have none, or something else there.
    arguments = getattr(sys, "argv", None) or [""]
    path = PurePath(arguments[0] if isinstance(arguments[0], str) else "")
    # `python -m package` has the path of that module, or for a moment none.
    name = path.parent.name if path.name == "__main__.py" else path.name
    if name in ("", "-c", "-m", "-"):
        name = "python"
    printable = "".join(letter if " " <= letter <= "~" else "?" for letter in name)
    return f"{printable[:_LENGTH_MAX]} pid={os.getpid()}"
