"""`headrace docs`: the API reference, in the terminal."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import types
import typing
from collections.abc import Iterator

import click

MODULES = (
    "headrace",
    "headrace.aio",
    "headrace.archive",
    "headrace.archive.aio",
    "headrace.archive.files",
    "headrace.client",
    "headrace.client.native",
    "headrace.clock",
    "headrace.cluster",
    "headrace.cluster.aio",
    "headrace.cluster.objects",
    "headrace.event_log",
    "headrace.rpc",
    "headrace.sbe",
    "headrace.security",
    "headrace.spark",
    "headrace.testing",
    "headrace.testing.cluster",
    "headrace.tools",
)


# Of names to look up instead.
_ADVISED_MAX = 8


@click.command()
@click.argument("name", default="")
def command(name: str) -> None:
    """Show the API reference: of all names, of one class, or of one function.

    \b
    Examples:
      headrace docs                      # every public name, a line each
      headrace docs Publication          # a class and its members
      headrace docs Publication.offer    # types, results, errors
      headrace docs archive.Archive
    """
    click.echo_via_pager(_plain("\n".join(_page(name)) + "\n"))


# The marks of docstrings: :class:`headrace.Image`, ``None``.
_MARKS = re.compile(r":[a-z]+:`~?([^`]+)`|``([^`]+)``")


def _plain(text: str) -> str:
    """The text with its names in plain backquotes, for a reader who is no documentation generator."""
    return _MARKS.sub(lambda mark: f"`{mark[1] or mark[2]}`", text)


def _page(name: str) -> Iterator[str]:
    if not name:
        return _index()
    path, thing = _find(name)
    if isinstance(thing, types.ModuleType):
        return _module_page(thing)
    if isinstance(thing, type):
        return _class_page(path, thing)
    return iter([*_described(path.rpartition(".")[2], thing)])


def _index() -> Iterator[str]:
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError as missing:
            yield f"{name}\n    {missing}\n"
        else:
            yield from _module_lines(module)
    yield "`headrace docs NAME` shows one of them, `headrace docs CLASS.MEMBER` a member."


def _module_page(module: types.ModuleType) -> Iterator[str]:
    yield from (inspect.getdoc(module) or "").splitlines()
    yield ""
    yield from _module_lines(module)


def _module_lines(module: types.ModuleType) -> Iterator[str]:
    yield module.__name__
    for name in module.__all__:
        yield from _line(name, getattr(module, name))
    yield ""


def _class_page(path: str, shown: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in shown.__bases__ if base is not object)
    yield f"class {path}" + (f"({bases})" if bases else "")
    yield ""
    yield from (inspect.getdoc(shown) or "").splitlines()
    yield ""
    for name in dir(shown):
        if not name.startswith("_") and not _is_of_python(shown, name):
            yield from _line(name, inspect.getattr_static(shown, name))


def _is_of_python(shown: type, name: str) -> bool:
    """Whether a member comes from a class of Python itself, such as `int` or `Exception`, whose texts are elsewhere."""
    owners = (base for base in shown.__mro__ if name in vars(base))
    return next(owners, shown).__module__ == "builtins"


def _line(name: str, thing: object) -> Iterator[str]:
    """The name, with brackets if it is to be called, and the first sentence or two of what it is."""
    summary = _described(name, thing)[1].split("\n\n")[0]
    is_called = inspect.isroutine(getattr(thing, "__func__", thing))
    yield f"  {name}()" if is_called else f"  {name}"
    if summary:
        yield f"      {' '.join(summary.split())}"


def _described(name: str, thing: object) -> tuple[str, str]:
    """The signature, and the text after it."""
    text = inspect.getdoc(thing) or ""
    plain = getattr(thing, "__func__", thing)
    if isinstance(plain, types.FunctionType):
        forms = [each for each in typing.get_overloads(plain) if isinstance(each, types.FunctionType)]
        return "".join(f"{name}{_signature(form)}\n" for form in forms or [plain]), text
    if isinstance(thing, property) and isinstance(thing.fget, types.FunctionType):
        return f"{name} -> {inspect.signature(thing.fget).return_annotation}\n", text
    if inspect.isroutine(thing):
        # A compiled one: its text begins with its signature.
        signature, _, rest = text.partition("\n\n")
        return f"{signature}\n", rest
    if isinstance(thing, type) or inspect.isdatadescriptor(thing):
        return f"{name}\n", text
    # A constant: the docstring would be that of its type.
    return f"{name} = {thing!r}\n", ""


class _Annotation(str):
    """An annotation that prints as it was written."""

    def __repr__(self) -> str:
        return str(self)


def _signature(function: types.FunctionType) -> inspect.Signature:
    signature = inspect.signature(function)
    empty = inspect.Parameter.empty
    parameters = [
        each if each.annotation is empty else each.replace(annotation=_Annotation(each.annotation))
        for each in signature.parameters.values()
    ]
    returned = signature.return_annotation
    return signature.replace(
        parameters=parameters,
        return_annotation=returned if returned is empty else _Annotation(returned),
    )


def _find(name: str) -> tuple[str, object]:
    """What `name` stands for, with or without the package's name before it."""
    first = name.partition(".")[0]
    package = "" if name == "headrace" or name.startswith("headrace.") else f"{_package_of(first)}."
    path = f"{package}{name}"
    parts = path.split(".")
    thing: object = importlib.import_module("headrace")
    for index, part in enumerate(parts[1:], start=2):
        parent, thing = thing, getattr(thing, part, None)
        if thing is None and ".".join(parts[:index]) in MODULES:
            thing = importlib.import_module(".".join(parts[:index]))
        if thing is None or part.startswith("_"):
            raise click.UsageError(_unknown(name, part, parent))
        if not isinstance(thing, types.ModuleType):
            thing = inspect.getattr_static(parent, part, thing)
    return path, thing


def _package_of(name: str) -> str:
    """The package that has a public name: `headrace` itself, or else the only one in it, as for `ClusterNode`."""
    package, *others = MODULES
    if hasattr(importlib.import_module(package), name):
        return package
    owners = [other for other in others if name in getattr(_imported(other), "__all__", ())]
    return owners[0] if len(owners) == 1 else package


def _imported(name: str) -> types.ModuleType | None:
    """A module, or None where it needs an extra that is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _unknown(name: str, part: str, parent: object) -> str:
    nearest = _members_named(part) if isinstance(parent, types.ModuleType) else []
    nearest = nearest or difflib.get_close_matches(
        part, [each for each in dir(parent) if not each.startswith("_")]
    )
    advice = (
        f"; did you mean {', '.join(nearest[:_ADVISED_MAX])}?"
        if nearest
        else "; `headrace docs` lists all names"
    )
    return f"{name} is not part of the public API{advice}"


def _members_named(name: str) -> list[str]:
    """The public classes with a member of that name, and the member: `headrace docs offer`.

    Those of the package itself, or else those of the packages in it.
    """
    package, *others = MODULES
    found = _members_in(package, name)
    return found or [member for other in others for member in _members_in(other, name)]


def _members_in(module_name: str, name: str) -> list[str]:
    module = _imported(module_name)
    if module is None:
        return []
    place = module_name.partition(".")[2]
    classes = ((each, getattr(module, each)) for each in module.__all__)
    return [
        f"{place}.{class_name}.{name}".removeprefix(".")
        for class_name, found in classes
        if isinstance(found, type) and not name.startswith("_") and hasattr(found, name)
    ]
