"""A client on our driver and one on the Java driver, and what the drivers count."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

import pytest
from benches.processes import JavaPeer

import headrace
from headrace.tools import stream_key
from tests.interop.conftest import our_driver_process

Pair = dict[str, headrace.Client]
_numbers = count(1)
SENDS = pytest.mark.parametrize("sends", ["ours", "java"])


@contextmanager
def driver_pair(java: JavaPeer, ours: dict[str, str], theirs: dict[str, str]) -> Iterator[Pair]:
    """Clients by the make of their driver, each with its settings."""
    name = f"interop-pair-{next(_numbers)}"
    with ExitStack() as stack:
        directories = {
            "ours": stack.enter_context(our_driver_process(f"{name}-ours", properties=ours)),
            "java": stack.enter_context(java.driver(f"{name}-java", "SHARED", theirs)),
        }
        yield {
            make: stack.enter_context(headrace.Client.connect(directory=directory))
            for make, directory in directories.items()
        }


def ends(pair: Pair, sends: str) -> tuple[headrace.Client, headrace.Client]:
    """The client that publishes and the one that subscribes."""
    return pair[sends], pair["java" if sends == "ours" else "ours"]


def counted(client: headrace.Client, label: str) -> int:
    """What a driver counts under a label."""
    (value,) = [record.value for record in client.counters if record.label == label]
    return value


def position(client: headrace.Client, type_id: int, publication: headrace.Publication) -> int:
    """The value of the publication's counter of this type, on either side."""
    (value,) = [
        record.value
        for record in client.counters
        if record.type_id == type_id
        and (key := stream_key(record)) is not None
        and key.session_id == publication.session_id
    ]
    return value
