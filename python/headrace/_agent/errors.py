"""What can be wrong with the files of an agent."""

from __future__ import annotations

from headrace._base.exceptions import HeadraceError

__all__ = ["ArchiveFileError"]


class ArchiveFileError(HeadraceError):
    """A file of an archive is damaged, missing, or used by another archive."""
