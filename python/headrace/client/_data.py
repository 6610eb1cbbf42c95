"""What may be sent as one message, for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The core's stub has it, and no module at run time.
    from headrace._core import _Data as Data

__all__ = ["Data"]
