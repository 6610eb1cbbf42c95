"""Three processes of pysyncobj on this machine, as a peer of our cluster; only where it is installed."""

from __future__ import annotations

import importlib.util
import socket
from contextlib import ExitStack
from statistics import median

from benches.processes import background, output, python_peer

IN_FLIGHT = 1_000
WINDOWS = 4


def answered_by_syncobj() -> float | str:
    """Commands a second that three members commit and answer; or why that is not measured."""
    if importlib.util.find_spec("pysyncobj") is None:
        return "not measured: `pip install pysyncobj` first"
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(3)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    with ExitStack() as held:
        for own in addresses[1:]:
            others = [one for one in addresses if one != own]
            held.enter_context(background(python_peer("syncobj_peer.py", 0, 0, own, *others)))
        lines = output(python_peer("syncobj_peer.py", IN_FLIGHT, WINDOWS, *addresses))
    return median(int(count) * 1e9 / int(duration_ns) for count, duration_ns in map(str.split, lines[1:]))
