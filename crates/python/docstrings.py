"""Writes the docstrings of the extension's classes, one file each, from the stub: `docstrings.py STUB FOLDER`.

The build calls it. The stub has the texts and the types; the compiled classes get both, so that `help()` shows what a
type checker knows. A method's text begins with its signature, a property's with its type.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

LINE_LENGTH = 96


class _WithoutAliases(ast.NodeTransformer):
    """Puts what a private alias stands for in its place: a reader of `help()` cannot look it up."""

    def __init__(self, aliases: dict[str, ast.expr]) -> None:
        self._aliases = aliases

    def visit_Name(self, node: ast.Name) -> ast.expr:
        alias = self._aliases.get(node.id)
        return node if alias is None else self.visit(ast.parse(ast.unparse(alias), mode="eval").body)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return node


def _aliases(stub: ast.Module) -> dict[str, ast.expr]:
    found = {}
    for node in stub.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.startswith("_"):
                if not (isinstance(value, ast.Call) or name == "__all__"):
                    found[name] = value
    return found


def _signature(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = function.args
    for positional in (arguments.posonlyargs, arguments.args):
        if positional and positional[0].arg in ("self", "cls"):
            del positional[0]
            break
    prefix = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    result = "" if function.returns is None else f" -> {ast.unparse(function.returns)}"
    line = f"{prefix}{function.name}({ast.unparse(arguments)}){result}"
    if len(line) <= LINE_LENGTH:
        return line
    inner = "".join(f"    {each},\n" for each in _parameters(arguments))
    return f"{prefix}{function.name}(\n{inner}){result}"


def _parameters(arguments: ast.arguments) -> list[str]:
    """Each parameter with its type and default; the marks `/` and `*` where they belong."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    shown = [_parameter(each, default) for each, default in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        shown.insert(len(arguments.posonlyargs), "/")
    if arguments.kwonlyargs:
        shown.append("*")
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return shown + [_parameter(each, default) for each, default in pairs]


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(argument) + ("" if default is None else f" = {ast.unparse(default)}")


def _is(function: ast.FunctionDef | ast.AsyncFunctionDef, decorator: str) -> bool:
    return any(ast.unparse(each).endswith(decorator) for each in function.decorator_list)


def docstrings(source: str) -> dict[str, str]:
    """The docstring of each class and of each member that has one, by its name, such as `Image.position`."""
    stub = ast.parse(source)
    plain = _WithoutAliases(_aliases(stub))
    found = {}
    for node in stub.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        if isinstance(node, ast.FunctionDef):
            found[node.name] = f"{_signature(plain.visit(node))}\n\n{text}"
            continue
        found[node.name] = text
        for member in node.body:
            if not isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) or _is(member, ".setter"):
                continue
            text = ast.get_docstring(member) or ""
            if _is(member, "property"):
                text = f"{ast.unparse(plain.visit(member.returns))}: {text}" if member.returns else text
            else:
                text = f"{_signature(plain.visit(member))}\n\n{text}"
            found[f"{node.name}.{member.name}"] = text.strip()
    return found


def main(stub: Path, folder: Path) -> None:
    """Writes them all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in docstrings(stub.read_text(encoding="utf-8")).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
