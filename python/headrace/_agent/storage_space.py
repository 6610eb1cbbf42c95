"""Is the disk full?"""

from __future__ import annotations

import errno

__all__ = ["is_out_of_space"]


def is_out_of_space(failure: BaseException) -> bool:
    """True for errors that report a lack of room, of the disk or of a quota."""
    return isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT)
