"""Every public class prints what it is about, not where it lies in memory."""

from __future__ import annotations

import importlib

import pytest

PACKAGES = (
    "headrace",
    "headrace.archive",
    "headrace.client",
    "headrace.sbe",
    "headrace.testing",
    "headrace.tools",
)
# Protocols and parts that a program does not hold.
WITHOUT = {"Storage", "StorageFile", "CountersReader", "Watcher", "Checksum", "FrameWalk", "Namespaces"}


@pytest.mark.parametrize("package", PACKAGES)
def test_public_classes_print_well(package: str):
    module = importlib.import_module(package)
    classes = [getattr(module, name) for name in module.__all__ if isinstance(getattr(module, name), type)]
    assert classes
    bare = {each.__name__ for each in classes if each.__repr__ is object.__repr__}
    assert bare <= WITHOUT
