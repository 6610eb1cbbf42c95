"""What the package exports: all of it on purpose, none of it missing from the stub."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.metadata
import inspect
import pickle
import pydoc
import types
import typing
from pathlib import Path

import pytest
from crates.python.docstrings import docstrings

import headrace
import headrace._core
import headrace.client
import headrace.driver
import headrace.event_log
import headrace.testing

pytestmark = pytest.mark.boundary

# Wrapped by classes of the same name that add Python to them.
WRAPPED = {
    "Client": headrace.Client,
    "EventReader": headrace.event_log.EventReader,
    "MediaDriver": headrace.MediaDriver,
    "Node": headrace.testing.Node,
    "Pending": headrace.client.Pending,
    "Poller": headrace.Poller,
    "World": headrace.testing.World,
}
# For the package's own use.
INTERNAL = {
    "EventLog",
    "Watcher",
    "Exporter",
    "close_clients",
    "hold_threads",
    "setting_declarations",
    "state_tables",
}

STUB_FILE = Path(headrace.__file__).parent / "_core.pyi"
STUB = ast.parse(STUB_FILE.read_text())


def compiled_names() -> set[str]:
    return {name for name in dir(headrace._core) if not name.startswith("_")}


def test_each_compiled_class_is_exported_or_wrapped():
    names = compiled_names() - INTERNAL
    assert len(names) >= 12
    for name in names:
        if name in WRAPPED:
            assert WRAPPED[name] is not getattr(headrace._core, name)
        else:
            exporter = headrace.client if hasattr(headrace.client, name) else headrace
            assert getattr(exporter, name) is getattr(headrace._core, name), name


def test_wrappers_cover_what_they_wrap():
    # Told in other words there: nanoseconds are seconds, and what is said twice is one call.
    in_other_words = {
        "launch",
        "doubts",
        "drain",
        "note",
        "note_work",
        "set_programs",
        "set_programs_due_ns",
        "set_rest_ns",
        "wake",
        "clock_ns",
        "set_clock_skew_ns",
        "jump_clock_ns",
        "keep_alive",
        "set_lookup_ns",
        "set_link_to",
        "set_cut_to",
    }
    for name, wrapper in WRAPPED.items():
        compiled = {each for each in dir(getattr(headrace._core, name)) if not each.startswith("_")}
        assert compiled
        # The counters of a client are gathered in one object.
        used_by_counters = {"compare_and_set_counter", "counter_record", "counter_value", "find_counter"}
        assert compiled - used_by_counters - in_other_words <= set(dir(wrapper)), name


def test_all_is_sorted_complete_and_importable():
    for module in (headrace, headrace.client, headrace.driver):
        assert list(module.__all__) == sorted(module.__all__)
        for name in module.__all__:
            assert getattr(module, name) is not None
    public = {
        name
        for name, value in vars(headrace).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("headrace")
    }
    assert len(public) > 30
    assert public <= set(headrace.__all__)


def test_exceptions_form_the_tree_that_the_module_draws():
    errors = {
        name
        for name in headrace.__all__
        if isinstance(getattr(headrace, name), type) and issubclass(getattr(headrace, name), Exception)
    }
    drawing = inspect.getdoc(headrace._base.exceptions) or ""
    assert len(errors) >= 14
    for name in errors:
        assert name in drawing
        assert issubclass(getattr(headrace, name), headrace.HeadraceError)


def documented(node: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        item
        for item in ast.walk(node)
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
        and not item.name.startswith("_")
        and not any(isinstance(each, ast.Attribute) and each.attr == "setter" for each in item.decorator_list)
    ]


def test_every_public_method_says_what_it_does():
    classes = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name not in WRAPPED]
    methods = [(each.name, item) for each in classes for item in documented(each)]
    assert len(methods) > 100
    for class_name, method in methods:
        assert ast.get_docstring(method), f"{class_name}.{method.name}"


def test_help_at_run_time_is_the_stub_with_its_types():
    expected = docstrings(STUB_FILE.read_text())
    checked = 0
    for node in STUB.body:
        # A protocol of the stub is for type checkers alone.
        if not isinstance(node, ast.ClassDef) or node.name in WRAPPED or node.name.startswith("_"):
            continue
        compiled = getattr(headrace._core, node.name)
        assert compiled.__doc__ == expected[node.name]
        for method in documented(node):
            name = f"{node.name}.{method.name}"
            found = vars(compiled)[method.name].__doc__
            assert found == expected[name], f'give it #[doc = docstring!("{name}")]'
            checked += 1
    assert checked > 100


def test_help_shows_types_results_and_errors():
    shown = pydoc.render_doc(headrace.Publication.offer_blocking, renderer=pydoc.plaintext)
    assert "timeout_s: float | None = 5.0" in shown
    assert ") -> int" in shown
    assert "PublicationTimeoutError: The time is over" in shown
    assert headrace.Image.position.__doc__.startswith("int: Stream position")
    # A private alias of the stub means nothing to a reader.
    assert "_Data" not in headrace.Publication.offer.__doc__


PACKAGES = (
    "headrace",
    "headrace.archive",
    "headrace.archive.files",
    "headrace.sbe",
    "headrace.testing",
    "headrace.tools",
)


@pytest.mark.parametrize("package", PACKAGES)
def test_public_classes_carry_the_name_that_users_import(package: str):
    module = importlib.import_module(package)
    named = 0
    for name in module.__all__:
        value = getattr(module, name)
        if not isinstance(value, type | types.FunctionType) or dataclasses.is_dataclass(value):
            continue
        assert getattr(importlib.import_module(value.__module__), name) is value
        assert not any(part.startswith("_") for part in value.__module__.split(".")), value
        named += 1
    assert named >= 3
    if package == "headrace":
        assert repr(headrace.ConfigError) == "<class 'headrace.ConfigError'>"
        assert repr(headrace.Publication) == "<class 'headrace.Publication'>"


@pytest.mark.parametrize("package", PACKAGES)
def test_annotations_of_public_classes_can_be_resolved(package: str):
    module = importlib.import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and dataclasses.is_dataclass(value):
            typing.get_type_hints(value)


def test_exceptions_survive_pickling():
    for error in (
        headrace.ConfigError("limit=-1: must be above 0", "limit", "-1", "must be above 0"),
        headrace.RegistrationError("refused", 7, "INVALID_CHANNEL", 9),
        headrace.PublicationTimeoutError("late", headrace.OfferResult.BACK_PRESSURED, 3),
        headrace.ArchiveError("refused", 5, "UNKNOWN_RECORDING", 3, 4),
        headrace.MissingExtraError("pyarrow is not installed", "pyarrow", "arrow"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), vars(again)) == (str(error), vars(error))


def test_the_version_is_the_one_of_the_distribution():
    assert headrace.__version__ == importlib.metadata.version("headrace")


def test_compiled_classes_cannot_be_made_or_changed_from_python():
    for name in (
        "Publication",
        "ExclusivePublication",
        "Subscription",
        "Image",
        "Header",
        "Claim",
    ):
        with pytest.raises(TypeError, match=r"No constructor|cannot create"):
            getattr(headrace, name)()
