"""The loggers of the package.

No handler is added to them. A program that sets up ``logging`` decides about all of them. In a program that does not,
Python itself writes warnings and errors to stderr and leaves the rest out: a fault that no caller is told of is never
lost, and nothing else is printed.

No event is logged for a message, a fragment or a packet.

Each entry is one line, but for a traceback: what other programs sent, such as a receiver's reason to reject a stream,
can neither forge a line nor control a terminal.
"""

from __future__ import annotations

import logging

from headrace._base.control_characters import shown_in_line

__all__ = ["ARCHIVE", "CLIENT", "CLUSTER", "DRIVER", "RPC"]

CLIENT = logging.getLogger("headrace.client")
"""Clients: connected, closed, driver lost, images that came and went, settings that look wrong, faults."""

DRIVER = logging.getLogger("headrace.driver")
"""Drivers in this process: started with which settings, closed, failed, and what their error log tells."""

ARCHIVE = logging.getLogger("headrace.archive")
"""Archives in this process, and what their clients ask of them."""

CLUSTER = logging.getLogger("headrace.cluster")
"""Members of clusters in this process, their services, and what clients and clusters say to each other."""

RPC = logging.getLogger("headrace.rpc")
"""Servers in this process: what their handlers raised, with the traceback."""


class _InOneLine(logging.Filter):
    """Shows the control characters in what an entry is made of."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true: the entry is changed, and none is left out."""
        if isinstance(record.args, tuple):
            record.args = tuple(map(_cleaned, record.args))
        return True


def _cleaned(value: object) -> object:
    return shown_in_line(str(value)) if isinstance(value, str | BaseException) else value


for _logger in (CLIENT, DRIVER, ARCHIVE, CLUSTER, RPC):
    _logger.addFilter(_InOneLine())
