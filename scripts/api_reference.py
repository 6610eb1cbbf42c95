"""Writes the API reference: `python scripts/api_reference.py FOLDER`.

pdoc takes types and docstrings of an extension module from its stub, but only where the module itself is documented.
Ours is private and its classes are public as `headrace.X`, so they are given their stub's documentation here. It finds
the source of a class by its module, so classes get back the module that really defines them.
"""

from __future__ import annotations
import __future__

import ast
import importlib
import sys
import types
from pathlib import Path

import pdoc.render
from pdoc import doc, doc_pyi

import headrace
from headrace._base.names import DEFINED_IN
from headrace.cli.docs import MODULES

CORE = "headrace._core"
# Its classes are those of `headrace`, under which they stand.
_SHOWN_AS_THE_PACKAGE = "headrace.client"


def documented_modules() -> dict[str, doc.Module]:
    """The public modules, with the extension's classes documented from the stub.

    Raises:
        LookupError: the stub was not found, or nothing of it is public.
    """
    imported = [importlib.import_module(name) for name in MODULES if name != _SHOWN_AS_THE_PACKAGE]
    for module in imported:
        for name in module.__all__:
            # What loads when it is first asked for is asked for here; pdoc looks only at what is there.
            setattr(module, name, getattr(module, name))
    for public, module in DEFINED_IN.items():
        public.__module__ = module
    modules = {module.__name__: doc.Module(module) for module in imported}
    core = importlib.import_module(CORE)
    stub_file = doc_pyi.find_stub_file(CORE)
    if stub_file is None:
        raise LookupError(f"no stub of {CORE}")
    run = _run_stub(stub_file)
    # Types that the stub alone has, by which other modules name theirs.
    for name in vars(run).keys() - vars(core).keys():
        setattr(core, name, getattr(run, name))
    stub = doc.Module(run)
    classes = [
        member
        for member in modules["headrace"].members.values()
        if isinstance(member, doc.Class) and getattr(core, member.name, None) is member.obj
    ]
    if not classes:
        raise LookupError(f"headrace has no class of {CORE}")
    for documented in classes:
        doc_pyi._patch_doc(documented, stub)
    return modules


def _run_stub(stub_file: Path) -> types.ModuleType:
    # A stub may use its classes before it defines them. So they exist, empty, before it is run.
    source = stub_file.read_text(encoding="utf-8")
    # Under another name, or pdoc would look for the stub of this stub.
    module = types.ModuleType("stub_of_core")
    module.__file__ = str(stub_file)
    sys.modules[module.__name__] = module
    module.__dict__.update({name: getattr(headrace, name) for name in headrace.__all__})
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            setattr(module, node.name, type(node.name, (), {}))
    code = compile(source, stub_file, "exec", flags=__future__.annotations.compiler_flag)
    exec(code, module.__dict__)
    return module


def write_reference(folder: Path) -> None:
    """One page a module, an index and a search index."""
    modules = documented_modules()
    pdoc.render.configure(docformat="google")
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in modules.items():
        page = folder / f"{name.replace('.', '/')}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(pdoc.render.html_module(module, modules), encoding="utf-8")
    (folder / "index.html").write_text(pdoc.render.html_index(modules), encoding="utf-8")
    (folder / "search.js").write_text(pdoc.render.search_index(modules), encoding="utf-8")


if __name__ == "__main__":
    write_reference(Path(sys.argv[1]))
