"""What `help()` shows of a public class names each public attribute of its instances."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import headrace

PACKAGES = (
    "headrace",
    "headrace.aio",
    "headrace.archive",
    "headrace.client",
    "headrace.cluster",
    "headrace.cluster.aio",
    "headrace.cluster.objects",
    "headrace.rpc",
    "headrace.testing",
    "headrace.tools",
)


def attributes_set_in(definition: ast.ClassDef) -> set[str]:
    """The names of `self.name = ...` in a class, without those that begin with an underscore."""
    targets = [
        target
        for node in ast.walk(definition)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return {
        target.attr
        for target in targets
        if isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
        and not target.attr.startswith("_")
    }


@pytest.fixture(scope="module")
def definitions() -> dict[tuple[str, str], set[str]]:
    """By the name and the docstring of a class: where it is defined is not where it is found."""
    found = {
        (node.name, ast.get_docstring(node) or ""): attributes_set_in(node)
        for path in Path(headrace.__file__).parent.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    assert sum(map(bool, found.values())) > 20
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_each_attribute_of_a_class_stands_in_its_text(
    package: str, definitions: dict[tuple[str, str], set[str]]
) -> None:
    module = importlib.import_module(package)
    untold = []
    for name in getattr(module, "__all__", ()):
        kind = getattr(module, name)
        if not isinstance(kind, type):
            continue
        text = inspect.getdoc(kind) or ""
        # Among the arguments, where it is one too.
        for attribute in definitions.get((kind.__name__, text), set()):
            # A property, and a field of a dataclass, have a text of their own.
            if not (hasattr(kind, attribute) or re.search(rf"^ +{attribute}: ", text, re.MULTILINE)):
                untold.append(f"{name}.{attribute}")
    assert untold == []


def test_a_node_names_its_parts() -> None:
    text = inspect.getdoc(headrace.cluster.ClusterNode) or ""
    for part in ("driver", "archive", "module", "containers"):
        assert re.search(rf"^ +{part}: ", text.partition("Attributes:\n")[2], re.MULTILINE), part
