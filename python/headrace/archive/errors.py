"""What can be wrong with an archive's files."""

from __future__ import annotations

from headrace._exceptions import HeadraceError

__all__ = ["ArchiveFileError", "CatalogError", "MarkFileError", "SegmentError"]


class ArchiveFileError(HeadraceError):
    """A file of an archive is damaged, missing, or used by another archive."""


class CatalogError(ArchiveFileError):
    """The catalog cannot be used; the text names the place and the reason."""


class MarkFileError(ArchiveFileError):
    """The mark file cannot be used, or another archive is running on the directory."""


class SegmentError(ArchiveFileError):
    """A segment file is missing, too short or damaged."""
