"""Which crate and which room of the Python package may use which. `scripts/tidy.py` checks it."""

from __future__ import annotations

CRATE_MAY_USE = {
    "sys": set(),
    "buffers": {"sys"},
    "protocol": {"buffers"},
    "driver": {"buffers", "sys", "protocol"},
    "recording": {"buffers"},
    "client": {"buffers", "sys", "protocol", "recording"},
    "sim": {"buffers", "sys", "protocol", "driver", "client"},
    "python": {"buffers", "sys", "protocol", "driver", "recording", "client", "sim"},
}
# What a room of the Python package may import, lowest room first. "base" is every module that stands directly in
# headrace/ and is in no other room; it and the room itself go without saying.
PYTHON_ROOMS = {
    "headrace.aio": "client",
    "headrace": "headrace",
    "headrace.__main__": "cli",
    # What others see of the archive's files.
    "headrace.archive.files": "archive",
}
PYTHON_MAY_USE: dict[str, set[str]] = {
    "base": set(),
    "cnc": set(),
    "sbe": set(),
    "security": set(),
    "core": set(),
    "event_log": {"core", "cnc"},
    "client": {"core"},
    "rpc": {"client"},
    "driver": {"core", "client", "cnc", "event_log"},
    "archive.errors": set(),
    "archive.protocol": {"archive.errors", "sbe"},
    "archive.files": {"archive.errors", "archive.protocol", "client", "cnc"},
    "archive.client": {"archive.protocol", "client", "security"},
    "archive.server": {
        "archive.errors",
        "archive.protocol",
        "archive.files",
        "archive.client",
        "client",
        "cnc",
        "event_log",
        "security",
    },
    "archive": {
        "archive.errors",
        "archive.protocol",
        "archive.files",
        "archive.client",
        "archive.server",
        "client",
        "driver",
    },
    "cluster.files": {"archive.files", "archive", "sbe"},
    "cluster.ground": {
        "cluster.files",
        "archive",
        "archive.client",
        "archive.files",
        "archive.protocol",
        "archive.server",
        "client",
    },
    "cluster.client": {"cluster.files", "client", "security"},
    "cluster.service": {"cluster.files", "cluster.ground", "archive.client", "archive.files", "client"},
    "cluster.objects": {"cluster.files", "cluster.client", "cluster.service", "client"},
    "cluster.member": {
        "cluster.files",
        "cluster.ground",
        "archive",
        "archive.client",
        "archive.files",
        "archive.server",
        "client",
        "event_log",
        "security",
    },
    "cluster": {
        "cluster.files",
        "cluster.ground",
        "cluster.client",
        "cluster.service",
        "cluster.member",
        "archive",
        "archive.server",
        "client",
        "cnc",
        "driver",
        "security",
    },
    "tools": {"cnc", "event_log", "archive"},
    "spark": {"archive", "client", "cluster.files", "driver", "sbe", "security", "tools"},
    "headrace": {
        "core",
        "client",
        "rpc",
        "driver",
        "event_log",
        "sbe",
        "security",
        "archive",
        "cluster",
        "tools",
        "spark",
        "testing",
    },
    "testing": {"core", "client", "event_log", "headrace", "archive", "archive.files", "archive.server"},
    "cli": {"headrace", "archive", "cluster", "cluster.files", "cnc", "event_log", "security", "tools"},
    "demo": {"headrace", "tools", "cli"},
}
# Imports that lead back up, each with its reason. No other may: modules form no circle.
PYTHON_WAYS_BACK = {
    # asyncio is loaded by programs that await something, and by no other.
    ("headrace._closing", "headrace.aio"),
    # pyarrow, in the same way; and names for annotations.
    ("headrace.sbe._arrow", "headrace.sbe._codec"),
    ("headrace.sbe._arrow", "headrace.sbe._select"),
    ("headrace.sbe._select", "headrace.sbe._codec"),
}
CLUSTER_FILES = ("directory", "errors", "log", "mark_file", "node_state", "protocol")
"""Modules and folders that make the room cluster.files: what tools need, and a member stands on."""
