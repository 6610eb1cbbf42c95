"""The errors of an archive's files."""

from __future__ import annotations

from headrace._agent.errors import ArchiveFileError

__all__ = ["ArchiveFileError", "CatalogError", "MarkFileError", "SegmentError"]


class CatalogError(ArchiveFileError):
    """The catalog cannot be used; the text names the place and the reason."""


class MarkFileError(ArchiveFileError):
    """The mark file cannot be used, or another archive is running on the directory."""


class SegmentError(ArchiveFileError):
    """A segment file is missing, too short or damaged."""
