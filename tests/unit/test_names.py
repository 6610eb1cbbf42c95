"""Names alike for alike, in all classes of the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import headrace

QUESTION = re.compile("(is|has)_")
# Which no program calls.
OF_THE_PARTS = re.compile(r"cluster/service/control\.py|.*: _")


def methods() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The methods of each class, also of the compiled ones, with the names of their classes."""
    package = Path(headrace.__file__).parent
    for path in sorted((*package.rglob("*.py"), *package.rglob("*.pyi"))):
        for owner in ast.walk(ast.parse(path.read_text())):
            if isinstance(owner, ast.ClassDef):
                for method in owner.body:
                    if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                        yield f"{path.relative_to(package)}: {owner.name}.{method.name}", method


def parameters(method: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    given = method.args
    return [one for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg != "self"]


def defaults(method: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """The texts of the defaults that a method has, by parameter."""
    given = method.args
    places = [*given.posonlyargs, *given.args]
    pairs = [
        *zip(places[len(places) - len(given.defaults) :], given.defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    return {one.arg: ast.unparse(default) for one, default in pairs if default is not None}


def test_a_question_without_arguments_is_a_property() -> None:
    """Without its brackets a method is true, whatever its answer would be."""
    questions = [
        (name, method) for name, method in methods() if QUESTION.match(method.name) and not parameters(method)
    ]
    assert len(questions) > 50
    assert [
        name
        for name, method in questions
        if not any("property" in ast.unparse(each) for each in method.decorator_list)
    ] == []


def test_an_asynchronous_form_has_the_defaults_of_the_form_that_blocks() -> None:
    """Beside `offer_blocking` it is `offer_async`; beside a method that always blocks, such as `wait`, `wait_async`."""
    named = dict(methods())
    pairs = [
        (
            name,
            method,
            named.get(name.replace("_async", "_blocking")) or named.get(name.removesuffix("_async")),
        )
        for name, method in named.items()
        if name.endswith("_async") and not method.name.startswith("_")
    ]
    assert len(pairs) > 15
    different = {
        name: (defaults(method), defaults(blocking))
        for name, method, blocking in pairs
        if blocking is not None
        and any(defaults(blocking).get(key) != value for key, value in defaults(method).items())
    }
    assert different == {}


def test_an_offer_never_waits() -> None:
    """What waits says so by its name, `offer_blocking` and `offer_async`, on clients of a cluster too."""
    offers = [(name, method) for name, method in methods() if method.name == "offer"]
    assert len(offers) > 5
    assert [name for name, method in offers if isinstance(method, ast.AsyncFunctionDef)] == []


def test_what_became_of_an_offer_is_one_kind() -> None:
    """A position, which is true, or why it was refused, which is false; both are numbers that say which it was."""
    kinds = {
        name: ast.unparse(method.returns) if method.returns else ""
        for name, method in methods()
        if method.name in ("offer", "offer_block", "append_padding") and not OF_THE_PARTS.match(name)
    }
    assert len(kinds) >= 8
    assert {name: kind for name, kind in kinds.items() if kind != "int | OfferResult"} == {}
