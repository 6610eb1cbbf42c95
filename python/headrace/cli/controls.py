"""Log lines on a terminal, in which texts of strangers control nothing."""

from __future__ import annotations

import logging

from headrace._base.control_characters import shown


class ShownFormatter(logging.Formatter):
    """Log lines as `shown` gives them."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        return shown(super().format(record))
