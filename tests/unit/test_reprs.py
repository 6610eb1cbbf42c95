"""Every public class prints what it is about, not where it lies in memory."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

import headrace
from tests.helpers import TIMEOUT_S

PACKAGES = (
    "headrace",
    "headrace.archive",
    "headrace.client",
    "headrace.cluster",
    "headrace.cluster.objects",
    "headrace.sbe",
    "headrace.testing",
    "headrace.tools",
)
# Protocols, what programs derive from, and parts that a program does not hold.
WITHOUT = {
    "Storage",
    "StorageFile",
    "CountersReader",
    "Watcher",
    "Checksum",
    "FrameWalk",
    "LogPlace",
    "Sequencer",
    "SessionSender",
    "SessionStreams",
    "Namespaces",
    "ClusteredService",
}


@pytest.mark.parametrize("package", PACKAGES)
def test_public_classes_print_well(package: str):
    module = importlib.import_module(package)
    classes = [getattr(module, name) for name in module.__all__ if isinstance(getattr(module, name), type)]
    assert classes
    bare = {each.__name__ for each in classes if each.__repr__ is object.__repr__}
    assert bare <= WITHOUT


def test_values_print_in_python():
    record = headrace.CounterRecord(0, 1, "Bytes sent", 5, 0, -1, 0, bytes(112))
    assert repr(record).endswith("value=5, registration_id=0, owner_id=-1, reference_id=0)")
    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
        _subscription = client.add_subscription("aeron:ipc", 10)
        publication = client.add_publication("aeron:ipc", 10)
        publication.wait_until_connected(timeout_s=TIMEOUT_S)
        taken = repr(publication.offer_batch([b"a"]))
    assert re.fullmatch(r"BatchResult\(accepted=1, requested=1, position=\d+, stopped_by=None\)", taken)


@pytest.mark.parametrize("name", ["aio", "archive", "sbe", "testing", "tools"])
def test_packages_are_there_without_an_import_of_their_own(name: str):
    program = f"import headrace; print(headrace.{name}.__name__)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == f"headrace.{name}\n", run.stderr
